"""Type "auto" in elastic jobs: one choice for all workers, which outlives them."""

from __future__ import annotations

import signal
import sys

import pytest

from elastic_choice import METHOD_NAMES, check_that_the_choice_stays, lines
from harness import netns
from harness.elastic import ElasticJob
from harness.processes import wait_until
from harness.torch_ranks import returned, run_ranks
from scripts import SCRIPTS

PROGRAM = SCRIPTS / "torch_elastic_auto.py"


@pytest.fixture
def job():
    """Start a job of the program above."""
    jobs = []

    def start(kind, workers=3, steps=1_000_000, **options):
        jobs.append(
            ElasticJob([sys.executable, str(PROGRAM), kind, str(steps)], workers, **options)
        )
        return jobs[-1]

    yield start
    for each in jobs:
        each.close()


KINDS = ["gradients", "rounds"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_who_is_left_and_who_joins_go_on_with_the_choice(job, kind):
    check_that_the_choice_stays(job(kind), METHOD_NAMES[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_that_ends_while_the_choice_is_handed_over(job, kind):
    with job(kind, steps=40, env={"INTERRUPTED": "1"}) as running:
        running.wait(150, succeed=True)
        for slot in range(3):
            epochs = {e["epoch"] for e in running.journal(slot) if e["event"] == "step"}
            assert min(epochs) == 1 and max(epochs) >= 3, epochs


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("kind", KINDS)
def test_a_death_while_they_measure(job, kind, number):
    with job(kind, env={"VICTIM": "2", "SIGNAL": str(int(number))}) as running:
        wait_until(lambda: min(running.step(0), running.step(1)) >= 30, 90, "30 steps of two")
        for slot in (0, 1):
            assert lines(running, slot)[-1][2] == METHOD_NAMES[kind], lines(running, slot)


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_slow_link_all_have_one_codec(job, kind):
    """Type auto chooses one codec on all workers of an elastic job on a slow link.

    Cost: All methods are measured on a link of 10 Mbit/s, and 24 steps follow.
    """
    with (
        netns.ShapedNetwork(3, rate="10mbit", burst="32kb", verify=False) as network,
        job(kind, env={"WIDTH": "4000"}, network=network) as running,
    ):
        wait_until(lambda: running.step(1) >= 12, 120, "12 steps")
        running.kill(1)
        reached = running.step(0)
        wait_until(lambda: running.step(2) >= reached + 12, 90, "12 steps more")
        types = [lines(running, slot)[-1][2] for slot in (0, 2)]
        assert types[0] == types[1] != "none", types


def replaced(rank):
    """Replace a codec in a step that is rolled back: its residual is sent with the next try."""
    from dataclasses import replace

    from test_torch_transaction import Training

    def trained():
        training = Training(rank, "maxminef", params={"bits": 3})
        for step in range(3):
            training.step(step)
        return training, training.synchronizer

    def take(synchronizer):
        settings = replace(synchronizer.settings, type="maxmin", params={"bits": 8})
        synchronizer.replace_codec(settings)

    training, synchronizer = trained()
    take(synchronizer)
    wanted = training.step(3)
    training, synchronizer = trained()
    before = synchronizer.error_feedback.norm()
    synchronizer.begin_transaction()
    take(synchronizer)
    training.step(7)
    assert synchronizer.error_feedback.norm() < before / 2  # it was sent
    synchronizer.roll_back()
    assert synchronizer.error_feedback.norm() > before / 2
    synchronizer.begin_transaction()
    assert training.step(3) == wanted
    return before > 0


@pytest.mark.slow
def test_a_codec_that_is_replaced_in_a_step_that_fails_loses_nothing():
    assert all(returned(run_ranks(replaced, 3)))
