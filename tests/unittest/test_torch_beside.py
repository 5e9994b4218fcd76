"""Gradients that are too small to compress: in messages of the engine, beside the large ones."""

import pytest

from test_torch_low_rank import Job
from torch_cluster import run_ranks, torch

SHAPES = {"one": (1,), "large": (300, 7), "bias": (63,), "larger": (5000,), "few": (2, 3)}
"""Of fewer elements than Job's min_size all but "large" and "larger"."""
SMALL = ("one", "bias", "few")
ONE = {"float32": 2**-24, "float16": 2**-11, "bfloat16": 2**-8}
"""Half of the last bit's place, for numbers about 1."""


def gradients(rank):
    generator = torch.Generator().manual_seed(rank)
    return {name: torch.rand(shape, generator=generator) for name, shape in SHAPES.items()}


def refuse(*args, **keywords):
    raise AssertionError("the user's group was used")


def reduce(rank, world_size, topology, kind, average):
    """This rank's results; how far small ones are from the exact mean (or sum), and large ones."""
    import torch.distributed as dist

    dtype = getattr(torch, kind)
    job = Job(rank, dtype, average, SHAPES, topology, "maxmin", bits=8)
    dist.all_reduce = refuse
    for _ in range(2):
        got = job.reduce(gradients(rank))
    every = [gradients(r) for r in range(world_size)]
    apart = {}
    for name, result in got.items():
        want = sum(each[name].to(dtype).double() for each in every)
        want = want / world_size if average else want
        apart[name] = (result.double() - want).abs().max().item()
    return apart, b"".join(result.view(torch.uint8).numpy().tobytes() for result in got.values())


@pytest.mark.parametrize("average", [True, False], ids=["mean", "sum"])
@pytest.mark.parametrize("kind", ONE)
@pytest.mark.parametrize("topology", ["ps", "ring"])
def test_small_gradients_are_exact_to_rounding_and_the_same_everywhere(topology, kind, average):
    found = run_ranks(reduce, 3, 3, topology, kind, average)
    assert all(isinstance(each, tuple) for each in found), found
    apart = found[0][0]
    # Rounded once where the sum is whole, with a ring once more on each rank that passes it on.
    limit = ONE[kind] * (1 if average else 4) * (1 if topology == "ps" else 3) + 1e-6
    assert all(apart[name] <= limit for name in SMALL), apart
    assert 0.1 > apart["larger"] > 2 * ONE["float16"], apart  # which was compressed
    assert len({bits for _, bits in found}) == 1


@pytest.mark.parametrize("topology", ["tree", "butterfly", "star", "hierarchical:2"])
def test_on_every_topology(topology):
    found = run_ranks(reduce, 4, 4, topology, "float32", True)
    assert all(isinstance(each, tuple) for each in found), found
    assert max(found[0][0][name] for name in SMALL) < 1e-6
    assert len({bits for _, bits in found}) == 1


def not_a_number(rank):
    job = Job(rank, shapes=SHAPES, type="maxmin", bits=8)
    values = gradients(rank)
    if rank == 1:
        values["bias"][5] = float("inf")
    bad = {name: bool(result.isfinite().any()) for name, result in job.reduce(values).items()}
    again = job.reduce(gradients(rank))
    return bad, all(bool(result.isfinite().all()) for result in again.values())


def test_an_inf_in_a_small_gradient_reaches_all_ranks_and_leaves_nothing_behind():
    for bad, fine_again in run_ranks(not_a_number, 2):
        assert not any(bad.values()), bad
        assert fine_again


@pytest.mark.parametrize("kind", ONE)
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
