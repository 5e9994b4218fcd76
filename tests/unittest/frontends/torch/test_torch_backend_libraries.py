"""Libraries that users train with, on the backend "hipress": checkpoints, Lightning, Accelerate."""

import os
import warnings

import pytest

pytest.importorskip("torch")

import torch
import torch.distributed as dist

from harness.torch_ranks import returned, run_ranks


def use(backend):
    """Make a process group the default one; the backend compresses all that it can."""
    import hipress.torch  # noqa: F401

    warnings.simplefilter("ignore")
    os.environ.update(HIPRESS_MIN_SIZE="0", HIPRESS_COMPRESSION="lossless")
    dist.init_process_group(backend)


def checkpoints(rank, folder):
    """Save and load a model's and an optimizer's states in both ways, and return the weights."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    use("hipress")
    found = []
    for save in (dcp.save, dcp.async_save):
        for shard in (False, True):
            path = f"{folder}/{save.__name__}-{shard}"
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
            if shard:
                fully_shard(model)
            optimizer = torch.optim.Adam(model.parameters())
            model(torch.ones(1, 8)).sum().backward()
            optimizer.step()
            before = [weights(p) for p in model.parameters()]
            states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
            saving = save(states, checkpoint_id=path)
            if save is dcp.async_save:
                saving.result(timeout=30)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.zero_()
            states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
            dcp.load(states, checkpoint_id=path)
            set_state_dict(
                model,
                optimizer,
                model_state_dict=states["model"],
                optim_state_dict=states["optimizer"],
            )
            found.append(before == [weights(p) for p in model.parameters()])
    return found


def weights(parameter):
    """Return a parameter's elements, gathered from all ranks if it is sharded."""
    whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
    return whole.tolist()


def test_distributed_checkpoints_load_as_they_were_saved(tmp_path):
    found = returned(run_ranks(checkpoints, 2, str(tmp_path), join=False, timeout=60))
    assert found == [[True] * 4] * 2


def lightning_run(rank, backend, folder):
    """Train with Lightning, and return what it logged and the weights."""
    import hipress.torch  # noqa: F401

    warnings.simplefilter("ignore")
    os.environ.update(HIPRESS_MIN_SIZE="0", HIPRESS_COMPRESSION="lossless")
    os.environ.update(TORCHELASTIC_RUN_ID="0", LOCAL_RANK=str(rank))
    lightning = pytest.importorskip("lightning")
    from lightning.pytorch.strategies import DDPStrategy

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            loss = self.layer(batch).square().mean()
            self.log("loss", loss, sync_dist=True, on_epoch=True)
            self.log("rank", self.global_rank, sync_dist=True, on_epoch=True)
            self.log("most", torch.tensor(self.global_rank + 1), sync_dist=True, reduce_fx="max")
            return loss

        def validation_step(self, batch, index):
            self.log("samples", float(len(batch)), sync_dist=True, reduce_fx="sum")

        def on_train_epoch_end(self):
            self.gathered = self.all_gather(torch.tensor(self.global_rank)).tolist()
            twice = torch.tensor(2 * self.global_rank)
            self.mean = float(self.trainer.strategy.reduce(twice, reduce_op="mean"))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    lightning.seed_everything(0)
    batches = torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=4)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(process_group_backend=backend),
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    module = Module()
    trainer.fit(module, batches, batches)
    assert dist.get_backend() == backend
    metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    return metrics, module.gathered, module.mean, module.layer.weight.tolist()


def test_lightning_trains_and_logs_as_on_gloo(tmp_path):
    pytest.importorskip("lightning", reason="needs lightning")
    found = [
        returned(
            run_ranks(lightning_run, 2, backend, str(tmp_path / backend), join=False, timeout=90)
        )
        for backend in ("gloo", "hipress")
    ]
    assert found[0] == found[1]
    metrics, gathered, mean, _ = found[1][0]
    assert metrics["most"] == 2 and metrics["rank_epoch"] == 0.5 and metrics["samples"] > 0
    assert gathered == [0, 1] and mean == 1


def accelerate_run(rank, backend):
    """Train with Accelerate, and return its collectives' results and the weights."""
    use(backend)  # on CPUs Accelerate itself would make a process group of Gloo
    from accelerate import Accelerator
    from accelerate.utils import broadcast_object_list, gather_object, set_seed

    accelerator = Accelerator(cpu=True)
    assert accelerator.num_processes == 2 and dist.get_backend() == backend
    set_seed(0)
    batches = torch.utils.data.DataLoader(torch.randn(20, 4), batch_size=3)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    losses, samples = [], 0
    for batch in batches:
        loss = model(batch).square().mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses += accelerator.gather_for_metrics(loss.detach().reshape(1)).tolist()
        samples += len(accelerator.gather_for_metrics(batch))
    accelerator.wait_for_everyone()
    return (
        losses,
        samples,
        accelerator.reduce(torch.tensor([rank, 3]), "sum").tolist(),
        accelerator.reduce(torch.tensor([2.0 * rank]), "mean").tolist(),
        accelerator.pad_across_processes(torch.ones(1 + rank)).tolist(),
        gather_object([{"rank": rank}]),
        broadcast_object_list([rank, "a" * rank], 1),
        accelerator.unwrap_model(model).weight.tolist(),
    )


def test_accelerate_trains_and_gathers_as_on_gloo():
    pytest.importorskip("accelerate", reason="needs accelerate")
    gloo, ours = (
        returned(run_ranks(accelerate_run, 2, backend, join=False, timeout=90))
        for backend in ("gloo", "hipress")
    )
    assert ours == gloo
    _, samples, total, mean, *_ = ours[0]
    assert samples == 20 and total == [1, 6] and mean == [1.0]
