"""Gradients that are too small to compress: in messages of the engine, beside the large ones."""

import pytest

from test_torch_low_rank import Job
from torch_cluster import run_ranks, torch

SHAPES = {"one": (1,), "large": (300, 70), "bias": (4500,), "none": (0,), "larger": (5000,),
          "few": (2, 3)}  # fmt: skip
MIN_SIZE = 5000
"""So that all but "large" and "larger" are small: long enough for all ranks to sum a part."""
SMALL = ("one", "bias", "few")


def gradients(rank, step=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return {name: torch.rand(s, generator=generator).to(dtype) for name, s in SHAPES.items()}


def make(rank, dtype=torch.float32, average=True, topology="ps", type="onebit", **params):
    return Job(rank, dtype, average, SHAPES, topology, type, MIN_SIZE, **params)


def refuse(*args, **keywords):
    raise AssertionError("the user's group was used")


def reduce(rank, world_size, topology, kind, average):
    """By name: how far results are from the exact mean (or sum), and how many elements are not
    that, rounded; into how many parts small ones were cut; the results' bits."""
    import torch.distributed as dist

    dtype = getattr(torch, kind)
    job = make(rank, dtype, average, topology, "maxmin", bits=8)
    dist.all_reduce = refuse
    for _ in range(2):
        got = job.reduce(gradients(rank))
    apart = {}
    for name, result in got.items():
        want = sum(gradients(r, 0, dtype)[name].double() for r in range(world_size))
        want = want / world_size if average else want
        other = int((result != want.to(dtype)).sum())
        apart[name] = (result.double() - want).abs().sum().item() / (len(want) or 1), other
    (bucket,) = job.synchronizer._buckets.values()
    (graph,) = bucket.planned.beside._plan._graphs
    bits = b"".join(result.view(torch.uint8).numpy().tobytes() for result in got.values())
    return apart, len(graph.partitions), bits


def check(found, kind):
    assert all(isinstance(each, tuple) for each in found), found
    apart, parts, _ = found[0]
    if kind == "float32":
        assert all(apart[name][0] < 2**-22 for name in SMALL), apart
    else:  # rounded once, from a float32 of which a tie may be made
        assert all(apart[name][1] <= 2 for name in SMALL), apart
    assert apart["larger"][1] > 1000, apart  # which was compressed
    assert parts == len(found)
    assert len({bits for *_, bits in found}) == 1


@pytest.mark.parametrize("average", [True, False], ids=["mean", "sum"])
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("topology", ["ps", "ring"])
def test_small_gradients_are_exact_to_rounding_and_the_same_everywhere(topology, kind, average):
    check(run_ranks(reduce, 3, 3, topology, kind, average), kind)


@pytest.mark.parametrize("topology", ["tree", "butterfly", "star", "hierarchical:2"])
def test_on_every_topology(topology):
    check(run_ranks(reduce, 4, 4, topology, "float32", True), "float32")


def spoilt(rank, bad):
    """What was not NaN in a step with an Inf, and the small gradients it has left something in."""
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
    for found in run_ranks(spoilt, 2, "bias"):
        assert found == []


def fails(rank):
    from hipress.torch.beside import Joined

    job = make(rank)
    if rank == 1:
        Joined.take = lambda *args: 1 / 0
    job.reduce(gradients(rank))


def test_what_goes_wrong_with_small_gradients_alone_is_told_on_all_ranks():
    first, second = run_ranks(fails, 2)
    assert second == "HipressError: bucket 0 (one, large, bias and 2 more): division by zero"
    assert first.startswith("HipressError: bucket 0") and "rank 1" in first, first


def only_empty(rank):
    job = Job(rank, shapes={"large": (5000,), "none": (0, 7)}, type="onebit", min_size=MIN_SIZE,
              shared_momentum=0.9)  # fmt: skip
    return [len(job.reduce({"large": torch.ones(5000), "none": torch.ones(0, 7)})["large"])] * 2


def test_gradients_without_elements_are_no_messages():
    assert run_ranks(only_empty, 2) == [[5000, 5000]] * 2


def test_many_uncompressed_elements_are_cut_as_topologies_do():
    from hipress.torch.settings import Settings

    class Engine:
        rank, world_size = 0, 4

    from hipress.torch.layout import Gradient
    from hipress.torch.synchronizer import Synchronizer

    parameter = torch.nn.Parameter(torch.zeros(5 << 20))
    of = Synchronizer(Settings("onebit"), Engine(), None, [("a", parameter)])
    counts = {}
    for count in (100, 3000, 60_000, 5 << 20):
        plan = of._uncoded("small", count, torch.float32, [Gradient("a", 0, count)])
        counts[count] = len(plan._graphs[0].partitions)
    assert counts == {100: 1, 3000: 2, 60_000: 4, 5 << 20: 20}


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_joined_copies_there_and_back(kind):
    from hipress.torch.beside import Joined
    from hipress.torch.layout import Gradient

    dtype = getattr(torch, kind)
    flat = torch.arange(100, dtype=dtype)
    place = torch.zeros(14, dtype=torch.float32)
    # The second lies in chunks of 4, 20 apart.
    joined = Joined([Gradient("a", 50, 5), Gradient("b", 3, 9, 4, 20)], place, dtype)
    joined.take(flat)
    assert place.tolist() == [50, 51, 52, 53, 54, 3, 4, 5, 6, 23, 24, 25, 26, 43]
    place.neg_()
    other = torch.zeros(100, dtype=dtype)  # a bucket may lie elsewhere in the next step
    joined.give(other)
    assert other[50:55].tolist() == [-50, -51, -52, -53, -54]
    assert other[23:28].tolist() == [-23, -24, -25, -26, 0]
    assert int(other.count_nonzero()) == 14
