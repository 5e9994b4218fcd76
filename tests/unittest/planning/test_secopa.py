"""SeCoPa: the published formulas for each element, plan files, the model for measured clusters."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hipress.config import CompressionConfig
from hipress.planning import curve, model, planner, profiles, sosp21
from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.planning.curve import Curve
from hipress.planning.plan import Decision, GradientSize, PlanError, load, load_gradients, save
from hipress.planning.profiles import MeasuredProfile, ProfileError
from hipress.runtime.key_graphs import KeyGraphs
from hipress.simulator import models
from hipress.simulator.step import Options, simulate

ROOT = Path(__file__).resolve().parents[3]
VGG19 = sosp21.DATA / "vgg19.txt"

# The smallest compressed gradient, in float32 elements, that the published planner's code gives.
THRESHOLDS = {
    ("PS", 4): 683_947,
    ("PS", 8): 1_274_800,
    ("PS", 16): 2_468_295,
    ("RING", 4): 672_384,
    ("RING", 8): 1_150_636,
    ("RING", 16): 2_146_349,
}


def decide(topology: str, nodes: int, size: int, **options: object) -> Decision:
    plan = planner.make([GradientSize("g", size)], topology, nodes, sosp21.load(), **options)
    return plan.choices[0].decision


@pytest.mark.parametrize(("topology", "nodes"), THRESHOLDS)
def test_the_published_thresholds_hold_to_the_element(topology, nodes):
    size = THRESHOLDS[topology, nodes]
    assert decide(topology, nodes, size).compress
    assert not decide(topology, nodes, size - 1).compress


def independent(topology: str, n: int, x: int) -> Decision:
    """Compute the published formulas independently, from the table of constants alone."""
    gather = {4: (2.7156e-6, 4.1930e-1, 0.15573), 8: (6.1167e-6, 8.0768e-1, 0.28778)}
    gather[16] = (1.2937e-5, 1.4406, 0.59503)
    broadcast = {4: (2.7157e-6, 2.2156e-1, 0.14820), 8: (6.1172e-6, 2.7285e-1, 0.29666)}
    broadcast[16] = (1.2915e-5, 4.5538e-1, 0.58353)
    encode, decode = (1.4133e-8, 5.8938e-2, 0.05408), (6.2041e-9, 1.3956e-1, 0.07287)
    step = (8.5005e-7, 2.0337e-1, 0.09766)

    def f(constants, size):
        w, b, o = constants
        return o if size < max(0, (o - b) / w) else w * size + b

    raw, small = [], []
    for k in range(1, n + 1):
        if topology == "PS":
            raw.append(f(gather[n], x / k) + f(broadcast[n], x / k))
            small.append(
                f(gather[n], x / 16 / k)
                + f(broadcast[n], x / 16 / k)
                + min(k + 1, n) * f(encode, x / k)
                + min(n - 1 + k, 2 * (n - 1)) * f(decode, x / 16 / k)
            )
        else:
            raw.append(2 * (n - 1) * f(step, x / k))
            small.append(
                2 * (n - 1) * f(step, x / 16 / k) + n * f(encode, x / k) + n * f(decode, x / 16 / k)
            )
    compress = min(raw) > min(small)
    best = small if compress else raw
    return Decision(compress, best.index(min(best)) + 1)


@pytest.mark.parametrize("topology", ["PS", "RING"])
@pytest.mark.parametrize("nodes", [4, 8, 16])
def test_decisions_and_partitions_equal_the_published_formulas(topology, nodes):
    sizes = {gradient.size for gradient in load_gradients(VGG19)}
    sizes |= {int(10 ** (e / 7)) for e in range(63)}
    for size in sorted(sizes):
        assert decide(topology, nodes, size) == independent(topology, nodes, size), size


def test_other_numbers_of_nodes_and_ratios():
    assert not decide("PS", 1, 10**9).compress
    sizes = [2 * 10**6, 10**8]
    for nodes in (1, 2, 3, 5, 6, 12, 17, 64, 1000):
        for topology in ("PS", "RING", "TREE"):
            for size in sizes:
                assert 1 <= decide(topology, nodes, size).partitions <= nodes
    at6, (at4, at8) = sosp21.at_nodes(sosp21.load().gather, 6), (2.7156e-6, 6.1167e-6)
    assert at6.w == pytest.approx((at4 + at8) / 2)
    assert sosp21.at_nodes(sosp21.load().gather, 32).w > 1.2937e-5
    assert decide("PS", 4, 10**6, ratio=1 / 16).compress
    assert not decide("PS", 4, 10**6, ratio=1.0).compress
    with pytest.raises(ValueError, match="ratio must be above 0"):
        decide("PS", 4, 10**6, ratio=0.0)
    with pytest.raises(ValueError, match="must be PS, COLOCATED, RING or TREE, not 'mesh'"):
        decide("mesh", 4, 10**6)


def test_plans_are_written_and_read(tmp_path):
    path = tmp_path / "SeCoPaPlan.txt"
    rows = [(GradientSize("a", 10), Decision(True, 3)), (GradientSize("b", 20), Decision(False, 1))]
    save(path, rows)
    assert path.read_text() == "a,10,y,3\nb,20,n,1\n"
    assert load(path) == {"a": Decision(True, 3), "b": Decision(False, 1)}
    assert [decision.size for decision in load(path).values()] == [10, 20]
    path.write_text("# the short form\n\na, y, 3\nb,n,1\n")
    assert load(path) == {"a": Decision(True, 3), "b": Decision(False, 1)}


def test_a_plan_of_another_model_is_one_sentence():
    plan = {"w": Decision(True, 2, size=10), "b": Decision(False, 1, size=7)}
    graphs = KeyGraphs(2, 1).configured(CompressionConfig("2bit", plan=plan))
    graphs.next(10, "w")
    graphs.next(7, "b")
    # Gluon's Trainer numbers its keys, in another order than the model's.
    assert graphs.decision("1", 10).partitions == 2 and graphs.decision("0", 7).partitions == 1
    for name in ("w", "0"):
        said = f"the plan is of another model: '{name}' has 10 elements there, and 11 here"
        with pytest.raises(ValueError, match=said):
            graphs.next(11, name)


def test_the_log_says_once_that_a_plan_lacks_a_key(caplog):
    config = CompressionConfig("2bit", plan={"w": Decision(True, 2, size=10)})
    graphs = KeyGraphs(2, 1).configured(config)
    graphs.next(10, "w")
    graphs.next(7, "measured", compress=False)
    assert not caplog.records
    graphs.next(7, "b")
    graphs.next(7, "c")
    (record,) = caplog.records
    assert record.getMessage() == (
        "the plan has no gradient 'b': it goes as without a plan; those it has are w"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,10,y,3\nb,20,maybe,1\n", "line 2: compress or not must be y or n, not 'maybe'"),
        ("a,10,y,0\n", "line 1: the number of partitions must be a whole number from 1"),
        ("a,10,y,1\na,10,n,1\n", "line 2: gradient 'a' is there twice"),
        ("a,y\n", "line 1: expected name,size,y"),
        ("a,ten,y,1\n", "line 1: the size must be a whole number"),
        (",10,y,1\n", "line 1: the gradient has no name"),
        ("\n# nothing\n", "holds no gradient"),
        (b"\xff\xfe\x00", "is not a text file"),
    ],
)
def test_a_bad_plan_is_one_sentence_with_its_line(tmp_path, text, message):
    path = tmp_path / "plan.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PlanError, match=message):
        load(path)
    with pytest.raises(PlanError, match="cannot read the plan"):
        load(tmp_path / "absent")


def test_the_seeds_command_line_and_hipress_plan_write_the_same_file(tmp_path):
    options = ["--input", str(VGG19), "--topology", "PS", "--nnodes", "4"]
    for name, command in (("a", ["tools/SeCoPa.py"]), ("b", ["-m", "hipress", "plan"])):
        done = subprocess.run(
            [sys.executable, *command, *options, "--output", str(tmp_path / name)],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert "11 of 38 gradients compressed" in done.stdout
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert (tmp_path / "a").read_text().splitlines()[32] == "vgg0_dense0_weight,102760448,y,4"


@pytest.mark.timeout(60)  # seconds; one partition count after the other took minutes
@pytest.mark.parametrize("topology", ["PS", "RING"])
def test_a_plan_for_a_million_nodes_takes_seconds(topology):
    gradients = [GradientSize(f"g{i}", 1 << i % 25) for i in range(400)]
    plan = planner.make(gradients, topology, 1_000_000, profiles.load("sosp21"))
    assert len(plan.choices) == 400
    few = planner.make(gradients[:25], topology, 900, profiles.load("sosp21"))
    published, chosen = sosp21.load(), planner.topology_named(topology, True)
    cost = sosp21.PublishedModel(published, chosen, 900, published.ratio)
    for choice in few.choices:  # every count was tried
        size = choice.gradient.size
        assert choice.raw == min(cost.milliseconds(size, k, False) for k in range(1, 901)) / 1e3


# ---- Curves -----------------------------------------------------------------------------------


def test_a_fit_finds_the_curve_through_noise_and_an_outlier():
    random = np.random.default_rng(3)
    true = Curve(2e-9, 3e-5, 4e-5)
    sizes = [1 << e for e in range(6, 25)] * 2
    seconds = [true(x) * random.normal(1, 0.03) for x in sizes]
    seconds[12] *= 30
    fit = curve.fit(sizes, seconds)
    assert fit.curve.w == pytest.approx(true.w, rel=0.03)
    assert fit.curve.b == pytest.approx(true.b, rel=0.3)
    assert fit.spread < 0.1 and not fit.poor


def test_a_links_fit_finds_the_rate_and_the_burst_of_a_shaped_link():
    """A link's fit finds the rate and the burst of a shaped link, as measured at 50 Mbit/s with a
    bucket of 64 KB; 1,448 of a packet's 1,514 bytes are payload."""
    milliseconds = [0.125, 0.097, 3.97, 0.096, 0.17, 1.93, 5.35, 11.87, 33.84, 80.52, 165.7, 343]
    sizes = [64 + (4 << e) for e in range(8, 20)]
    found = curve.fit_link(sizes, [time / 1e3 for time in milliseconds]).curve
    assert found.w == pytest.approx(1514 / 1448 / 6.25e6, rel=0.01)
    assert -found.b / found.w == pytest.approx(64e3 * 1448 / 1514, rel=0.05)


