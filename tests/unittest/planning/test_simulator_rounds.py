"""Outer steps of inner steps in the simulator: times computed by hand, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.simulator.models import Layer, Model
from hipress.simulator.rounds import Rounds, mean_step
from hipress.simulator.step import Options, simulate

NONE = Codec("none", 4.0)
COSTS = Costs(NONE, NONE)
CLUSTER = Cluster(bandwidth=5e7, latency=0.02, message=0.0, task=0.0, threads=1)
OPTIONS = Options("colocated", 4)
MODEL = Model(
    "test", "", 1, tuple(Layer(f"g{i}", 1 << 18) for i in range(4)), (0.01,) * 4, (0.015,) * 4
)  # 0.1 s of computation


def played(model: Model = MODEL, **rounds: int) -> tuple[float, tuple[float, ...]]:
    """Return the seconds of an inner step, and of each fragment's synchronization."""
    mean = mean_step(model, COSTS, CLUSTER, OPTIONS, Rounds(**rounds))
    assert mean.computing == pytest.approx(0.1 / mean.seconds)
    return mean.seconds, mean.fragment_seconds


def test_without_delay_training_waits_for_each_synchronisation():
    seconds, (takes,) = played(sync_every=10)
    # What a step without computation takes: 3/4 of 4 MiB are sent, and as much of the sums, at 50
    # MB/s; what comes last comes back after two latencies, while other sums are sent.
    alone = replace(MODEL, forward=(0.0,) * 4, backward=(0.0,) * 4)
    assert takes == simulate(alone, COSTS, CLUSTER, OPTIONS).seconds
    assert 0.126 < takes < 0.126 + 0.05
    assert seconds == pytest.approx(0.1 + takes / 10)


def test_fragments_take_turns():
    seconds, takes = played(sync_every=10, fragments=2)
    assert len(takes) == 2 and takes[0] == takes[1]
    assert seconds == pytest.approx(0.1 + sum(takes) / 10)
    assert [Rounds(10, 3).turn(f) for f in range(3)] == [3, 6, 10]


def test_a_delay_hides_what_it_is_long_enough_for():
    assert played(sync_every=10, delay=2)[0] == pytest.approx(0.1)
    seconds, (takes,) = played(sync_every=10, delay=1)
    assert takes > 0.1
    assert seconds == pytest.approx(0.1 + (takes - 0.1) / 10)


def test_fragments_that_meet_on_the_links_wait_for_each_other():
    slow = replace(CLUSTER, bandwidth=1e7)
    mean = mean_step(MODEL, COSTS, slow, OPTIONS, Rounds(4, 4, 3))
    assert min(mean.fragment_seconds) > 0.15
    # The links are always busy: an outer step takes the time of its four fragments.
    assert mean.seconds == pytest.approx(sum(mean.fragment_seconds) / 4)
    assert mean.bytes_per_host == pytest.approx(2 * 0.75 * 4 * MODEL.elements / 4, rel=0.01)


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        ((0,), "every 1 step or more, not 0"),
        ((4, 5), "fragments must be 1 to 4, the steps of a round, not 5"),
        ((4, 1, 4), "may travel 0 to 3 steps, fewer than a round has, not 4"),
    ],
)
def test_wrong_rounds_are_refused(rounds, words):
    with pytest.raises(ValueError, match=words):
        Rounds(*rounds)


@pytest.mark.slow
def test_the_command_tells_the_mean_step():
    def run(*more: str) -> subprocess.CompletedProcess:
        command = [
            sys.executable,
            "-m",
            "hipress",
            "simulate",
            "--model",
            "lstm",
            "--nodes",
            "4",
            "--bandwidth",
            "100mbit",
            "--latency",
            "20ms",
            *more,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    done = run("--sync-every", "30", "--fragments", "4", "--sync-delay", "5", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rounds = found["rounds"]
    # The model's layers are too large for a fourth fragment.
    assert (rounds["sync_every"], rounds["fragments"], rounds["sync_delay"]) == (30, 3, 5)
    assert found["compute_seconds"] < rounds["inner_step_seconds"] < found["step_seconds"]
    expected = found["compute_seconds"] / rounds["inner_step_seconds"]
    assert rounds["computing"] == pytest.approx(expected)
    assert "inner step" in run("--sync-every", "30").stdout
    refused = run("--fragments", "2")
    assert refused.returncode != 0
    assert "--fragments and --sync-delay go with --sync-every" in refused.stderr
