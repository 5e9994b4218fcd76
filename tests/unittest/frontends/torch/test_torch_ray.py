"""Ray Train jobs on a real local Ray cluster, in a network namespace that ends with the test."""

from __future__ import annotations

import json
import re
import sys

import pytest

from harness import netns
from harness.marks import needs_namespaces
from harness.processes import Processes, base_environment
from scripts import SCRIPTS

pytest.importorskip("torch")
pytest.importorskip("ray.train.torch", reason="needs Ray, which make test-all installs")


@pytest.mark.slow
@needs_namespaces
@pytest.mark.timeout(600)
def test_workers_of_ray_are_restarted_and_their_number_changes():
    """A restarted job has the bits of one that nothing disturbed; another goes on with fewer nodes.

    Cost: A Ray cluster of four nodes, and four jobs of 12 steps.
    """
    with netns.ShapedNetwork(1, rate=None) as network, Processes(network) as job:
        command = [sys.executable, str(SCRIPTS / "ray_jobs.py"), str(job.path)]
        job.start("jobs", command, base_environment({"RAY_AUTH_MODE": "disabled"}))
        (result,) = job.wait(560)
        found = re.search(r"^found (.*)", result.output, re.MULTILINE)
        assert result.returncode == 0 and found, result.output[-6000:]
    jobs = json.loads(found[1])
    assert jobs["restarted"]["start"] == 4
    assert jobs["restarted"]["bits"] == jobs["undisturbed"]["bits"]
    assert (jobs["elastic"]["start"], jobs["elastic"]["size"]) == (4, 2)
    assert all(each["secret"] for each in jobs.values())
    assert jobs["undisturbed"]["backend"] == "gloo"
    assert jobs["backend"]["backend"] == "hipress" and "compressed" in jobs["backend"]["stats"]