def test_a_poor_fit_says_so():
    random = np.random.default_rng(4)
    sizes = [1 << e for e in range(6, 25)]
    assert curve.fit(sizes, list(random.uniform(1e-6, 1e-2, len(sizes)))).poor
    with pytest.raises(ValueError, match="at least two sizes"):
        curve.fit([4, 4], [1.0, 1.0])


# ---- The model for measured profiles ----------------------------------------------------------

NONE = Codec("none", 4.0, merge=Curve(1e-10, 0, 0))
TBQ = Codec(
    "tbq", 0.25, 0, Curve(4e-10, 0, 0), Curve(2e-10, 0, 0), Curve(1e-10, 0, 0), Curve(3e-10, 0, 0)
)


def measured(bandwidth: float) -> MeasuredProfile:
    send = Curve(1 / bandwidth, 1e-4, 1e-4)
    return MeasuredProfile("test", 4, 2, send, 1e-5, {"none": NONE, "tbq": TBQ})


def test_a_slow_network_is_worth_compressing_and_a_fast_one_is_not():
    gradients = load_gradients(VGG19)
    for topology in ("PS", "RING", "TREE"):
        slow = planner.make(gradients, topology, 4, measured(125e6))
        assert slow.planned_seconds < 0.2 * slow.raw_seconds
        names = [c.gradient.name for c in slow.choices if c.decision.compress]
        assert "vgg0_dense0_weight" in names and "vgg0_conv0_bias" not in names
        fast = planner.make(gradients, topology, 4, measured(125e9))
        assert fast.compressed == 0
        assert fast.planned_seconds == fast.raw_seconds


