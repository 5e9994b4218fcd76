"""DiLoCo in elastic MXNet jobs: workers that die or join cost the remaining ones no step."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import refusals
from elastic_rounds import (
    contributions,
    end,
    events,
    silence,
    steps_are_made_once,
    stop,
    weights_are_equal,
)
from harness import ROOT
from harness.cluster import run_cluster, worker_outputs
from harness.elastic import ElasticJob
from harness.processes import base_environment, wait_until
from scripts import SCRIPTS

pytest.importorskip("mxnet_hipress")

H = 4


PROGRAM = SCRIPTS / "mxnet_elastic_diloco" / "worker.py"

NON_ELASTIC = SCRIPTS / "mxnet_elastic_diloco" / "non_elastic.py"

ALONE = SCRIPTS / "mxnet_elastic_diloco" / "alone.py"

#: MXNet's SGD of length 1 rounds as NumPy does, its "nag" does not.
SGD = {"outer_optimizer": "sgd", "outer_optimizer_params": {"learning_rate": 1.0}}


@pytest.fixture
def job():
    """Start a job of the program above."""
    jobs = []

    def start(workers, steps, faults=None, compression="none", outer=None, **options):
        about = [compression, steps, faults or {}, outer or SGD]
        command = [sys.executable, str(PROGRAM), repr(about)]
        env = {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), str(ROOT / "python")]),
        }
        jobs.append(ElasticJob(command, workers, env=env, **options))
        return jobs[-1]

    yield start
    for each in jobs:
        each.close()


def alone(tmp_path, rounds, steps):
    """Return the digests after outer steps that these workers make."""
    ended = subprocess.run(
        [sys.executable, str(ALONE), json.dumps([rounds, steps])],
        timeout=120,
        cwd=tmp_path,
        env=base_environment({"OMP_NUM_THREADS": "1"}),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "rounds"),
    [
        ({}, 4),
        ({"early_steps": 5, "early_sync_every": 2}, 6),
        ({"fragment_sync_delay": 1}, 4),
        ({"fragment_sync_delay": 3, "fragment_update_alpha": 0.5}, 4),
        (
            {
                "fragment_sync_delay": 2,
                "fragment_update_alpha": 0.5,
                "early_steps": 5,
                "early_sync_every": 2,
            },
            6,
        ),
    ],
)
def test_undisturbed_rounds_have_the_bits_of_a_diloco_trainer(job, more, rounds):
    compression = {"type": "sparseloco", "min_size": 1024}
    nag = {"outer_optimizer": "nag", **more}
    with job(2, 3 * H + 2, compression=compression, outer=nag) as running:
        assert len(end(running, range(2))) == rounds
        outputs = [running.output(running.present(slot)) for slot in range(2)]
    outputs += worker_outputs(
        run_cluster(
            NON_ELASTIC,
            2,
            0,
            timeout=60,
            env={"OMP_NUM_THREADS": "1"},
            args=[json.dumps([{**compression, "topology": "colocated"}, 3 * H + 2, nag])],
        )
    )
    (found,) = {re.search(r"^digest (\w+)", output, re.MULTILINE)[1] for output in outputs}
    assert found


@pytest.mark.slow
def test_what_the_others_trained_is_all_that_counts(job, tmp_path):
    """The survivors' training is all that counts: one worker dies in an outer step, one as all
    synchronize.

    Cost: Four processes import MXNet, and a reference trains the same steps alone.
    """
    steps = 5 * H + 2
    with job(4, steps, {1: H + 2, 3: ("die", 4)}) as running:
        digests = end(running, (0, 2))
        workers = contributions(running)
        for slot in (0, 2):
            assert [e["step"] for e in events(running, "step", [slot])] == [*range(1, steps + 1)]
    slots = [[slot for slot, _ in each] for each in workers]
    assert slots == [[0, 1, 2, 3]] + [[0, 2, 3]] * 2 + [[0, 2]] * 3
    assert digests == alone(tmp_path, workers, steps)


@pytest.mark.slow
def test_residuals_are_those_of_before(job):
    """Residuals are those from before a failed outer step, whether or not workers had begun to send
    when one died. A NaN rolls back all weights and leaves the residuals unmodified."""
    early = {0: ("wait", 3), 1: 2 * H + 2, 2: ("wait", 3)}
    found = []
    for faults in (early, {1: ("die", 3)}):
        with job(3, 5 * H, faults, {"type": "sparseloco", "min_size": 64}) as running:
            found.append(end(running, (0, 2)))
    assert len(found[0]) == 5 and found[0] == found[1]


def test_a_nan_takes_all_back_and_one_that_lacks_a_result_copies_it(job):
    with job(3, 4 * H, {0: ("nan", 3 * H - 1), 1: ("lack", 2)}) as running:
        digests = end(running, range(3))
        (copied,) = [e for e in events(running, "copied", [1]) if e["step"]]
        assert copied["step"] == 2 * H
    assert digests[1] == digests[2] and len(set(digests)) == 3


@pytest.mark.slow
def test_a_joiner_and_a_silent_one_contribute_from_the_next_round_on(job, tmp_path):
    """A worker that joins, and one that was silent, contribute from the next outer step on.

    Cost: Three processes import MXNet, one starts again, and a reference trains the same steps
    alone.
    """
    with job(3, 1_000_000, {1: H + 2}) as running:
        first = running.processes[running.present(1)]

        def trained(slot, least, workers):
            """Return whether a process has been in so many outer steps of so many workers, except
            the first."""
            found = [e for e in events(running, "round", [slot]) if e["pid"] != first.pid]
            return len([e for e in found[1:] if e["trained"] == workers]) >= least

        wait_until(lambda: trained(0, 1, 2), 120, "the other two to go on")
        running.restart(1)
        wait_until(lambda: trained(1, 3, 3), 120, "rounds with a joiner")
        before = len(events(running, "round", [0]))
        silence(running, 2, 2)
        stop(running)
        digests, workers = weights_are_equal(running), contributions(running)
        steps_are_made_once(running)
    sizes = [len(each) for each in workers[:before]]
    assert sizes[:2] == [3, 2] and sizes[-2:] == [3, 3]
    assert digests[:before] == alone(tmp_path, workers[:before], before * H)


@pytest.mark.slow
def test_who_joins_when_a_synchronisation_has_failed_has_no_part_in_it(job, tmp_path):
    """A worker that joins after a failed synchronization has no part in it. As the minimum is two
    workers, the other one waits for it with the steps that it has made."""
    steps = 4 * H
    with job(2, steps, {1: H + 2}) as running:
        first = running.processes[running.present(1)]
        wait_until(lambda: first.poll() is not None, 120, "the worker's death")
        running.restart(1)
        digests, workers = end(running, range(2)), contributions(running)
        assert [e["step"] for e in events(running, "step", [0])] == [*range(1, steps + 1)]
    assert [len(each) for each in workers] == [2, 1, 2, 2]
    assert digests == alone(tmp_path, workers, steps)


@pytest.mark.slow
def test_a_checkpoint_has_the_outer_weights_and_what_is_wrong_is_said():
    script = SCRIPTS / "mxnet_elastic_diloco" / "refused.py"
    expected = (
        "sync_every needs outer_optimizer",
        "outer_optimizer needs sync_every",
        "outer_optimizer_params need sync_every",
        "sync_every must be 1 or more, not 0",
        "is an Optimizer or its name",
        "must be another one than the inner",
        "belong to an optimizer that is given by name",
        "cannot be copied to a worker",
        "leave fragments out (mxnet_hipress.DiLoCoTrainer has it)",
    )
    refusals.check(script, expected)
