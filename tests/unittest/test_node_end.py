"""How a script of hipress.node ends says how its node leaves the job."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.cluster import Cluster
from harness.processes import base_environment

SERVER = (sys.executable, "-c", "from hipress.node import Node; Node().serve()")

# Worker 1 trains a step and ends as the test says. Worker 0 trains with it, waits until it has
# gone, and prints how: who has left in peace, or the error. Without servers the two are linked.
PROGRAM = """
import atexit, os, sys, threading, time
import numpy as np
from hipress.node import HipressError, Node

def step(node):
    out = np.zeros(4, np.float32)
    node.pushpull(0, np.ones(4, np.float32), out).wait(20)
    assert out[0] == 2

def begin(node):
    node.init_array(0, np.zeros(4, np.float32))
    step(node)
    return node

def end():
    {end}

if os.environ["DMLC_WORKER_ID"] == "1":
    end()
else:
    with begin(Node()) as node:
        try:
            while not node.left():
                time.sleep(0.02)
                error = node.failure()
                if error:
                    raise HipressError(error)
            print("worker 1 left in peace", flush=True)
        except HipressError as error:
            print("failure:", error, flush=True)
"""

PEACE, FAILURE = "worker 1 left in peace", "failure: worker 1"
ENDS = {
    # what worker 1 does: (how worker 0 sees it, worker 1's exit status)
    "begin(Node())": (PEACE, 0),
    "begin(Node()).stop()": (PEACE, 0),
    "begin(Node()).leave(); sys.exit()": (PEACE, 0),
    "begin(Node()); sys.exit(0)": (PEACE, 0),
    "begin(Node()).pushpull(0, np.ones(4, np.float32)); raise ValueError('of mine')": (FAILURE, 1),
    "begin(Node()); raise ValueError('of mine')": (FAILURE, 1),
    "begin(Node()); raise KeyboardInterrupt": (FAILURE, -2),
    "begin(Node()).abort()": (FAILURE, 0),
    "begin(Node()); os._exit(3)": (FAILURE, 3),
    # A thread's exception is not the script's.
    "begin(Node()); t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()": (PEACE, 0),
    # A child that ends, well or not, is not the worker.
    "node = begin(Node()); c = os.fork(); c or sys.exit(1); os.waitpid(c, 0); step": (PEACE, 0),
    "node = begin(Node()); c = os.fork(); c or 1 / 0; os.waitpid(c, 0); step": (PEACE, 0),
    # Exit handlers of the script run before the goodbye, and may use the node.
    "node = begin(Node()); atexit.register(lambda: print(node.stats(), flush=True))": (PEACE, 0),
}
BLOCKS = {
    "pass": (PEACE, 0),
    "node.stop()": (PEACE, 0),
    "sys.exit(0)": (PEACE, 0),
    "sys.exit(4)": (FAILURE, 4),
    "raise ValueError('of mine')": (FAILURE, 1),
    "node.abort()": (FAILURE, 0),
}


def check(end: str, expected: tuple[str, int]) -> None:
    program = PROGRAM.format(end=end)
    with Cluster(program, workers=2, servers=0, server_command=SERVER) as cluster:
        results = {result.name: result for result in cluster.wait(120)}
    assert expected[0] in results["worker 0"].output, results
    assert results["worker 1"].returncode == expected[1], results["worker 1"]
    assert results["worker 0"].returncode == 0, results["worker 0"]
    if expected[0] is PEACE:
        assert results["scheduler"].returncode == 0, results


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_script(end):
    check(end, ENDS[end])


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("block", BLOCKS)
def test_the_end_of_a_with_block(block):
    # What follows the block takes longer than worker 0 needs to see how it ended.
    end = f"""with begin(Node()) as node:
        {block}
    time.sleep(0.5)"""
    check(end, BLOCKS[block])


def test_what_is_pushed_last_arrives():
    """The goodbye waits for a push that nobody has waited for."""
    end = "node = begin(Node()); x = np.ones(4, np.float32); node.push(0, x)"
    program = PROGRAM.format(end=end).replace(
        "while not node.left():", "step(node)\n            while not node.left():"
    )
    with Cluster(program, workers=2, servers=0, server_command=SERVER) as cluster:
        results = {result.name: result for result in cluster.wait(120)}
    assert PEACE in results["worker 0"].output, results


@pytest.mark.parametrize("package", ["mxnet_hipress", "hipress.tensorflow"])
def test_a_server_that_fails_ends_when_the_others_have_the_news(package):
    """abort() waits for that; an exit alone would reset connections over what is still unread."""
    if package == "mxnet_hipress":
        pytest.importorskip("mxnet")
    program = f"""
import hipress.node

class Failing:
    rank = 0
    def serve(self, *control):
        raise hipress.node.HipressError("worker 1 died")
    def abort(self):
        print("aborts", flush=True)

hipress.node.Node = Failing
import {package}
print("comes back")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], env=base_environment({"DMLC_ROLE": "server"}),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "aborts\n"), ended
    assert ended.stderr.splitlines()[-1] == "hipress server 0: worker 1 died"
