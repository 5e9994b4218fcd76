"""plan="auto": which gradients to compress, measured by the ranks themselves."""

from __future__ import annotations

import math

import pytest

from harness.torch_ranks import run_ranks, torch
from known_times import logged
from test_torch_ddp import batch, network, wrap


def half(compressed, rank, number):
    """Return the seconds of a step of the model's gradients."""
    return 0.5 if compressed else 1.0


def chosen(rank, seconds, type="onebit", params=None, min_size=100, tried=half):
    """Run ranks that measure ``seconds(compressed, size, rank)``, then, in the trial's repetition
    ``number``, ``tried(compressed, rank, number)``. Return what they log."""
    from collections import Counter

    from hipress.torch.autotune import choice, frontend

    lines = logged()
    if seconds is not None:
        frontend.GroupFrontend.time_size = lambda _, n, compressed: seconds(compressed, n, rank)
        rounds = Counter()

        def step_seconds(step):
            compressed = step.settings.min_size < choice.NEVER
            rounds[compressed] += 1
            return tried(compressed, rank, rounds[compressed] - 1)

        frontend.Sample.seconds = step_seconds
    ddp, compression = wrap(network(), type, plan="auto", min_size=min_size, **(params or {}))
    x, y = batch(rank, 0)
    torch.nn.functional.cross_entropy(ddp(x), y).backward()
    found = b"".join(p.grad.numpy().tobytes() for p in ddp.parameters())
    return compression.settings.min_size, lines, found, list(compression.error_feedback.states)


def both(*args):
    """Return the results of both ranks, which end with the same size and the same gradients."""
    found = run_ranks(chosen, 2, *args)
    assert not any(isinstance(one, str) for one in found), found
    assert found[0][0] == found[1][0] and found[0][2] == found[1][2]
    return found


def pays_from_20000(compressed, size, rank):
    """Return times where compression pays from 20,000 on. Rank 1 is twice as slow with everything,
    which changes nothing."""
    return (1 + rank) * (1e-4 + 1e-9 * size if compressed else 1e-6 * size / 200)


def never_pays(compressed, size, rank):
    return 1e-9 * size * (2 if compressed else 1)


def rank_1_disagrees(compressed, size, rank):
    """Return times with which rank 0 alone would compress everything and rank 1 nothing; rank 1's
    loss is the larger."""
    return 1e-9 * size * ([0.9, 8.0][rank] if compressed else 1.0)


def test_ranks_take_the_same_answer_and_train():
    found = both(pays_from_20000)
    least = found[0][0]
    assert 20_000 <= least <= 30_000
    assert {name for name, _ in found[0][3]} == {"2.weight"}  # 40,000 elements; the next has 12,800
    assert any(f"onebit pays from {least} elements on" in line for line in found[0][1])
    assert not found[1][1]  # rank 0 speaks for all


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("seconds", [never_pays, rank_1_disagrees])
def test_what_gains_nothing_is_not_compressed(seconds):
    for rank, (least, lines, _, states) in enumerate(both(seconds)):
        assert least > 1e9 and not states
        assert any("nothing is compressed" in line for line in lines) == (rank == 0)


def test_min_size_stays_the_least():
    assert both(pays_from_20000, "onebit", {}, 25_000)[0][0] >= 25_000
    assert both(pays_from_20000, "onebit", {}, 50_000)[0][0] == 50_000  # which no gradient has


def slower(compressed, rank, number):
    return 1.1 if compressed else 1.0


def slow_rank(compressed, rank, number):
    """Return times with which all wait for rank 1, which loses more than rank 0 wins."""
    return [0.1, 1.3][rank] if compressed else 1.0


def two_rounds_slower(compressed, rank, number):
    """Return times of two slower repetitions: the first, which does not count, and one of five. In
    sum, compressed would be slower."""
    return (0.9 if number in (0, 3) else 0.09) if compressed else 0.1


def one_round(compressed, rank, number):
    """Return times with one repetition that uses up the time limit, and so does the one
    before it."""
    assert number < 2
    return 5.0 if compressed else 6.0


@pytest.mark.parametrize(
    ("tried", "ratio"),
    [(slower, 1.1), (slow_rank, 1.3), (half, 0.5), (two_rounds_slower, 0.9), (one_round, 0.83)],
)
def test_the_plan_is_tried_with_the_models_gradients(tried, ratio):
    found = both(pays_from_20000, "onebit", {}, 100, tried)
    least, lines, _, states = found[0]
    assert (least > 1e9, not states) == ((True, True) if ratio > 1 else (False, False))
    (line,) = (line for line in lines if "this model's gradients" in line)
    assert f"took {ratio:.2f} times as long compressed as not" in line
    assert ("nothing is compressed" in line) == (ratio > 1)
    assert not found[1][1]


