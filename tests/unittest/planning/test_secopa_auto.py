"""plan: auto of the key-value store: what it measures, tries in steps of training, and revises."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from harness.cluster import run_cluster, worker_outputs
from hipress import codecs
from hipress.autotune import plan_controller as auto_plan
from hipress.autotune import threshold, trial
from hipress.autotune.steps import FIRST_KEY
from hipress.autotune.store import KnownKey
from hipress.autotune.threshold import NEVER
from hipress.config import CompressionConfig
from hipress.planning.curve import Curve
from scripts import SCRIPTS

SPARSE = ("dct", "dgc", "graddrop", "randomk", "sparseloco", "stc", "topk")


def test_the_threshold_is_where_the_curves_cross():
    raw = Curve(1e-7, 1e-4, 1e-4)
    assert threshold.threshold(raw, Curve(1e-8, 1e-4, 1e-4)) == 256
    late = threshold.threshold(raw, Curve(1e-8, 1e-2, 1e-2))  # equal at 110,000 elements
    assert 110_000 < late < 160_000
    assert threshold.threshold(raw, Curve(2e-7, 1e-4, 1e-4)) is None
    assert threshold.threshold(raw, raw) is None


@pytest.mark.parametrize(
    ("params", "harmless"),
    [
        *(({"type": t}, t not in SPARSE) for t in codecs()),
        ({"type": "tbq", "threshold": 0.5, "min_size": 3, "topology": "ring"}, True),
        ({"type": "ternary", "momentum": 0}, True),
        ({"type": "ternary", "momentum": "0.5"}, False),
        ({"type": "dgc", "momentum": 0, "ratio": 0.1}, False),
        ({"type": "graddrop", "drop": 0.9, "min_size": 0}, False),
    ],
)
def test_what_turns_of_raw_and_compressed_steps_would_harm_is_not_tried(
    monkeypatch, params, harmless
):
    config = CompressionConfig.of(params)
    assert auto_plan.is_harmless(config.type, config.params) is harmless
    begun = []
    monkeypatch.setattr(auto_plan.PlanController, "_decide", lambda self: None)
    monkeypatch.setattr(auto_plan.PlanController, "_begin_trial", lambda self, s: begun.append(s))
    plan = auto_plan.PlanController(Alone(), lambda params: None, None)
    plan._times = np.ones((2, len(threshold.SIZES)))
    plan.decide(config)
    assert plan.trying is harmless
    for now in (1.0, 10.0):  # as planned; drifted
        times = np.full((2, 1), now)
        monkeypatch.setattr(auto_plan, "measure_sizes", lambda plan, sizes, times=times: times)
        plan._check(1.0)
    assert begun == ([1.0, 1.0] if harmless else [])


CHOSEN = """
param float ratio = 0.25 in [0, 1];
void Encode(float* g, uint8* c) {
  float least = quantile(map(g, [&](float v) -> float { return abs(v); }), 1 - ratio);
  uint<1>* sent = map(g, [&](float v) -> uint<1> { return abs(v) >= least; });
  c = concat(least, sent, pack_where(g < 0, sent));
}
void Decode(uint8* c, float* g) {
  float level;
  uint<1>* sent;
  uint<1>* negative;
  extract(c, level, sent, pack_where(negative, sent));
  g = map(sent, negative, [&](uint<1> s, uint<1> below) -> float {
    return s != 0 ? (below != 0 ? -level : level) : 0; });
}
"""


def test_a_users_codec_with_a_mask_and_a_ratio_is_not_tried(tmp_path):
    path = tmp_path / "chosen.cll"
    path.write_text(CHOSEN)
    script = SCRIPTS / "secopa_auto" / "is_harmless.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "HIPRESS_CODECS": str(path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.parametrize("once", [(), (7,), (7, 0)])  # keys that are pushed a single time, at first
def test_a_step_begins_with_the_first_key_that_comes_again(monkeypatch, once):
    events = []
    monkeypatch.setattr(auto_plan.PlanController, "_decide", lambda self: None)
    monkeypatch.setattr(auto_plan.PlanController, "_check", lambda self, s: events.append("check"))
    plan = auto_plan.PlanController(Alone(), lambda params: None, None)
    plan.decide(CompressionConfig("tbq"))
    steps = [[0, 1, 2]] * (auto_plan.FIRST_CHECK_STEPS + 1)
    for keys in [once, *steps] if 0 not in once else [once, *steps[1:]]:
        for key in keys:
            plan.before_push((key,), lambda: None)
            events.append(key)
    # 0 came last of what came once: the next step begins with it.
    assert events.index("check") == len(once) + 3 * (auto_plan.FIRST_CHECK_STEPS - (0 in once))


class Alone:
    """Node that is its job's only one, as far as a plan requires."""

    rank, num_workers, num_servers = 0, 1, 0
    auto_keys = itertools.count(FIRST_KEY)

    def init_array(self, key, value, name, compress):
        pass

    def pushpull(self, key, array):
        return self

    def wait(self, timeout=None):
        pass


