"""Gradients that are too small to compress, packed in the engine's fusion buffer."""

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_low_rank import Job

SHAPES = {
    "one": (1,),
    "large": (300, 70),
    "bias": (4500,),
    "none": (0,),
    "larger": (5000,),
    "few": (2, 3),
}
MIN_SIZE = 5000
"""Size from which on gradients are large; small ones are enough for all ranks to sum a part."""
SMALL = ("one", "bias", "few")


def gradients(rank, step=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return {name: torch.rand(s, generator=generator).to(dtype) for name, s in SHAPES.items()}


def make(rank, dtype=torch.float32, average=True, topology="ps", type="onebit", **params):
    return Job(rank, dtype, average, SHAPES, topology, type, MIN_SIZE, **params)


def refuse(*args, **keywords):
    raise AssertionError("the user's group was used")


def reduce(rank, world_size, topology, kind, average):
    """Return, by name, how far results are from the exact mean (or sum), and how many elements
    differ from it after rounding; the number of partitions of small ones; the results' bits."""
    import torch.distributed as dist

    dtype = getattr(torch, kind)
    job = make(rank, dtype, average, topology, "maxmin", bits=8)
    dist.all_reduce = refuse
    for _ in range(2):
        got = job.reduce(gradients(rank))
    separate = {}
    for name, result in got.items():
        want = sum(gradients(r, 0, dtype)[name].double() for r in range(world_size))
        want = want / world_size if average else want
        other = int((result != want.to(dtype)).sum())
        separate[name] = (result.double() - want).abs().sum().item() / (len(want) or 1), other
    cuts = job.synchronizer.collective.fused_graph(sum(n for _, n in small(job)), 0).partitions
    bits = b"".join(result.view(torch.uint8).numpy().tobytes() for result in got.values())
    return separate, len(cuts), bits


def small(job):
    return [(name, job.synchronizer.sizes[name]) for name in SMALL]


def check(found, kind):
    assert all(isinstance(each, tuple) for each in found), found
    separate, parts, _ = found[0]
    if kind == "float32":
        assert all(separate[name][0] < 2**-22 for name in SMALL), separate
    else:  # rounded once, from a float32 of which a tie may be made
        assert all(separate[name][1] <= 2 for name in SMALL), separate
    assert separate["larger"][1] > 1000, separate  # which was compressed
    assert parts == len(found)
    assert len({bits for *_, bits in found}) == 1


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("average", [True, False], ids=["mean", "sum"])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("topology", ["ps", "ring"])
def test_small_gradients_are_exact_to_rounding_and_the_same_everywhere(topology, kind, average):
    check(run_ranks(reduce, 3, 3, topology, kind, average), kind)


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["tree", "butterfly", "star", "hierarchical:2"])
def test_on_every_topology(topology):
    check(run_ranks(reduce, 4, 4, topology, "float32", True), "float32")


def nonfinite(rank, bad):
    """Return results that were not NaN in a step with an Inf, and small gradients that it has
    changed."""
    job, other = (make(rank, shared_momentum=0.9) for _ in range(2))
    for each in (job, other):
        each.reduce(gradients(rank))
    values = gradients(rank, 1)
    if rank == 1:
        values[bad].view(-1)[5] = float("inf")
    results = {("nan", n): r.isnan().all() for n, r in job.reduce(values).items()}
    for step in (2, 3):
        a, b = (each.reduce(gradients(rank, step)) for each in (job, other))
        results |= {(step, name): torch.equal(a[name], b[name]) for name in SMALL}
    return [key for key, fine in results.items() if not fine]


def test_an_inf_in_a_small_gradient_reaches_all_ranks_and_leaves_nothing_behind():
    for found in run_ranks(nonfinite, 2, "bias"):
        assert found == []


def fails(rank):
    from hipress.torch.executors.host import HostExecutor

    job = make(rank)
    if rank == 1:
        HostExecutor._fused_key = lambda *args: 1 / 0
    job.reduce(gradients(rank))


def test_what_goes_wrong_with_small_gradients_alone_is_told_on_all_ranks():
    first, second = run_ranks(fails, 2)
    assert second == "HipressError: bucket 0 (one, large, bias and 2 more): division by zero"
    assert first.startswith("HipressError: bucket 0") and "rank 1" in first, first


def only_empty(rank):
    job = Job(
        rank,
        shapes={"large": (5000,), "none": (0, 7)},
        type="onebit",
        min_size=MIN_SIZE,
        shared_momentum=0.9,
    )
    return [len(job.reduce({"large": torch.ones(5000), "none": torch.ones(0, 7)})["large"])] * 2


def test_gradients_without_elements_are_no_messages():
    assert run_ranks(only_empty, 2) == [[5000, 5000]] * 2


def test_many_uncompressed_elements_are_cut_as_topologies_do():
    from hipress.torch.settings import Settings
    from hipress.torch.synchronizer import Synchronizer

    class Engine:
        rank, world_size = 0, 4

    parameter = torch.nn.Parameter(torch.zeros(5 << 20))
    of = Synchronizer(Settings("onebit"), Engine(), None, [("a", parameter)])
    graph = of.collective.fused_graph
    counts = {n: len(graph(n, 0).partitions) for n in (100, 3000, 60_000, 5 << 20)}
    assert counts == {100: 1, 3000: 2, 60_000: 4, 5 << 20: 20}


def adjacent(rank):
    """Reduce gradients of which none is compressed: they are sent without a copy, adjacent ones as
    one."""
    from hipress.torch.gradient import Gradient, merge_adjacent

    flat = [Gradient("a", 0, 5), Gradient("b", 5, 3), Gradient("c", 9, 2)]
    rows = [Gradient("d", 0, 7, 4, 10), Gradient("e", 4, 8, 4, 10), Gradient("f", 9, 2, 1, 10)]
    return [tuple(run)[1:] for run in (*merge_adjacent(flat), *merge_adjacent(rows))]


def test_adjacent_gradients_are_one_key():
    assert adjacent(0) == [
        (0, 8, 0, 0),
        (9, 2, 0, 0),
        (0, 16, 8, 10),
        (9, 2, 1, 10),
    ]
