"""Operations that a process group of "hipress" passes on to Gloo: as with Gloo itself, and counted
where they are not compressed."""

import os

import pytest

pytest.importorskip("torch")

import torch

from harness.torch_ranks import returned, run_ranks


def groups():
    """One of Gloo, and one of ours that compresses everything, to float16."""
    import torch.distributed as dist

    import hipress.torch  # noqa: F401

    os.environ.update(HIPRESS_MIN_SIZE="0", HIPRESS_COMPRESSION="fp16")
    return dist.new_group(backend="gloo"), dist.new_group(backend="hipress")


def collectives(rank, dtype, group):
    """The results of all kinds, by name, or the type of what they raise; of small whole numbers,
    which float16 holds."""
    import torch.distributed as dist

    factor = 1 + 2j if dtype.is_complex else 1

    def mine(count=6):
        return torch.arange(count).to(dtype) * factor + rank

    def all_reduce(op, tensor):
        dist.all_reduce(tensor, op, group)
        return tensor

    def gather():
        found = [mine(3) for _ in range(2)] if rank == 0 else None
        dist.gather(mine(3), found, dst=0, group=group)
        return found

    def point_to_point():
        tensor = mine()
        if rank:
            dist.send(tensor, 0, group)
        else:
            dist.recv(tensor, 1, group)
        return tensor

    def into(call, count, *inputs):
        found = torch.zeros(count, dtype=dtype)
        call(found, *inputs, group=group)
        return found

    def in_place(call, tensors, *options):
        call(tensors, *options, group=group)
        return tensors

    ops = {
        f"all_reduce {op}": lambda op=op: all_reduce(getattr(dist.ReduceOp, op), mine())
        for op in ("SUM", "AVG", "MAX", "PRODUCT")
    }
    ops |= {
        "of columns": lambda: all_reduce(dist.ReduceOp.SUM, mine().view(2, 3).t()),
        "coalesced": lambda: in_place(dist.all_reduce_coalesced, [mine(3), mine(4)]),
        "all_gather": lambda: in_place(dist.all_gather, [mine(3), mine(3)], mine(3)),
        "broadcast": lambda: in_place(dist.broadcast, mine(), 0),
        "reduce": lambda: in_place(dist.reduce, mine(), 0)[: 0 if rank else 6],
        "reduce_scatter": lambda: into(dist.reduce_scatter, 3, [mine(3), mine(3)]),
        "reduce_scatter_tensor": lambda: into(dist.reduce_scatter_tensor, 3, mine()),
        "all_to_all": lambda: into(dist.all_to_all_single, 6, mine()),
        "scatter": lambda: into(dist.scatter, 3, [mine(3), mine(3)] if rank == 0 else None),
        "gather": gather,
        "point to point": point_to_point,
    }
    found = {}
    for name, op in ops.items():
        try:
            value = op()
            found[name] = [each.tolist() for each in value] if value is not None else None
        except (RuntimeError, ValueError) as error:
            found[name] = type(error).__name__
    return found


def both(rank, dtype):
    gloo, ours = groups()
    return collectives(rank, dtype, gloo), collectives(rank, dtype, ours), ours.stats().compressed


DTYPES = ["complex64", "complex128", "float32", "float64", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_collectives_are_gloos(dtype):
    for theirs, ours, compressed in returned(run_ranks(both, 2, getattr(torch, dtype))):
        assert ours == theirs
        assert theirs["all_reduce SUM"] != "RuntimeError"
        # A complex number is two real ones: those of 32 bits are compressed.
        sizes = {"complex64": 48, "float32": 24}
        assert compressed == 2 * sizes.get(dtype, 0)  # the sum and the mean


def barriers(rank):
    """PyTorch's monitored_barrier() asks for Gloo by its name; a group has a method, too."""
    import datetime

    import torch.distributed as dist

    gloo, ours = groups()
    dist.monitored_barrier(gloo)
    ours.monitored_barrier()
    with pytest.raises(ValueError) as refused:
        dist.monitored_barrier(ours)
    with pytest.raises(NotImplementedError) as split:
        ours.split_group([0, 1])
    dist.barrier(ours)
    missing = []
    for group in (gloo, ours):
        if rank == 0:
            try:
                group.monitored_barrier(datetime.timedelta(seconds=0.5), wait_all_ranks=True)
            except RuntimeError as error:
                missing.append("Ranks 1 failed to pass monitoredBarrier" in str(error))
    dist.barrier()
    return str(refused.value), str(split.value), missing


def test_monitored_barrier_and_split_group():
    found = returned(run_ranks(barriers, 2))
    assert found[0][2] == [True, True]
    for refused, split, _ in found:
        assert "only implemented for GLOO" in refused
        assert "cannot be split" in split and "new_group(ranks, backend='hipress')" in split


def counted(rank):
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch  # noqa: F401

    os.environ.update(HIPRESS_MIN_SIZE="1000")
    alone = [dist.new_group([r], backend="hipress") for r in range(2)][rank]
    group = dist.new_group(backend="hipress")
    dist.all_reduce(torch.zeros(2000), group=alone)
    for tensor in (torch.zeros(2000), torch.zeros(10), torch.zeros(2000, dtype=torch.float64)):
        dist.all_reduce(tensor, group=group)
    dist.all_reduce(torch.zeros(2000), dist.ReduceOp.MAX, group)
    dist.all_reduce_coalesced([torch.zeros(2000), torch.zeros(1000)], group=group)
    dist.reduce(torch.zeros(2000), 0, group=group)
    dist.reduce_scatter(torch.zeros(50), [torch.zeros(50)] * 2, group=group)
    dist.reduce_scatter_tensor(torch.zeros(100), torch.zeros(200), group=group)
    dist.broadcast(torch.zeros(5000), 0, group)  # reduces nothing
    model = DistributedDataParallel(torch.nn.Linear(50, 50), process_group=group)
    model(torch.ones(1, 50)).sum().backward()
    found = group.stats()
    why = {name: (each.bytes, *each.reasons) for name, each in found.parameters.items()}
    return found.compressed, found.uncompressed, why, str(alone.stats())


@pytest.mark.filterwarnings("ignore")
def test_stats_tell_what_went_uncompressed_and_why():
    other = "of another kind than all_reduce()"
    for compressed, uncompressed, why, alone in returned(run_ranks(counted, 2)):
        assert compressed == 8000 + 2550 * 4
        name = next(name for name in why if name.endswith("of 200 elements"))
        assert why == {
            "all-reduce of 10 elements": (40, "of fewer than 1000 elements (min_size)"),
            "all-reduce of 2000 elements": (24000, "of float64", "by MAX"),
            "allreduce_coalesced of 3000 elements": (12000, other),
            "reduce of 2000 elements": (8000, other),
            "reduce_scatter of 100 elements": (400, other),
            name: (800, other),
        }
        assert uncompressed == sum(size for size, *_ in why.values())
        assert alone.endswith("all-reduce of 2000 elements: 8000 not, of one rank alone")


def compiled(rank):
    """DDP of a compiled model: torch.compile() meets the group's methods."""
    from torch.nn.parallel import DistributedDataParallel

    grads = []
    for group in groups():
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(40, 30), process_group=group)
        step = torch.compile(model, backend="aot_eager")
        step(torch.full((2, 40), 0.5 * (rank + 1))).sum().backward()
        grads.append([p.grad.tolist() for p in model.parameters()])
    return grads[0] == grads[1]


def test_compiled_models():
    assert all(returned(run_ranks(compiled, 2)))
