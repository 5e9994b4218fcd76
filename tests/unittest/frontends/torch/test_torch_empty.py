"""Parameters without elements, of layers that a configuration leaves out, train as usual."""

import os

import pytest

pytest.importorskip("torch")

import torch

from harness.torch_ranks import returned, run_ranks

TYPES = [("fp16", {}, 0), ("fp16", {}, 1000), ("powersgd", {"rank": 2}, 0)]


class Partly(torch.nn.Module):
    """Model with an empty parameter among others, and, of another dtype, one alone in a bucket."""

    def __init__(self, dtypes=2):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(40, 30)
        self.nothing = torch.nn.Parameter(torch.zeros(0, 8))
        short = torch.float16 if dtypes == 2 else torch.float32
        self.short = torch.nn.Parameter(torch.zeros(3, 0, dtype=short))
        self.last = torch.nn.Linear(30, 5)

    def forward(self, x):
        return self.last(self.first(x)).sum() + self.nothing.sum() + self.short.sum()


def backward(model, rank, step):
    model.zero_grad()
    model(torch.full((2, 40), 0.25 * (rank + 1 + step))).backward()  # whole halves: exact in fp16


def gradients(model):
    found = [p.grad for p in model.parameters() if p.requires_grad]
    return [getattr(each, "full_tensor", lambda each=each: each)() for each in found]


def same(one, other):
    pairs = list(zip(one, other))
    assert all(a.shape == b.shape for a, b in pairs)
    return all(torch.allclose(a, b, atol=1e-3) for a, b in pairs)


def in_ddp(rank, type, params, min_size):
    """Return gradients of DDP models without and with the hook, in three steps; and the state."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    plain, model = (DistributedDataParallel(Partly()) for _ in range(2))
    compression = hipress.torch.compress(model, type, min_size=min_size, **params)
    alike = []
    for step in range(3):
        for each in (plain, model):
            backward(each, rank, step)
        alike.append(same(gradients(plain), gradients(model)))
    compression.load_state_dict(compression.state_dict())
    return alike, sorted(compression.stats().parameters)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("type", "params", "min_size"), TYPES)
def test_ddp(type, params, min_size):
    for alike, uncompressed in returned(run_ranks(in_ddp, 2, type, params, min_size)):
        assert all(alike)
        assert not {"nothing", "short"} & set(uncompressed)  # there was nothing to compress


def in_the_optimizer(rank, type, params, min_size):
    import torch.distributed as dist

    import hipress.torch

    plain, model = Partly(), Partly()
    hipress.torch.broadcast_parameters(model.state_dict())
    optimizer = hipress.torch.DistributedOptimizer(
        hipress.torch.FrozenAdamW(model.parameters(), lr=0.0, freeze_step=1),
        model.named_parameters(),
        {"type": type, **params},
        min_size=min_size,
    )
    alike = []
    for step in range(3):
        backward(plain, rank, step)
        for p in plain.parameters():
            dist.all_reduce(p.grad)
            p.grad.div_(2)
        backward(model, rank, step)
        optimizer.step()
        alike.append(same(gradients(plain), gradients(model)))
    return alike


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("type", "params", "min_size"), TYPES)
def test_distributed_optimizer(type, params, min_size):
    assert all(map(all, returned(run_ranks(in_the_optimizer, 2, type, params, min_size))))


def on_the_backend(rank, min_size):
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch  # noqa: F401

    os.environ.update(HIPRESS_MIN_SIZE=str(min_size), HIPRESS_COMPRESSION="fp16")
    group = dist.new_group(backend="hipress")
    plain = DistributedDataParallel(Partly())
    model = DistributedDataParallel(Partly(), process_group=group)
    alike = []
    for step in range(3):
        for each in (plain, model):
            backward(each, rank, step)
        alike.append(same(gradients(plain), gradients(model)))
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        dist.all_reduce(torch.zeros(2, 0), op, group)
    return alike


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("min_size", [0, 1000])
def test_backend(min_size):
    assert all(map(all, returned(run_ranks(on_the_backend, 2, min_size))))


def in_fsdp(rank, hybrid):
    """FSDP2 cannot reduce empty parameters, compressed or not, but may hold them frozen."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    options, mesh = {"min_size": 0}, init_device_mesh("cpu", (2,))
    groups = [dist.new_group([r]) for r in range(2)]
    if hybrid:  # of one host
        options["replicate_group"] = groups[rank]

    def sharded(frozen):
        model = Partly(dtypes=1)  # as FSDP2 wants it
        for p in (model.nothing, model.short):
            p.requires_grad_(not frozen)
        return fully_shard(model, mesh=mesh)

    with pytest.raises(RuntimeError):
        backward(sharded(frozen=False), rank, 0)
    with pytest.raises(ValueError) as error:
        hipress.torch.compress_fsdp(sharded(frozen=False), "fp16", **options)
    plain, model = sharded(frozen=True), sharded(frozen=True)
    hipress.torch.compress_fsdp(model, "fp16", **options)
    for each in (plain, model):
        backward(each, rank, 1)
    return str(error.value), same(gradients(plain), gradients(model))


@pytest.mark.parametrize("hybrid", [False, True])
def test_fsdp(hybrid):
    for sentence, alike in returned(run_ranks(in_fsdp, 2, hybrid)):
        assert "parameter 'nothing' has no elements, and FSDP2 cannot reduce" in sentence
        assert alike
