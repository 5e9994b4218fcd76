"""Elastic training with Keras's fit: a worker dies and joins, and the survivors lose no step."""

import sys

import pytest

import refusals
from harness.elastic import ElasticJob
from harness.marks import needs_tensorflow
from harness.processes import wait_until
from scripts import SCRIPTS

pytestmark = [needs_tensorflow, pytest.mark.timeout(170)]

PROGRAM = SCRIPTS / "tensorflow_elastic" / "worker.py"


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "onebit"])
def test_a_worker_dies_and_its_successor_joins(compression):
    """A death costs the other worker no step in Keras's fit, and the successor gets every byte.

    Cost: Three processes import TensorFlow, and train 150 steps together after the restart.
    """
    command = [sys.executable, str(PROGRAM), compression]
    with ElasticJob(command, 2, min_workers=1) as job:
        wait_until(lambda: job.step(0) >= 15, 90, "the other one to go on")
        assert [e["step"] for e in job.journal(0) if e["event"] == "rollback"] == [12]
        job.restart(1)
        job.wait(90)
        names = [job.present(slot) for slot in range(2)]
        assert all(job.processes[name].returncode == 0 for name in names), job.report()
        said = f"iterations {job.step(0)}"
        assert all(said in job.output(name).splitlines() for name in names), job.report()
        digests = {}
        for slot in range(2):
            for event in job.journal(slot):
                if event["event"] == "step":
                    digests.setdefault(event["step"], set()).add(event["digest"])
        assert sorted(digests) == list(range(1, job.step(0) + 1))
        assert all(len(found) == 1 for found in digests.values()), digests
        (gone,) = [e for e in job.journal(0) if e["event"] == "gone"]
        assert (gone["residual_written_off"] > 0) == (compression != "none")


def test_a_checkpoint_has_the_outer_weights_and_what_cannot_be_is_refused():
    script = SCRIPTS / "tensorflow_elastic" / "refused.py"
    expected = (
        "has no weights yet",
        "pull is for kvstores",
        "has no gradient",
        "run runs",
        "sync_every needs outer_optimizer",
        "outer_optimizer needs sync_every",
        "sync_every must be 1 or more, not 0",
        "one of Keras 3's, not a str",
        "another one than the inner",
        "leave fragments out (hipress.tensorflow.DiLoCo has it)",
        "steps_per_execution=1, not 2",
        "is in use",
    )
    refusals.check(script, expected)
