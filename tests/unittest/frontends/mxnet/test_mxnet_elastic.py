"""Elastic training with MXNet: workers die and join, and every step has the reference's bits."""

import json
import subprocess
import sys

import pytest

import refusals
from harness.elastic import ElasticJob
from harness.processes import base_environment, wait_until
from scripts import SCRIPTS

pytest.importorskip("mxnet_hipress")

PROGRAM = SCRIPTS / "mxnet_elastic" / "worker.py"

REFERENCE = SCRIPTS / "mxnet_elastic" / "reference.py"


@pytest.fixture
def job():
    """Start a job of the program above, of three workers."""
    jobs = []

    def start(compression, **options):
        command = [sys.executable, str(PROGRAM), json.dumps(compression)]
        jobs.append(ElasticJob(command, 3, env={"OMP_NUM_THREADS": "1"}, **options))
        return jobs[-1]

    yield start
    for each in jobs:
        each.close()


def events(job, kind):
    """Return what all slots have written of this kind."""
    return [event for slot in range(3) for event in job.journal(slot) if event["event"] == kind]


def digests_of(job):
    """Return the digest after each step, which is the same on all that made it."""
    found = {}
    for event in events(job, "step"):
        found.setdefault(event["step"], set()).add(event["digest"])
    assert all(len(each) == 1 for each in found.values()), found
    return {step: each.pop() for step, each in found.items()}


@pytest.mark.slow
def test_every_step_has_the_bits_of_a_reference(job):
    """Every step of an elastic MXNet job has the bits of a reference, also after a death and a
    join.

    Cost: Three processes train, one starts again twice, and one process computes the
    reference.
    """
    compression = {"type": "onebit", "min_size": 256, "warmup_steps": 5}
    with job(compression) as running:
        wait_until(lambda: running.step(0) >= 16, 120, "the others to go on")
        assert {event["step"] for event in events(running, "rollback")} == {12}
        other = json.dumps({"type": "onebit", "min_size": 64})
        running.restart(2, [*running.command[:-1], other])
        refused = running.processes[running.present(2)]
        wait_until(lambda: refused.poll() is not None, 120, "the end of a worker that differs")
        last = running.output(running.present(2)).splitlines()[-1]
        assert last.startswith("ValueError: this worker") and "differ in compression" in last
        running.restart(2)
        running.wait(120)
        names = [running.present(slot) for slot in range(3)]
        assert all(running.processes[name].returncode == 0 for name in names), running.report()
        (kept,) = {running.output(name).splitlines()[-1] for name in names}
        assert kept.startswith(f"step {running.step(0) - 1} ")
        found = digests_of(running)
        for event in events(running, "step"):  # the schedule continues also for new workers
            assert event["updates"] == event["step"]
            assert event["rate"] == pytest.approx(0.05 * 0.9 ** ((event["step"] - 1) // 5))
        began = {}
        for slot in range(3):
            for event in running.journal(slot):
                if event["event"] == "view":
                    _, slots = began.setdefault(event["epoch"], (event["step"], {}))
                    slots[event["rank"]] = slot
    views = [(step, [slots[rank] for rank in sorted(slots)]) for step, slots in began.values()]
    assert [(step, sorted(slots)) for step, slots in views][:2] == [(0, [0, 1, 2]), (12, [0, 1])]
    assert sorted(found) == list(range(1, max(found) + 1))
    ended = subprocess.run(
        [sys.executable, str(REFERENCE), json.dumps([views, max(found)])],
        timeout=60,
        env=base_environment({"OMP_NUM_THREADS": "1"}),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert {int(step): d for step, d in json.loads(ended.stdout).items()} == found


def test_rank_0_dies_and_then_there_is_one(job):
    """Rank 0 dies and one worker remains, with another codec, which has states of other kinds, on a
    ring."""
    compression = {"type": "dgc", "ratio": 0.05, "min_size": 256, "topology": "ring"}
    with job(compression, min_workers=1) as running:
        wait_until(lambda: running.step(1) >= 16, 120, "slot 2 to have died by itself")
        running.kill(0)
        wait_until(lambda: running.step(1) >= 25, 120, "a worker to go on alone")
        assert {event["size"] for event in running.journal(1) if "size" in event} == {1, 2, 3}
        assert sorted(digests_of(running))[:25] == list(range(1, 26))


@pytest.mark.slow
def test_what_cannot_be_is_refused_in_a_sentence():
    script = SCRIPTS / "mxnet_elastic" / "refused.py"
    expected = (
        "has no values yet",
        "kvstore=None",
        "belong to elastic.State",
        "sums dense ones",
        "sums dense ones",
        'unknown compression type "twobit"',
        "shared_momentum is for PyTorch",
        "pull is for kvstores",
        "cannot be copied to a worker",
        "mxnet_hipress.elastic.run runs",
        "state.commit() belongs",
        "hipress launch --elastic",
    )
    refusals.check(script, expected)
