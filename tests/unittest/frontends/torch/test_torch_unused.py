"""Parameters that some ranks leave unused.

No rank waits in a backward pass for others to reach a bucket, which they may do in step() only.
"""

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import bits


def branches():
    torch.manual_seed(0)
    return torch.nn.ModuleDict({name: torch.nn.Linear(32, 32) for name in "abc"})


def distributed(named, compression="fp16", **options):
    import hipress.torch as hvd

    named = list(named)
    inner = torch.optim.SGD([p for _, p in named], lr=0.1)
    return hvd.DistributedOptimizer(inner, named, compression, min_size=1, timeout=8, **options)


def logs_its_loss(rank, compression, warmup_steps):
    """Use all of a bucket's parameters on all ranks in the warm-up; afterwards one rank leaves some
    unused. Between backward() and step() the ranks run a collective operation."""
    import torch.distributed as dist

    model = branches()
    del model["b"]
    options = {"warmup_steps": warmup_steps}
    optimizer = distributed(model.named_parameters(), compression, **options)
    for step in range(warmup_steps + 2):
        optimizer.zero_grad()
        y = model["a"](torch.ones(2, 32))
        if rank == 0 or step < warmup_steps:
            y = model["c"](y)
        loss = y.sum()
        loss.backward()
        dist.all_reduce(loss.detach())
        optimizer.step()
    # Those of the warm-up are forgotten.
    return bits(model), [key[3] for key in optimizer.compression._buckets]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("warmup_steps", [0, 2])
@pytest.mark.parametrize("compression", ["fp16", "onebit", "none", {"type": "powersgd", "rank": 1}])
def test_a_rank_may_have_something_to_do_before_step(compression, warmup_steps):
    first, second = returned(run_ranks(logs_its_loss, 2, compression, warmup_steps))
    assert first == second and first[1] == [False]


def two(rank):
    """Train two optimizers, whose buckets come in another order on one rank."""
    model = branches()
    named = list(model.named_parameters())
    one = distributed([pair for pair in named if pair[0][0] == "c"], "onebit")
    other = distributed([pair for pair in named if pair[0][0] != "c"], "onebit")
    for step in range(3):
        y = model["b"](model["a"](torch.full((2, 32), rank + 1.0)))
        if rank == 0 or step:
            y = model["c"](y)
        y.sum().backward()
        for optimizer in (one, other):
            optimizer.step()
            optimizer.zero_grad()
    return bits(model)


def test_two_optimizers_of_one_model():
    first, second = returned(run_ranks(two, 2))
    assert first == second


def train(model, optimizer, rank, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model["c"](model["a"](torch.full((2, 32), rank + 1.0))).square().sum().backward()
        optimizer.step()


def leaves(rank, compression):
    model = branches()
    optimizer = distributed(model.named_parameters(), compression)
    train(model, optimizer, rank, 3)
    return optimizer.compression.state_dict()


def takes_over(rank, states, compression):
    """Let a job of another size assign a state to what it has prepared and to what it prepares when
    a bucket comes; also if it is loaded twice, but not after a step."""
    found = []
    for prepared in (True, False):
        model = branches()
        optimizer = distributed(model.named_parameters(), compression)
        if not prepared:
            optimizer.compression.replace_codec(optimizer.compression.settings)
        for _ in range(2 if prepared else 1):
            optimizer.compression.load_state_dict(states)
        train(model, optimizer, rank, 1)
        with pytest.raises(ValueError, match="before the first step"):
            optimizer.compression.load_state_dict(states)
        train(model, optimizer, rank, 1)
        found.append((bits(model), optimizer.compression.step))
    fresh = branches()
    train(fresh, distributed(fresh.named_parameters(), compression), rank, 2)
    return [*found, (bits(fresh), 5)]


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["onebit", {"type": "powersgd", "rank": 1}])
def test_what_a_job_of_another_size_has_left_is_loaded_all_the_same(compression):
    found = returned(run_ranks(leaves, 3, compression))
    states = {key: value for state in found for key, value in state.items()}
    for prepared, when_it_comes, fresh in returned(run_ranks(takes_over, 2, states, compression)):
        assert prepared == when_it_comes and prepared[1] == 5 and prepared != fresh
