"""DiLoCo in elastic Keras jobs: workers that die or join cost the remaining ones no step."""

import os
import sys
from pathlib import Path

import pytest

from elastic_rounds import contributions, end, events
from harness import ROOT
from harness.elastic import ElasticJob
from harness.marks import needs_tensorflow
from harness.processes import wait_until
from scripts import SCRIPTS

pytestmark = [needs_tensorflow, pytest.mark.timeout(170)]

H = 4

PROGRAM = SCRIPTS / "tensorflow_elastic_diloco.py"


def test_workers_die_and_join_and_cost_the_others_no_step():
    """Deaths and joins in DiLoCo with Keras leave the bits of a reference in NumPy.

    Cost: Three processes import TensorFlow one after the other, and worker 0 computes the
    reference.
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(ROOT / "python")])
    command = [sys.executable, str(PROGRAM)]
    with ElasticJob(command, 2, min_workers=1, env={"PYTHONPATH": path}) as job:
        wait_until(lambda: job.step(0) > 3 * H, 90, "the other one to go on")
        job.restart(1)
        digests = end(job, [0])
        workers, steps = contributions(job), [e["step"] for e in events(job, "step", [0])]
        expected = [line.split() for line in job.output("worker 0").splitlines()]
    assert steps == [*range(1, len(steps) + 1)]
    sizes = [len(each) for each in workers]
    assert sizes[:3] == [2, 2, 1] and sizes[-6:] == [2, 2, 1, 1, 1, 1]
    found = [line[2] for line in expected if line[:1] == ["round"]]
    assert digests == found