def test_a_plan_shares_the_work_between_links_and_processors():
    """A plan shares the work between links and processors: some gradients stay uncompressed where
    compressing everything would make the codec the bottleneck."""
    gradients = [GradientSize(f"g{i}", 1 << 22) for i in range(40)]
    plan = planner.make(gradients, "PS", 4, measured(5e9))
    assert 0 < plan.compressed < 40
    assert plan.planned_seconds < 0.9 * plan.raw_seconds
    servers = planner.topology_named("PS")
    all_of_them = sum(
        model.best(servers, 4, 1 << 22, TBQ, measured(5e9).cluster())[1].threads for _ in gradients
    )
    assert plan.planned_seconds < all_of_them


@pytest.mark.parametrize("topology", ["colocated", "ring", "tree"])
@pytest.mark.parametrize("nodes", [2, 3, 4, 8])
def test_the_model_is_near_the_simulation_of_the_graph(topology, nodes):
    cluster = Cluster(bandwidth=1.25e9, latency=1e-4, message=1e-5)
    for codec in (NONE, TBQ):
        for elements, partitions in ((1 << 22, 8), (1 << 24, 16), (1 << 20, nodes)):
            gradient = models.Layer("g", elements)
            net = models.Model("m", "", 1, (gradient,), (0.0,), (0.0,))
            step = simulate(
                net,
                Costs(NONE, codec),
                cluster,
                Options(topology, nodes, symmetric=False),
                {"g": Decision(True, partitions)},
            )
            name = planner.topology_named(topology)
            guess = model.needs(name, nodes, elements, partitions, codec, cluster).seconds
            assert guess == pytest.approx(step.seconds, rel=0.45), (codec.name, elements)


