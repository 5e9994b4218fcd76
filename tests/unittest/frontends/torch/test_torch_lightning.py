"""Lightning's strategies with compressed gradients, on CPUs."""

from __future__ import annotations

import os
import shutil

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import succeed

pytest.importorskip("lightning", reason="needs lightning")


def fit(rank, folder, strategy, resume=None, shard=False, keep=-1, **options):
    """Train with Lightning; return the weights' bits, the step and the logged metrics."""
    os.environ.update(TORCHELASTIC_RUN_ID="0", LOCAL_RANK=str(rank))
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger

    import hipress.torch.lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(300, 100)

        def configure_model(self):
            if shard:
                from torch.distributed.fsdp import fully_shard

                fully_shard(self.layer, mesh=self.device_mesh["data_parallel"])

        def training_step(self, batch, index):
            # Lightning shuffles the data, and a checkpoint does not keep their order.
            torch.manual_seed(100 * rank + self.trainer.global_step)
            return self.layer(torch.randn_like(batch)).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    lightning.seed_everything(0)
    count = 16 * options.get("accumulate_grad_batches", 1)  # two steps in an epoch
    batches = torch.utils.data.DataLoader(torch.randn(count, 300), batch_size=4)
    if isinstance(strategy, dict):
        strategy = dict(strategy)
        kind = getattr(hipress.torch.lightning, strategy.pop("class"))
        strategy = kind(**strategy)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=strategy,
        max_steps=4,
        logger=CSVLogger(folder),
        log_every_n_steps=1,
        callbacks=[ModelCheckpoint(f"{folder}/saved", every_n_epochs=1, save_top_k=keep)],
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **options,
    )
    module = Module()
    trainer.fit(module, batches, ckpt_path=resume)
    weight = module.layer.weight
    weight = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
    metrics = sorted(name for name in trainer.logged_metrics if name.startswith("hipress/"))
    return weight.detach().numpy().tobytes(), trainer.strategy.compression.step, metrics


DDP = {"class": "HiPressDDPStrategy", "codec": "onebit"}
FSDP = {
    "class": "HiPressModelParallelStrategy",
    "codec": {"type": "onebit", "min_size": 16},
    "tensor_parallel_size": 1,
    "data_parallel_size": 2,
}


def run(folder, strategy, *args, **options):
    return succeed(run_ranks(launch, 2, str(folder), strategy, args, options, join=False))[0]


def launch(rank, folder, strategy, args, options):
    return fit(rank, folder, strategy, *args, **options)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [DDP, FSDP], ids=["ddp", "fsdp2"])
def test_lightning_resumes_with_the_same_bits(tmp_path, strategy):
    """Training resumes from a checkpoint with the bits of an uninterrupted training.

    Cost: Three trainings follow each other; each rank imports Lightning.
    """
    shard = strategy is FSDP
    bits, step, metrics = run(tmp_path / "a", strategy, None, shard)
    assert step == 4 and {"hipress/bytes", "hipress/ratio"} <= set(metrics)
    saved = next((tmp_path / "a" / "saved").glob("*step=2.ckpt"))
    assert run(tmp_path / "b", strategy, str(saved), shard)[:2] == (bits, step)
    # Without the residuals it is another training.
    shutil.rmtree(f"{saved}.hipress")
    assert run(tmp_path / "c", strategy, str(saved), shard)[0] != bits


@pytest.mark.slow
def test_lightning_combines_accumulation_clipping_and_precision(tmp_path):
    """Gradient accumulation counts one step, and mixed precision and clipping train.

    Cost: Two trainings, whose ranks import Lightning.
    """
    options = {"accumulate_grad_batches": 2, "gradient_clip_val": 1.0, "precision": "bf16-mixed"}
    strategy = {"class": "HiPressDDPStrategy", "codec": "maxmin:bits=8"}
    bits, step, _ = run(tmp_path / "a", strategy, keep=1, **options)
    assert step == 4
    # Lightning has removed the first checkpoint, and the strategy its residuals.
    (saved,) = (tmp_path / "a" / "saved").glob("*.ckpt")
    (folder,) = (tmp_path / "a" / "saved").glob("*.hipress")
    assert folder.name == f"{saved.name}.hipress"
    bits, step, _ = run(tmp_path / "b", "hipress", **options)  # by its registered name
    assert step == 4 and bits != bytes(len(bits))
