"""FSDP2 with reentrant checkpoints, whose backward passes run inside another: together one step."""

import dataclasses

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import succeed
from test_torch_fsdp import (  # skips where PyTorch has no FSDP2 that can be compressed
    Fails,
    check_retries,
    reduces_unused,
)

WIDTH, BLOCKS, MIN_SIZE = 24, 3, 100


@dataclasses.dataclass
class Output:
    """Output that a model may return in the place of a tensor."""

    values: torch.Tensor


class Model(torch.nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self._reentrant = reentrant
        self.first, self.last = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(BLOCKS))
        self.wrap = lambda found: found

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True) if self._reentrant else block(x)
            x = x.relu()
        return self.wrap(self.last(x))


def made(reentrant=True, type="onebit", **settings):
    """Return a model that is sharded block by block, its compression, and what has begun."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    torch.manual_seed(5)
    model, mesh = Model(reentrant), init_device_mesh("cpu", (2,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    compression = hipress.torch.compress_fsdp(model, type, min_size=MIN_SIZE, **settings)
    seen = []
    begin, start = compression.begin_step, compression.start_bucket
    compression.begin_step = lambda: seen.append("begin") or begin()
    compression.start_bucket = lambda *bucket: seen.append(compression.step) or start(*bucket)
    return model, compression, seen


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * rank + step)
    return torch.randn(8, WIDTH, generator=generator)


def gradients(model):
    return [p.grad.to_local().clone() for p in model.parameters()]


def passes(rank):
    """Count each backward pass once, with the same bits as without checkpoints."""
    (one, ones, seen), (other, others, _) = (made(kind, warmup_steps=2) for kind in (True, False))
    for step in range(4):
        for model in (one, other):
            model.zero_grad()
            model(batch(rank, step)).square().mean().backward()
        assert seen == ["begin"] + [step] * (BLOCKS + 1), seen
        seen.clear()
        assert ones.step == others.step == step + 1
        assert bool(ones.error_feedback.states) == (step >= 2)
        for mine, theirs in zip(gradients(one), gradients(other), strict=True):
            assert torch.equal(mine, theirs), step


def test_a_backward_pass_with_checkpoints_is_one_step():
    returned(run_ranks(passes, 2))


def accumulates(rank):
    """Accumulate: several passes between reductions are one step; two that reduce are two."""
    model, compression, seen = made()
    for step in range(2):
        model.set_requires_gradient_sync(False)
        for part in range(2):
            model(batch(rank, part)).square().mean().backward()
            assert compression.step == step and not seen
        model.set_requires_gradient_sync(True)
        model(batch(rank, 2)).square().mean().backward()
        assert compression.step == step + 1 and seen == ["begin"] + [step] * (BLOCKS + 1)
        seen.clear()
    if not hasattr(type(model), "set_reduce_scatter_unused_params"):
        return  # before 2.13, PyTorch fails when it computes the first of two passes again
    both = model(batch(rank, 3)).square().mean() + model(batch(rank, 4)).square().mean()
    both.backward()
    assert compression.step == 3 and seen.count("begin") == 1


def test_accumulated_gradients_are_one_step():
    returned(run_ranks(accumulates, 2))


def counts_steps(rank):
    """Try all kinds of model outputs, and a model that is checkpointed as a whole."""
    from torch.utils.checkpoint import checkpoint

    model, compression, seen = made()
    found = []
    for step, wrap in enumerate([lambda x: {"a": [1, (x,)]}, Output, lambda x: (x, None)]):
        model.wrap = wrap
        output = model(batch(rank, step))
        output = {dict: lambda o: o["a"][1][0], Output: lambda o: o.values}.get(
            type(output), lambda o: o[0]
        )(output)
        output.square().mean().backward()
        found.append((compression.step, seen.count("begin")))
    model.wrap = lambda x: x
    given = batch(rank, 3).requires_grad_()
    checkpoint(model, given, use_reentrant=True).square().mean().backward()
    found.append((compression.step, seen.count("begin")))
    with torch.no_grad():
        model(batch(rank, 4))
    model(batch(rank, 4)).square().mean().backward()
    return [*found, (compression.step, seen.count("begin"))]


@reduces_unused
def test_whatever_the_model_returns():
    assert succeed(run_ranks(counts_steps, 2)) == [[(n, n) for n in (1, 2, 3, 4, 5)]] * 2


def retries(rank):
    """An error in a checkpoint's backward pass, after others have finished, makes no step of it."""
    model, compression, seen = made(warmup_steps=1)
    hook = model.first.register_forward_hook(lambda module, given, out: Fails.apply(out))
    with pytest.raises(ArithmeticError):
        model(batch(rank, 0)).square().mean().backward()
    hook.remove()
    model.reset_iter_state()
    assert seen == ["begin"] + [0] * BLOCKS and compression.step == 0
    for step in range(2):
        seen.clear()
        model.zero_grad()
        model(batch(rank, step)).square().mean().backward()
        assert compression.step == step + 1 and seen == ["begin"] + [step] * (BLOCKS + 1)
    assert compression.error_feedback.states


def test_an_error_after_some_checkpoints_is_no_step():
    check_retries(retries)
