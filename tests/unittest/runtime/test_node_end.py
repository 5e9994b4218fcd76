"""End of a script of hipress.runtime.node, which says how its node leaves the job."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.cluster import Cluster
from harness.processes import Result, base_environment
from scripts import SCRIPTS

SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")

WORKER = SCRIPTS / "node_end" / "worker.py"
PEACE, FAILURE = "worker 1 left in peace", "failure: worker 1"
ENDINGS = {
    # how worker 1 ends: (what worker 0 observes, exit status of worker 1)
    "end of the script": (PEACE, 0),
    "stop": (PEACE, 0),
    "leave, exit": (PEACE, 0),
    "exit": (PEACE, 0),
    "error, push under way": (FAILURE, 1),
    "error": (FAILURE, 1),
    "interrupt": (FAILURE, -2),
    "abort": (FAILURE, 0),
    "_exit": (FAILURE, 3),
    # An exception of a thread is not one of the script.
    "error in a thread": (PEACE, 0),
    # A child that ends, well or not, is not the worker.
    "exit in a child": (PEACE, 0),
    "error in a child": (PEACE, 0),
    # Exit handlers of the script run before the node leaves, and may use it.
    "exit handler": (PEACE, 0),
}
BLOCKS = {
    "end of the script": (PEACE, 0),
    "stop": (PEACE, 0),
    "exit": (PEACE, 0),
    "exit with 4": (FAILURE, 4),
    "error": (FAILURE, 1),
    "abort": (FAILURE, 0),
}


def run(end: str) -> dict[str, Result]:
    """Return results of a job whose worker 1 ends in this way. Without servers the two are
    linked."""
    with Cluster(WORKER, workers=2, servers=0, server_command=SERVER, args=[end]) as cluster:
        return {result.name: result for result in cluster.wait(120)}


def check(end: str, expected: tuple[str, int]) -> None:
    results = run(end)
    assert expected[0] in results["worker 0"].output, results
    assert results["worker 1"].returncode == expected[1], results["worker 1"]
    assert results["worker 0"].returncode == 0, results["worker 0"]
    if expected[0] is PEACE:
        assert results["scheduler"].returncode == 0, results


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("end", ENDINGS)
def test_the_end_of_a_script(end):
    check(end, ENDINGS[end])


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("block", BLOCKS)
def test_the_end_of_a_with_block(block):
    check(f"block:{block}", BLOCKS[block])


def test_what_is_pushed_last_arrives():
    """The last push arrives: the node waits, when it leaves, for a push that the script has not
    waited for."""
    results = run("last push")
    assert PEACE in results["worker 0"].output, results


@pytest.mark.parametrize("package", ["mxnet_hipress", "hipress.tensorflow"])
def test_a_server_that_fails_ends_when_the_others_have_the_news(package):
    """A server that fails ends when other nodes have received its message. abort() waits for that;
    an exit alone would reset connections with unread data."""
    if package == "mxnet_hipress":
        pytest.importorskip("mxnet")
    script = SCRIPTS / "node_end" / "failing_server.py"
    ended = subprocess.run(
        [sys.executable, str(script), package],
        env=base_environment({"DMLC_ROLE": "server"}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "aborts\n"), ended
    assert ended.stderr.splitlines()[-1] == "hipress server 0: worker 1 died"
