"""States that rank 0 alone has saved, as Accelerate and Lightning do, are loaded on all ranks."""

import logging

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import bits, network, wrap
from test_torch_fsdp_state import RANKS, SHAPES, job, result
from test_torch_state import train
from torch_states import flat_state

LOST = "the loaded state has only rank 0's part"


def rank0_state(compression, path):
    """Save on rank 0 alone with torch.save(), and load the file on this rank."""
    import torch.distributed as dist

    state = compression.state_dict()
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()
    return torch.load(path, weights_only=True)


def warnings():
    """Return a list to which this process adds its warnings of lost states from now on."""
    said = []

    def keep(record):
        if LOST in record.getMessage():
            said.append(record.getMessage())
        return True

    logging.getLogger("hipress").addFilter(keep)
    return said


def equal(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


def resume_exactly(rank, cases, path):
    """Compare four steps with two and, in a new job, two more."""
    said, differ = warnings(), []
    for number, (kind, type, params) in enumerate(cases):
        model, compression = job(kind, type, params)
        for step in range(2):
            result(model, rank, step)
        state = rank0_state(compression, f"{path}/{number}")
        straight = [result(model, rank, step) for step in (2, 3)]
        for steps_before in (0, 1):
            model, compression = job(kind, type, params)
            for _ in range(steps_before):
                result(model, rank, 9)
            compression.load_state_dict(state)
            resumed = [compression.step, *(result(model, rank, step) for step in (2, 3))]
            if resumed[0] != 2 or not all(map(equal, straight, resumed[1:])):
                differ.append((kind, type, params, steps_before))
    return differ, said


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", ["ddp", "fsdp2", "hsdp"])
def test_rank0_state_resumes_exactly_without_residuals(tmp_path, kind):
    cases = [(kind, "maxmin", {"bits": 4}), (kind, "terngrad", {})]
    if kind != "hsdp":  # whose shards have different momentum
        cases.append((kind, "none", {"shared_momentum": 0.9}))
    found = returned(run_ranks(resume_exactly, RANKS[kind], cases, str(tmp_path)))
    assert found == [([], [])] * RANKS[kind]


def resume_another_layout(rank, path):
    """Load a state of other partitions into a job that has made two steps.

    Returns:
        The loaded step and the result of the next one.
    """
    from hipress.planning.plan import Decision

    def partitioned(count):
        plan = {"layers.uneven.weight": Decision(compress=True, partitions=count)}
        return job("ddp", "maxmin", {"bits": 4, "plan": plan})

    model, compression = partitioned(1)
    result(model, rank, 0)
    state = rank0_state(compression, path)
    model, compression = partitioned(2)
    for step in (8, 9):
        result(model, rank, step)
    compression.load_state_dict(state)
    return compression.step, result(model, rank, 1)["layers.uneven.weight"].tolist()


def test_rank0_state_of_another_layout_is_loaded_on_all_ranks_after_steps(tmp_path):
    first, second = returned(run_ranks(resume_another_layout, 2, str(tmp_path / "state")))
    assert first == second and first[0] == 1


def resume_with_residuals(rank, kind, other, path):
    """Return the warnings, the step, and the error of the residuals that a new job sends.

    The gradients of the new job are zeros, so its results are residuals.
    """
    import torch.distributed as dist

    said = warnings()
    made = job(kind, "topk", {"ratio": 0.3})
    if made:
        result(made[0], rank, 0)
        state = made[1].state_dict()
        if rank == 0:
            torch.save(state, path)
    dist.barrier()
    state = torch.load(path, weights_only=True)
    parts = flat_state(state)
    peers, left = parts["rank0/peers"], {}
    for name, shape in SHAPES.items():
        whole, tasks = torch.zeros(torch.Size(shape).numel()), f"rank0/state/layers.{name}.weight/"
        for key in [key for key in parts if key.startswith(tasks) and key.endswith("/residual")]:
            task = key.removesuffix("/states/residual")
            share = 1 / peers if parts[f"{task}/kind"] == "own" else 1
            offset, count = parts[f"{task}/offset"], parts[f"{task}/count"]
            whole[offset : offset + count] += share * parts[key]
        left[name] = whole.view(shape)
    assert all(values.abs().max() > 0.1 for values in left.values())
    made = job(other, "topk", {"ratio": 0.3})
    if not made:
        return None
    model, compression = made
    compression.load_state_dict(state)
    step = compression.step
    sent = [result(model, rank, None) for _ in range(12)]
    errors = [
        (sum(each[f"layers.{name}.weight"] for each in sent) - values).abs().max().item()
        for name, values in left.items()
    ]
    return said, step, max(errors)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("kind", "other"),
    [("ddp", "ddp"), ("fsdp2", "fsdp2"), ("hsdp", "hsdp"), ("fsdp4", "fsdp2"), ("ddp", "fsdp3")],
)
def test_rank0_state_with_residuals_warns_once_and_resumes(tmp_path, kind, other):
    ranks = max(RANKS[kind], RANKS[other])
    found = returned(run_ranks(resume_with_residuals, ranks, kind, other, str(tmp_path / "state")))
    for rank, (said, step, error) in enumerate(found[: RANKS[other]]):
        assert (step, error) == (1, pytest.approx(0, abs=1e-5))
        is_exact = rank == 0 and kind == other
        assert [LOST in each for each in said] == ([] if is_exact else [True])