@pytest.mark.parametrize(
    ("gains", "chosen"),
    [
        ([0.90] * 5, 1 << 19),
        ([0.97] * 5, 1 << 18),  # too little
        ([0.5, 1.01, 1.01, 1.01, 0.5], 1 << 18),  # twice by chance
        ([0.90, 0.90, 1.30, 0.90, 0.90], 1 << 19),  # but for one bad moment
    ],
)
def test_another_cut_must_gain_in_most_rounds(monkeypatch, gains, chosen):
    rounds = iter([1.0, *gains])  # the first does not count

    def seconds(self, case):
        return 0.01 * (next(rounds) if case.partition == 1 << 19 else 1.0)

    monkeypatch.setattr(auto_plan.PlanController, "_seconds", seconds)
    cuts = []
    plan = auto_plan.PlanController(Alone(), lambda params: None, cuts.append)
    plan._set_config(CompressionConfig("tbq"))
    plan._times = np.full((2, len(threshold.SIZES)), 0.01)
    plan._choose_partition(compressed=True)
    assert cuts == [chosen]


AUTO = SCRIPTS / "secopa_auto" / "planned.py"


def test_a_job_plans_by_itself_and_all_workers_agree():
    results = run_cluster(AUTO, workers=2, servers=0, timeout=120)
    lines = [
        next(line for line in text.splitlines() if line.startswith("decided"))
        for text in worker_outputs(results)
    ]
    assert len(set(lines)) == 1
    assert "type=none" in lines[0] or "min_size=" in lines[0]


DRIFTING = SCRIPTS / "secopa_auto" / "drifting.py"


@pytest.mark.parametrize("topology", ["ps", "colocated", "ring"])
def test_a_plan_is_revised_at_one_step_when_times_drift_and_loses_nothing(topology):
    servers = 2 if topology == "ps" else 0
    results = run_cluster(DRIFTING, workers=3, servers=servers, args=[topology])
    texts = worker_outputs(results)
    lines = [next(li for li in text.splitlines() if li.startswith("kinds")) for text in texts]
    assert len(set(lines)) == 1
    # The link is faster from step 7 on; the check before step 8 finds out.
    assert lines[0] == f"kinds {['tbq'] * 8 + ['none'] * 12}"
    said = [line for text in texts for line in text.splitlines() if "to compress nothing" in line]
    assert len(said) == 1 and "at step 8" in said[0]


def tried(plans, seconds):
    """Return the plan that a trial keeps, and how many blocks of each were run."""
    run = auto_plan.PlanTrial(plans)
    blocks = [0] * plans
    while not run.over:
        blocks[run.choice] += 1
        run.add(seconds(run.choice, blocks[run.choice]))
    return run.choice, blocks


def test_the_fastest_plan_is_kept_and_a_slower_one_is_soon_given_up():
    assert tried(4, lambda plan, _: [1.0, 0.90, 0.80, 1.10][plan]) == (2, [8, 8, 8, 3])
    assert tried(3, lambda plan, _: [1.0, 1.0, 1.10][plan]) == (0, [3, 3, 3])
    assert tried(1, None) == (0, [0])


@pytest.mark.parametrize(
    ("ratios", "kept"),
    [
        ([0.98] * 8, 0),  # too little
        ([0.9, 1.1, 0.9, 1.1, 0.9, 1.1], 0),  # a third loss: rejected
        ([0.9, 9.0, 0.9, 0.9, 0.9, 9.0, 0.9, 0.9], 1),  # but for two bad moments
        ([0.97, 1.5, 0.97, 1.5, 0.99, 0.99, 0.97, 0.97], 0),  # wins enough, but the median is 0.98
    ],
)
def test_another_plan_must_win_three_rounds_out_of_four_and_by_some(ratios, kept):
    found = tried(2, lambda plan, n: 0.5 * (ratios[n - 1] if plan else 1))
    assert found == (kept, [len(ratios)] * 2)


