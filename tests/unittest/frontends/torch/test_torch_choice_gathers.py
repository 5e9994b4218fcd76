"""Gathers of weights that type "auto" of FSDP2 chooses, by known times."""

from __future__ import annotations

import json

import pytest

from harness.torch_ranks import returned, run_ranks, torch

fsdp = pytest.importorskip("torch.distributed.fsdp", reason="needs torch")
if not hasattr(fsdp.FSDPModule, "set_custom_all_gather"):
    pytest.skip("needs FSDPModule.set_custom_all_gather", allow_module_level=True)

PYTORCH = "PyTorch's all-gather"
SLOW = {
    PYTORCH: 40.0,
    "exact": 30.0,
    "lossless": 35.0,
    "differences bits=8": 8.0,
    "differences bits=4": 4.0,
    "blocks bits=8": 12.0,
}
FAST = dict.fromkeys(SLOW, 2.0)
MANY = str(1 << 40)
"""Ranks of a host, so that each rank's share of the memory is nothing."""


def network():
    torch.manual_seed(3)
    layers = [torch.nn.Linear(48, 48) for _ in range(4)]
    for layer in layers:
        fsdp.fully_shard(layer)
    return fsdp.fully_shard(torch.nn.Sequential(*layers, torch.nn.Linear(48, 5)))


