"""PyTorch's default dtype and device, which the user sets and which do not affect the library."""

import gc
import threading

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import batch, network
from torch_states import flat_state


class Training:
    """Model and its steps with optimizers of any compression.

    Args:
        defaults: PyTorch's dtype and device from then on.
    """

    def __init__(self, rank, *defaults):
        self.model = network()
        self._data = batch(rank, 0)
        if defaults:
            torch.set_default_dtype(defaults[0])
            torch.set_default_device(defaults[1])

    def made(self, compression, **options):
        import hipress.torch

        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        return hipress.torch.DistributedOptimizer(
            optimizer, self.model.named_parameters(), compression, min_size=1000, **options
        )

    def step(self, optimizer):
        x, y = self._data
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.model(x), y).backward()
        optimizer.step()


def trained(rank, dtype, device, type, options):
    """Train three steps, the last two after a checkpoint was loaded and the codec has changed."""
    training = Training(rank, dtype, device)
    made = training.made({"type": type, **options})
    training.step(made)
    state = made.compression.state_dict()
    assert all(
        v.device.type == "cpu" for v in flat_state(state).values() if isinstance(v, torch.Tensor)
    )
    made = training.made({"type": type, **options})
    made.compression.load_state_dict(state)
    training.step(made)
    other = training.made({"type": "maxminef", "bits": 8})
    other.compression.load_state_dict(made.compression.state_dict())
    training.step(other)
    return [p.detach().numpy().tobytes() for p in training.model.parameters()]


DEFAULTS = (torch.float32, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("type", "options"), [("onebit", {}), ("powersgd", {"rank": 2})])
def test_training_has_the_same_bits(type, options):
    usual, _ = returned(run_ranks(trained, 2, *DEFAULTS, type, options))
    for dtype, device in ((torch.bfloat16, "cpu"), (torch.float32, "meta")):
        found = returned(run_ranks(trained, 2, dtype, device, type, options))
        assert found == [usual, usual], (dtype, device)


def chosen(rank, dtype, device):
    training = Training(rank, dtype, device)
    made = training.made("auto")
    for _ in range(3):
        training.step(made)
    return [len(made.compression.explain().rows) > 1]


def test_type_auto_measures():
    for dtype, device in ((torch.bfloat16, "cpu"), (torch.float32, "meta")):
        assert returned(run_ranks(chosen, 2, dtype, device)) == [[True], [True]]


def adam(dtype):
    import hipress.torch

    torch.manual_seed(0)
    start = torch.randn(5, 4, dtype=dtype)
    grads = [torch.randn(5, 4, dtype=dtype) for _ in range(300)]
    found = []
    for kind, options in (
        (torch.optim.AdamW, {}),
        (hipress.torch.FrozenAdamW, {"freeze_step": 1000}),
    ):
        p = torch.nn.Parameter(start.clone())
        optimizer = kind([p], lr=1e-2, weight_decay=0.01, **options)
        for grad in grads:
            p.grad = grad.clone()
            optimizer.step()
        found.append((p.detach(), optimizer.state[p]["step"].item()))
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_frozen_adam_is_adam_until_it_freezes(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        (ours, steps), (theirs, others) = adam(dtype)
    finally:
        torch.set_default_dtype(before)
    assert steps == others == 300
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def engines(rank):
    """Check that operations that the engine does not support use the user's group, for which a
    thread waits."""
    import torch.distributed as dist

    import hipress.torch

    counts = []
    for _ in range(4):
        model = network().double()
        made = hipress.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1),
            model.named_parameters(),
            "none",
            min_size=1 << 20,
        )
        x, y = batch(rank, 0)
        torch.nn.functional.cross_entropy(model(x.double()), y).backward()
        made.step()
        dist.barrier()
        made.compression.engine.close(without_failure=True)
        del made
        gc.collect()
        counts.append(threading.active_count())
    return [counts]


@pytest.mark.slow
def test_an_engine_that_is_closed_leaves_no_thread():
    for [counts] in returned(run_ranks(engines, 2)):
        assert counts[-1] == counts[0], counts


def snapshot(rank):
    """A state that is taken before a loaded one is used does not change with its use."""
    training = Training(rank)
    first = training.made("onebit", topology="ps")
    training.step(first)
    second = training.made("onebit", topology="ring")
    second.compression.load_state_dict(first.compression.state_dict())
    taken = flat_state(second.compression.state_dict())
    before = {k: v.clone() for k, v in taken.items() if isinstance(v, torch.Tensor)}
    assert any(v.any() for v in before.values())
    training.step(second)
    return [all(torch.equal(taken[key], value) for key, value in before.items())]


def test_a_snapshot_stays_as_it_is():
    assert returned(run_ranks(snapshot, 2)) == [[True], [True]]