def test_blocks_of_short_steps_are_longer():
    assert [trial.block_steps(s) for s in (0.0, 0.001, 0.0051, 0.03, 2.0)] == [32, 32, 20, 4, 4]


def test_what_slows_steps_down_little_by_little_does_not_choose():
    passed = []

    def seconds(plan, _):
        passed.append(plan)
        return 1.1 ** -len(passed)  # a tenth less with each block

    assert tried(2, seconds)[0] == 0
    assert passed[:8] == [0, 1, 1, 0, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("true", "noise", "least", "most"),  # of 500 trials, in how many another plan is kept
    [(1.05, 0.1, 0, 30), (1.05, 0.2, 0, 60), (0.85, 0.1, 440, 500), (0.75, 0.2, 400, 500)],
)
def test_noise_seldom_makes_a_trial_choose_badly(true, noise, least, most):
    random = np.random.default_rng(5)

    def seconds(plan, _):
        return (true if plan else 1.0) * random.lognormal(0, noise)

    assert least <= sum(tried(2, seconds)[0] for _ in range(500)) <= most


@pytest.mark.parametrize(
    ("raw", "compressed", "own", "planned", "plans"),
    [
        # Large ones raw would take far longer; from 4,096 on is what from 256 on is here.
        (Curve(1e-6, 1e-4, 1e-4), Curve(1e-7, 1e-4, 1e-4), 0, 256, [256, 0]),
        (Curve(1.2e-7, 1e-4, 1e-4), Curve(1e-7, 1e-4, 1e-4), 0, 256, [256, 0, NEVER]),
        (Curve(1.2e-7, 1e-4, 1e-4), Curve(1e-7, 1e-4, 1e-4), 100, 256, [256, NEVER]),
        (Curve(1e-7, 1e-4, 1e-4), Curve(1.2e-7, 1e-4, 1e-4), 0, NEVER, [NEVER, 0, 256]),
        (Curve(1e-7, 1e-4, 1e-4), Curve(1e-6, 1e-4, 1e-4), 0, NEVER, None),  # no trial
    ],
)
def test_what_compresses_other_keys_and_may_be_as_fast_is_tried(
    raw, compressed, own, planned, plans
):
    node = Alone()
    sizes = {0: 64, 1: 64, 2: 1_000_000, FIRST_KEY: 1000}
    node.known_keys = {number: KnownKey(f"{number}", n, 0, True) for number, n in sizes.items()}
    used = []
    plan = auto_plan.PlanController(node, used.append, None)
    plan._set_config(CompressionConfig("tbq", min_size=own))
    plan._curves, plan._least, plan._steps, plan._interval = (raw, compressed), planned, 16, 32
    plan._begin_trial(1.0)
    assert (plan._choices if plan._trial else None) == plans
    assert used[-1] == plan.chosen
    assert (NEVER if plan.chosen.type == "none" else plan.chosen.min_size) == planned


TRYING = SCRIPTS / "secopa_auto" / "trying.py"


@pytest.mark.parametrize("topology", ["ps", "colocated", "ring"])
def test_a_plan_is_tried_in_steps_that_all_workers_agree_on_and_loses_nothing(topology):
    servers = 2 if topology == "ps" else 0
    results = run_cluster(TRYING, workers=3, servers=servers, args=[topology])
    texts = worker_outputs(results)
    lines = {next(li for li in text.splitlines() if li.startswith("plans")) for text in texts}
    plan, other = [3072] * 3, [0] * 3  # a block of each
    assert lines == {f"plans {[3072] * 4 + plan + other + other + plan + [0] * 8 + [None] * 4}"}
    said = [line for text in texts for line in text.splitlines() if "were tried" in line]
    assert len(said) == 1 and "at step 16" in said[0] and "from 0 elements on" in said[0]


ASYNC = SCRIPTS / "secopa_auto" / "asynchronous.py"


def test_asynchronous_updates_and_a_plan_by_itself_exclude_each_other():
    run_cluster(ASYNC, workers=1, servers=1)


SERVER = SCRIPTS / "secopa_auto" / "server.py"
STALE = SCRIPTS / "secopa_auto" / "stale.py"


def test_a_plan_is_made_anew_when_servers_get_an_optimizer_before_the_first_gradient():
    command = (sys.executable, str(SERVER))
    run_cluster(STALE, workers=2, servers=2, server_command=command)
