"""Barriers, statistics and compiled models with the backend "hipress"."""

import os

import pytest

pytest.importorskip("torch")

import torch

from harness.torch_ranks import returned, run_ranks


def groups():
    """Create a Gloo group, and a HiPress group that compresses everything to float16."""
    import torch.distributed as dist

    import hipress.torch  # noqa: F401

    os.environ.update(HIPRESS_MIN_SIZE="0", HIPRESS_COMPRESSION="fp16")
    return dist.new_group(backend="gloo"), dist.new_group(backend="hipress")


def barriers(rank):
    """Return the errors of monitored_barrier() and of the refused operations."""
    import datetime

    import torch.distributed as dist

    gloo, ours = groups()
    dist.monitored_barrier(gloo)
    ours.monitored_barrier()
    by_name = ""
    try:
        dist.monitored_barrier(ours)
    except ValueError as error:
        by_name = str(error)
    refused = []
    for call in (lambda: ours.split_group([0, 1]), lambda: ours.merge_remote_group(None, 4)):
        with pytest.raises(NotImplementedError) as error:
            call()
        refused.append(str(error.value))
    dist.barrier(ours)
    missing = []
    for group in (gloo, ours):
        if rank == 0:
            try:
                group.monitored_barrier(datetime.timedelta(seconds=0.5), wait_all_ranks=True)
            except RuntimeError as error:
                missing.append("Ranks 1 failed to pass monitoredBarrier" in str(error))
    dist.barrier()
    return missing, refused, by_name


@pytest.mark.slow
def test_monitored_barrier_and_split_group():
    found = returned(run_ranks(barriers, 2))
    assert found[0][0] == [True, True]
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    for _, (split, merged), error in found:
        assert "cannot be split" in split and "new_group(ranks, backend='hipress')" in split
        assert "cannot be merged" in merged
        # PyTorch's function requests Gloo by name before 2.14.
        assert ("only implemented for GLOO" in error) == (version < (2, 14)), error


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


@pytest.mark.slow
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
    """Train DDP of a compiled model: torch.compile() meets the group's methods."""
    from torch.nn.parallel import DistributedDataParallel

    grads = []
    for group in groups():
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(40, 30), process_group=group)
        step = torch.compile(model, backend="aot_eager")
        step(torch.full((2, 40), 0.5 * (rank + 1))).sum().backward()
        grads.append([p.grad.tolist() for p in model.parameters()])
    return grads[0] == grads[1]


@pytest.mark.slow
def test_compiled_models():
    assert all(returned(run_ranks(compiled, 2)))
