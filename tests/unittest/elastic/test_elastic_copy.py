"""Copy of a large state over a slow link, for which the job waits however long it takes."""

import sys

import pytest

from harness.elastic import ElasticJob
from harness.marks import needs_namespaces
from harness.netns import ShapedNetwork
from harness.processes import wait_until
from scripts import SCRIPTS

pytest.importorskip("torch")

PROGRAM = SCRIPTS / "elastic_large_state.py"


@needs_namespaces
def test_a_copy_that_takes_longer_than_the_timeout():
    """Copying the state to a worker may take longer than the timeout if parts of it arrive.

    Cost: Two copies of 24 MiB share a link of 50 Mbit/s, on which each takes longer than the
    timeout of 3 s.
    """
    with (
        ShapedNetwork(3, rate="50mbit") as network,
        ElasticJob([sys.executable, str(PROGRAM)], 3, network=network) as job,
    ):
        wait_until(lambda: job.step(2) > 0, 90, "steps")
        begin = {e["event"]: e["time"] for e in job.journal(2) if e["event"] in ("view", "start")}
        assert begin["view"] - begin["start"] > 6
        views = [e["epoch"] for e in job.journal(0) if e["event"] == "view"]
        assert views == [1], job.report()
