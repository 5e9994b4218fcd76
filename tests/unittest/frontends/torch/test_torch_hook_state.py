"""HookState and hipress_hook: compression through DDP's register_comm_hook()."""

from __future__ import annotations

import copy

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import MIN_SIZE, loss_of, network, succeed


def ddp_of(**keywords):
    return torch.nn.parallel.DistributedDataParallel(network(), **keywords)


def registered(*args, **settings):
    """Return a model with our hook, and its state."""
    import hipress.torch

    model = ddp_of()
    state = hipress.torch.HookState(*args, **settings)
    model.register_comm_hook(state, hipress.torch.hipress_hook)
    return model, state


def train(model, rank, steps):
    """Train with gradient accumulation, and return the weights' bits."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in steps:
        with model.no_sync():
            loss_of(model, rank, 2 * step).backward()
        loss_of(model, rank, 2 * step + 1).backward()
        optimizer.step()
        optimizer.zero_grad()
    return b"".join(p.detach().numpy().tobytes() for p in model.parameters())


def hooks(rank):
    import hipress.torch

    plain = ddp_of()
    hipress.torch.compress(plain, "onebit", min_size=MIN_SIZE)
    expected = train(plain, rank, range(4))
    model, state = registered("onebit", min_size=MIN_SIZE)
    if rank == 0:  # neither an evaluation nor a pass of no_sync() waits for the other rank
        with torch.no_grad():
            loss_of(model, rank, 0)
    assert state.compression is None
    first = train(model, rank, range(2))
    assert state.compression.step == 2 and copy.deepcopy(model) is not None
    saved, weights = state.state_dict(), copy.deepcopy(model.module.state_dict())
    assert train(model, rank, range(2, 4)) == expected != first
    model, state = registered("onebit", min_size=MIN_SIZE)
    model.module.load_state_dict(weights)
    state.load_state_dict(saved)  # the model is not known yet
    return train(model, rank, range(2, 4)) == expected


def test_hook_state_trains_as_compress_does():
    assert succeed(run_ranks(hooks, 2)) == [True, True]


def defaults(rank, min_size):
    model, state = registered(min_size=min_size)
    plain = ddp_of()
    found = [train(each, rank, range(2)) for each in (model, plain)]
    stats = state.compression.stats()
    return str(state.compression.explain()), stats.compressed + stats.uncompressed, found


def test_hook_state_chooses_a_method_by_default():
    (text, counted, (_, plain)), other = succeed(run_ranks(defaults, 2, MIN_SIZE))
    assert text.startswith("auto: ") and counted > 0 and plain == other[2][1]


def test_hook_state_averages_as_ddp_when_nothing_is_large():
    text, counted, (ours, plain) = succeed(run_ranks(defaults, 2, 10**9))[0]
    assert ours == plain and counted > 0, text


def mistakes(rank):
    import hipress.torch
    from hipress.torch import HookState, hipress_hook

    said = []
    wrong, _ = registered("onebit", ratio=0.1)
    with pytest.raises(ValueError) as error:
        loss_of(wrong, rank, 0)
    said.append(str(error.value))
    model = ddp_of()
    state = HookState("onebit", min_size=MIN_SIZE)
    model.register_comm_hook(state, hipress_hook)
    with pytest.raises(ValueError) as error:
        hipress.torch.compress(model)
    said.append(str(error.value))
    loss_of(model, rank, 0).backward()
    second = ddp_of()
    second.register_comm_hook(state, hipress_hook)
    with pytest.raises(Exception, match="bucket is of another model"):
        loss_of(second, rank, 0).backward()
    unseen = ddp_of()
    with pytest.raises(RuntimeError, match="before the first training step"):
        HookState().state_dict()
    unseen.register_comm_hook(HookState("onebit"), hipress_hook)
    with pytest.raises(Exception, match="HookState found no model"):
        unseen.forward(torch.zeros(8, 64)).sum().backward()
    return said


def test_hook_state_errors_name_the_mistake():
    wrong, twice = returned(run_ranks(mistakes, 2))[0]
    assert "ratio" in wrong
    assert "has a communication hook already" in twice


def compiled(rank):
    model, state = registered("onebit", min_size=MIN_SIZE)
    faster = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        loss_of(faster, rank, step).backward()
        optimizer.step()
        optimizer.zero_grad()
    return state.compression.step, state.compression.stats().compressed > 0


@pytest.mark.slow
def test_hook_state_finds_a_compiled_model():
    assert succeed(run_ranks(compiled, 2)) == [(2, True)] * 2