def resume_low_rank(rank, path):
    """Return the factors with which each rank resumes, and its weights after two more steps."""
    model = network()
    ddp, compression = wrap(model, "powersgd", rank=2)
    train(ddp, rank, range(2))
    state = rank0_state(compression, path)
    ddp, compression = wrap(model, "powersgd", rank=2)
    compression.load_state_dict(state)
    train(ddp, rank, range(2, 4))
    found = flat_state(compression.state_dict())
    starts = [found[key].numpy().tobytes() for key in sorted(found) if key.endswith("start_q")]
    return starts, bits(model), all(p.isfinite().all() for p in model.parameters())


def test_rank0_state_of_low_rank_keeps_factors_equal(tmp_path):
    first, second = returned(run_ranks(resume_low_rank, 2, str(tmp_path / "state")))
    assert first == second and first[0] and first[2]


def with_accelerate(rank, type, attribute, folder):
    """Return the weights of four steps, and of two and, after load_state(), two more."""
    from accelerate import Accelerator

    import hipress.torch

    said, found = warnings(), []
    for resumes in (False, True):
        accelerator, model = Accelerator(cpu=True), network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        ddp, _ = accelerator.prepare(model, optimizer)
        compression = hipress.torch.compress(ddp, type, min_size=1000)
        state = getattr(compression, attribute) if attribute else compression
        accelerator.register_for_checkpointing(state)
        if resumes:
            accelerator.load_state(folder)
        train(ddp, rank, range(compression.step, 2))
        if not resumes:
            accelerator.save_state(folder)
        assert compression.step == 2
        train(ddp, rank, range(2, 4))
        found.append(bits(model))
        assert compression.step == 4
    return found[0] == found[1], found[1], said


@pytest.mark.parametrize(
    ("type", "attribute"), [("maxmin", ""), ("onebit", ""), ("onebit", "global_state")]
)
def test_accelerate_resumes_registered_compression(tmp_path, type, attribute):
    pytest.importorskip("accelerate", reason="needs Hugging Face's accelerate")
    found = returned(run_ranks(with_accelerate, 2, type, attribute, str(tmp_path / "state")))
    first, second = found
    assert first[1] == second[1] and not first[2]
    if (type, attribute) == ("onebit", ""):
        (sentence,) = second[2]
        assert "on 1 of 2 ranks (residuals, momentum) is lost" in sentence
    else:
        assert first[0] and second[0] and not second[2]


def with_lightning(rank, folder):
    """Return the weights of four steps, and of two and, from the checkpoint, two more."""
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    import hipress.torch

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = network()

        def training_step(self, batch, number):
            return self.layers(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.05)

    class Compress(lightning.Callback):
        compression = None
        loaded = None

        def on_train_start(self, trainer, module):
            self.compression = hipress.torch.compress(trainer.model, "onebit", min_size=1000)
            if self.loaded is not None:
                self.compression.load_state_dict(self.loaded)

        def on_save_checkpoint(self, trainer, module, checkpoint):
            checkpoint["hipress"] = self.compression.global_state_dict()

        def on_load_checkpoint(self, trainer, module, checkpoint):
            self.loaded = checkpoint["hipress"]

    # All batches of a rank are equal, because Lightning starts an interrupted epoch again.
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(1, 4, network()[0].in_features, generator=generator).expand(4, -1, -1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs))
    found, said = [], warnings()
    for steps, resumes in ((4, False), (2, False), (4, True)):
        model, callback = Module(), Compress()
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=2,
            strategy=DDPStrategy(process_group_backend="gloo"),
            max_steps=steps,
            use_distributed_sampler=False,
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, data, ckpt_path=folder if resumes else None, weights_only=True)
        assert callback.compression.step == steps
        if steps == 2:
            trainer.save_checkpoint(folder)
        found.append(bits(model))
    return found[0] == found[2], found[2], said


@pytest.mark.slow
def test_lightning_callback_resumes_with_residuals_of_all_ranks(tmp_path):
    pytest.importorskip("lightning", reason="needs lightning")
    first, second = returned(
        run_ranks(with_lightning, 2, str(tmp_path / "state.ckpt"), join=False, timeout=200)
    )
    assert first == second and first[0] and not first[2]