def trained(
    rank,
    times,
    steps=4,
    changes=(),
    rate=0.01,
    outliers=0.0,
    memory=(),
    type="auto",
    file=None,
    **options,
):
    """Train, and return what each rank did.

    Args:
        times: Milliseconds of a step's gathers by method, on the slower rank.
        changes: For some steps, other times.
        rate: The learning rate.
        outliers: What two weights of each parameter gain and lose in each step, in addition.
        memory: LOCAL_WORLD_SIZE of some ranks.
        file: File for the explanation, which is written in every step.
    """
    import os

    import hipress.torch
    from hipress.autotune import journal
    from known_times import measure

    if file:
        os.environ["HIPRESS_EXPLAIN"], journal.EVERY = file, 1
    os.environ["LOCAL_WORLD_SIZE"] = dict(memory).get(rank, "1")
    now = dict(times)
    lines = measure(lambda name: 1.0, gathers=lambda name: now[name] * (1 if rank else 0.8))
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    told = {"optimizer": optimizer} if type == "auto" else {}
    compression = hipress.torch.compress_fsdp(model, type, min_size=1000, **told, **options)
    methods, modes = [], []
    for step in range(steps):
        now.update(dict(changes).get(step, {}))
        methods.append(compression.gathers.tuner.method.name)
        modes.append(compression.gathers.mode)
        generator = torch.Generator().manual_seed(10 * step + rank)
        x = torch.randn(16, 48, generator=generator)
        torch.tanh(model(x)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for parameter in model.parameters() if outliers else ():
                parameter.to_local().view(-1)[:2] += outliers * torch.tensor([1.0, -1.0])
    with torch.no_grad():
        result = model(torch.ones(2, 48))
    explanation, stats = compression.explain(), compression.stats()
    assert compression.metrics()["gathered_bytes"] == stats.gathered
    return methods, modes, lines, result, str(explanation), explanation.to_json(), stats


def _run(rank, args, options):
    return trained(rank, *args, **options)


def both(*args, **options):
    """Return rank 0's results. Both ranks use the same methods, and compute the same."""
    first, second = returned(run_ranks(_run, 2, args, options))
    assert first[0] == second[0] and first[1] == second[1]
    assert torch.equal(first[3], second[3])
    assert first[4] == second[4] and not second[2]
    return first


def test_slow_network_gets_the_fastest_gather_and_explains_both_directions(tmp_path):
    from hipress.autotune import explanation

    file = tmp_path / "job.json"
    methods, modes, lines, _, text, values, stats = both(SLOW, file=str(file))
    assert methods == 4 * ["differences bits=4"] and set(modes) == {"differences"}
    assert "auto: differences bits=4, the fastest: a step's gathers take 4 ms (" in lines[-1]
    assert "gradients, ms" in text and "gathers, ms" in text and "> differences bits=4" in text
    assert "a replica of all weights needs" in text
    rows = {row["method"]: row for row in values["gathers"]["rows"]}
    assert rows.keys() == SLOW.keys() and rows["exact"]["gradients_ms"] == pytest.approx(30)
    assert [name for name, row in rows.items() if row["chosen"]] == ["differences bits=4"]
    assert 0 < stats.gathered < 0.5 * stats.gathered_uncompressed
    assert "gathers of weights sent" in str(stats)
    assert "> differences bits=4" in str(explanation.load(file))
    line = json.loads(file.with_suffix(".jsonl").read_text().splitlines()[-1])
    assert (line["gather"], line["gathers_ms"]) == ("differences bits=4", pytest.approx(4))


@pytest.mark.parametrize(
    ("faster", "expected"),
    [({}, PYTORCH), ({"exact": 1.0}, "exact"), ({"blocks bits=8": 1.9}, PYTORCH)],
)
def test_least_lossy_of_equally_fast_gathers_is_chosen(faster, expected):
    methods, *_ = both({**FAST, **faster}, steps=2)
    assert methods == 2 * [expected]


def test_replica_that_does_not_fit_on_one_rank_is_not_chosen():
    methods, _, _, _, text, values, _ = both(SLOW, memory=[(1, MANY)])
    assert set(methods) == {"blocks bits=8"}
    assert "no differences are gathered, for a replica of all weights needs" in text
    assert len(values["gathers"]["rows"]) == 4


def test_gathers_on_a_gpu_are_not_measured():
    from types import SimpleNamespace

    from hipress.torch.autotune.gathers import no_gather
    from hipress.torch.integrations.fsdp_gather import check_gather, why_not_chosen

    gpu = torch.device("cuda")
    for encode_on in ("host", "device"):
        check_gather("auto", None, [SimpleNamespace(device=gpu)], False, encode_on)
    assert str(no_gather(why_not_chosen([], gpu, False))).startswith(
        "auto: PyTorch's all-gather of weights, for gathers are measured in host memory only"
    )


def test_gathers_are_chosen_for_a_named_codec_too():
    methods, _, _, _, text, *_ = both(SLOW, type="none", gather="auto", steps=2)
    assert set(methods) == {"differences bits=4"} and "gathers, ms" in text


@pytest.mark.parametrize(
    ("jumps", "expected"),
    [({"rate": 1.0}, "differences bits=8"), ({"outliers": 1000.0}, "exact")],
)
def test_weights_that_jump_get_more_bits_or_exact_gathers(jumps, expected):
    methods, _, lines, *_ = both(SLOW, steps=5, **jumps)
    # The guard observes step 1 first, and step 2 uses its result.
    assert methods == 2 * ["differences bits=4"] + 3 * [expected], lines
    (said,) = (line for line in lines if "rounds a module's weights too coarsely" in line)
    assert said.startswith(f"auto: {expected} from step 2 on, for differences bits=4 rounds")
    assert "times theirs (at most 0.02)" in said


def test_guard_predicts_the_error_of_the_codec():
    from hipress.autotune.quality_guard import RoundingGuard, rounding_error
    from hipress.compression.compressor import Compressor
    from hipress.torch.autotune.frontend import TensorStatistics
    from hipress.torch.autotune.gathers import rounding_squares

    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(50_000, generator=generator)
    difference = 0.1 * torch.randn(50_000, generator=generator)
    for bits in (4, 8):
        guard = RoundingGuard(TensorStatistics)
        assert guard.observes(7)
        guard.add(rounding_squares(difference, weights))
        codec = Compressor("maxmin", bits=bits, stochastic=0)
        decoded = torch.from_numpy(codec.decode(codec.encode(difference.numpy()), 50_000))
        error = ((difference - decoded).norm() / weights.norm()).item()
        assert rounding_error({"bits": bits}, guard.spread()) == pytest.approx(error, rel=0.05)


def test_gathers_follow_the_network_on_all_ranks_at_one_step():
    fast = dict.fromkeys(SLOW, 4.0)
    methods, modes, lines, *_ = both(
        fast, steps=70, changes=[(25, {n: 9 * t for n, t in SLOW.items()})]
    )
    assert methods[:25] == 25 * [PYTORCH] and methods[-1] == "differences bits=4"
    assert (
        len([line for line in lines if "gathers take" in line and "as long as they did" in line])
        == 1
    )


def test_sample_of_gathers_has_the_size_that_was_asked_for():
    from hipress.torch.autotune.gathers import sample_sizes

    assert sample_sizes([64, 8, 64], 136, 2) == [64, 8, 64]
    assert sample_sizes([64, 8, 64], 100, 2) == [64, 8]
    assert sample_sizes([9000, 300], 1000, 3) == [999]
    assert sample_sizes([4], 1, 4) == [4]