@pytest.mark.parametrize("topology", ["ps", "colocated", "ring"])
def test_the_model_is_near_the_simulation_of_many_small_gradients(topology):
    gradients = [GradientSize(f"g{i}", 1000) for i in range(400)]
    layers = tuple(models.Layer(g.name, g.size) for g in gradients)
    net = models.Model("m", "", 1, layers, (0.0,) * 400, (0.0,) * 400)
    link = Curve(1 / 1.25e9, 1e-4, 1e-4)
    separate = MeasuredProfile("test", 4, 2, link, 2e-5, {"none": NONE, "tbq": TBQ}, task=1e-5)
    for codec in ("none", "tbq"):
        guesses = []
        for profile in (separate, replace(separate, part=2e-6)):
            plan = planner.make(gradients, topology, 4, profile, codec)
            guesses.append(plan.planned_seconds)
        decisions = {choice.gradient.name: choice.decision for choice in plan.choices}
        options = Options(topology, 4)
        step = simulate(net, profile.costs(codec), profile.cluster(), options, decisions)
        assert guesses[1] == pytest.approx(step.seconds, rel=0.45)
        assert guesses[1] < guesses[0] / 2


def test_what_is_small_enough_to_share_a_message_when_compressed_is_compressed():
    """Gradients that are small enough to share a message when compressed are compressed. 2,000
    elements are 8,000 bytes, a separate message, or 500 in one shared by many."""
    gradients = [GradientSize(f"g{i}", 2000) for i in range(100)]
    fast = replace(measured(125e9), message=1e-4)
    assert planner.make(gradients, "RING", 4, fast).compressed == 0
    assert planner.make(gradients, "RING", 4, replace(fast, part=1e-6)).compressed == 100


def test_a_profile_that_is_none_is_one_sentence(tmp_path):
    with pytest.raises(ProfileError, match="must be 'sosp21' or a file"):
        profiles.load("absent.json")
    bad = tmp_path / "bad.json"
    bad.write_text('{"format": "hipress-profile", "version": 1}')
    with pytest.raises(ProfileError, match="lacks what a profile must hold"):
        profiles.load(bad)
    with pytest.raises(ProfileError, match="has no measurements of 'dgc'"):
        measured(1e9).costs("dgc")