def sharded_sizes(rank):
    """Return the sizes that are tried with FSDP2's modules: whole parameters, or one host's
    shards."""
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch
    from hipress.autotune import threshold
    from hipress.torch.autotune import choice, frontend
    from test_torch_fsdp import sharded

    tried = []
    frontend.GroupFrontend.time_size = lambda _, n, compressed: (
        pays_from_20000(compressed, n, rank) / 9
    )
    threshold.threshold = lambda *curves: 1000
    real = choice.sample_buckets
    choice.sample_buckets = lambda shapes: tried.append(shapes) or real(shapes)
    choice.preview = lambda compressed, plain: 0.5
    both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    for mesh, group in (
        (init_device_mesh("cpu", (4,)), None),
        (both["shard"], both["replicate"].get_group()),
    ):
        model = sharded(mesh)
        hipress.torch.compress_fsdp(model, "onebit", plan="auto", min_size=9, replicate_group=group)
    return [shapes["parts.0.uneven"] for shapes in tried]


@pytest.mark.slow
def test_a_trial_of_fsdp_has_the_gradients_that_are_synchronised():
    pytest.importorskip("test_torch_fsdp")  # which skips where FSDP2 has not what it needs
    found = run_ranks(sharded_sizes, 4)
    assert found == [[(37 * 65,), (19 * 65,)], [(37 * 65,), (18 * 65,)]] * 2


def test_a_trial_has_the_models_sizes():
    from hipress.torch.autotune.frontend import BUCKET_ELEMENTS as BUCKET
    from hipress.torch.autotune.frontend import MAX_ELEMENTS as MOST
    from hipress.torch.autotune.frontend import sample_buckets

    shapes = {"a": (7,), "none": (0,), "b": (BUCKET,), "c": (5, 1), "d": (3,)}
    assert sample_buckets(shapes) == [[(3,), (5, 1), (BUCKET,)], [(7,)]]
    assert sample_buckets({"temperature": (), "weight": (2, 3)}) == [[(2, 3), ()]]
    sizes = ("w", (1 << 10, 1 << 10)), ("b", (9,))
    layers = {f"{i}.{name}": shape for i in range(99) for name, shape in sizes}
    sizes = [math.prod(shape) for bucket in sample_buckets(layers) for shape in bucket]
    assert sizes.count(9) == pytest.approx(sizes.count(1 << 20), abs=2)
    assert 0.8 * MOST < sum(sizes) < 1.2 * MOST
    assert sample_buckets({"large": (9 * MOST,), "b": (9,)}) == [[(MOST,)]]
    assert sample_buckets({"large": (9 * 4096, 2, MOST // 8192)}) == [[(4096, 2, MOST // 8192)]]


def dtypes_tried(rank):
    """Return the dtypes that are measured and tried for DDP, and for FSDP2 with another
    reduce_dtype."""
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch
    from hipress.autotune import threshold
    from hipress.torch.autotune import choice, frontend
    from test_torch_fsdp import sharded

    seen = []
    choice.SIZES = threshold.SIZES = threshold.SIZES[:2]
    threshold.threshold = lambda *curves: 1000
    frontend.Sample.seconds = lambda step: seen.append({v.dtype for v in step._values}) or 1.0
    model = network().to(torch.float16)
    model[4].float()  # the smallest
    wrap(model, "onebit", plan="auto", min_size=9)
    found = [set().union(*seen)]
    seen.clear()
    policy = torch.distributed.fsdp.MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)
    model = sharded(init_device_mesh("cpu", (2,)), mp_policy=policy)
    hipress.torch.compress_fsdp(model, "onebit", plan="auto", min_size=9)
    return [*found, set().union(*seen)]


def test_what_is_tried_has_the_gradients_dtype():
    pytest.importorskip("test_torch_fsdp")
    assert run_ranks(dtypes_tried, 2) == [[{torch.float16}, {torch.bfloat16}]] * 2


def test_it_measures():
    first, _ = both(None, "dgc", {"ratio": 0.01, "warmup_steps": 9})
    table = next(line for line in first[1] if "ms by elements" in line)
    numbers = [
        float(word)
        for word in table.replace(",", " ").split()
        if word[0].isdigit() and not word.endswith(":")
    ]
    assert len(numbers) == 10 and all(0 < ms < 1e5 and math.isfinite(ms) for ms in numbers)
