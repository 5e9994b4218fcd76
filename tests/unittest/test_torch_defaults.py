"""PyTorch's default dtype and device, which are the user's, change nothing of the library's."""

import gc
import threading

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import batch, network


def trained(rank, dtype, device, type, options):
    """Three steps, the last two after a checkpoint was loaded and the codec has changed."""
    import hipress.torch

    model = network()
    x, y = batch(rank, 0)
    torch.set_default_dtype(dtype)
    torch.set_default_device(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = hipress.torch.DistributedOptimizer(
        optimizer, model.named_parameters(), {"type": type, **options}, min_size=1000
    )

    def step(made):
        made.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        made.step()

    step(made)
    state = made.compression.state_dict()
    assert all(v.device.type == "cpu" for v in state.values() if isinstance(v, torch.Tensor))
    made = hipress.torch.DistributedOptimizer(
        optimizer, model.named_parameters(), {"type": type, **options}, min_size=1000
    )
    made.compression.load_state_dict(state)
    step(made)
    other = hipress.torch.DistributedOptimizer(
        optimizer, model.named_parameters(), {"type": "maxminef", "bits": 8}, min_size=1000
    )
    other.compression.load_state_dict(made.compression.state_dict())
    step(other)
    return [p.detach().numpy().tobytes() for p in model.parameters()]


DEFAULTS = (torch.float32, "cpu")


@pytest.mark.parametrize(("type", "options"), [("onebit", {}), ("powersgd", {"rank": 2})])
def test_training_has_the_same_bits(type, options):
    usual, _ = returned(run_ranks(trained, 2, *DEFAULTS, type, options))
    for dtype, device in ((torch.bfloat16, "cpu"), (torch.float32, "meta")):
        found = returned(run_ranks(trained, 2, dtype, device, type, options))
        assert found == [usual, usual], (dtype, device)


def chosen(rank, dtype, device):
    import hipress.torch

    model = network()
    x, y = batch(rank, 0)
    torch.set_default_dtype(dtype)
    torch.set_default_device(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = hipress.torch.DistributedOptimizer(
        optimizer, model.named_parameters(), "auto", min_size=1000
    )
    for _ in range(3):
        made.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        made.step()
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
    for kind, options in ((torch.optim.AdamW, {}),
                          (hipress.torch.FrozenAdamW, {"freeze_step": 1000})):  # fmt: skip
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
    """What the engine cannot take goes by the user's group, for which a thread waits."""
    import torch.distributed as dist

    import hipress.torch

    counts = []
    for _ in range(4):
        model = network().double()
        made = hipress.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), "none",
            min_size=1 << 20,
        )
        x, y = batch(rank, 0)
        torch.nn.functional.cross_entropy(model(x.double()), y).backward()
        made.step()
        dist.barrier()
        made.compression.engine.close(in_peace=True)
        del made
        gc.collect()
        counts.append(threading.active_count())
    return [counts]


def test_an_engine_that_is_closed_leaves_no_thread():
    for [counts] in returned(run_ranks(engines, 2)):
        assert counts[-1] == counts[0], counts


def snapshot(rank):
    """A state taken before what was loaded has been used is not changed by its use."""
    import hipress.torch

    model = network()
    x, y = batch(rank, 0)

    def made(topology):
        return hipress.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), "onebit",
            topology=topology, min_size=1000,
        )  # fmt: skip

    def step(one):
        one.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        one.step()

    first = made("ps")
    step(first)
    second = made("ring")
    second.compression.load_state_dict(first.compression.state_dict())
    taken = second.compression.state_dict()
    before = {k: v.clone() for k, v in taken.items() if isinstance(v, torch.Tensor)}
    assert any(v.any() for v in before.values())
    step(second)
    return [all(torch.equal(taken[key], value) for key, value in before.items())]


def test_a_snapshot_stays_as_it_is():
    assert returned(run_ranks(snapshot, 2)) == [[True], [True]]
