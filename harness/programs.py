"""Workers' programs, and what is checked of them, that jobs with and without servers share."""

from __future__ import annotations

import random
import time

from harness.cluster import Cluster

TRAIN_UNTIL_FAILURE = """
import time
import numpy as np
from hipress.node import HipressError, Node

node = Node()
try:
    node.init_array(0, np.zeros(100_000, np.float32))
    node.set_gradient_compression({"type": "2bit"})
    x = np.ones(100_000, np.float32)
    print("running", flush=True)
    while True:
        node.pushpull(0, x, np.zeros_like(x)).wait(30)
except HipressError as error:
    print(f"failed at {time.time()}: {error}", flush=True)
    node.abort()
"""

CHANGE_COMPRESSION = """
n = 5000
node.init_array(0, np.zeros(n, np.float32))
plan = {0: {"type": "2bit", "threshold": 1.5}, 5 + rank: {"type": "onebit"},
        10 + rank: {"type": "2bit", "threshold": 0.25}, 15 + rank: {"type": "none"}}
received = np.zeros(n)
pushed = np.zeros(n)
for iteration in range(25):
    if iteration in plan:
        node.set_gradient_compression({**plan[iteration], "min_size": 0})
    out = np.zeros(n, np.float32)
    node.push(0, gradient(n, iteration, rank)).wait(20)
    node.pull(0, out).wait(20)
    received += out
    pushed += sum(gradients(n, iteration))
np.testing.assert_allclose(received, pushed, atol=1e-3)
"""
"""After `node`, `rank`, `gradient` and `gradients`. Workers switch at different iterations; in the
end, uncompressed, everything that residuals held back has arrived."""


def check_that_survivors_name_the_dead(cluster: Cluster, workers: int, victim: str, number: int):
    """Sends a signal to one process of a job that runs TRAIN_UNTIL_FAILURE."""
    for rank in range(workers):
        cluster.wait_for(f"worker {rank}", "running")
    time.sleep(random.uniform(0, 0.5))
    cluster.signal(victim, number)
    killed = time.time()
    deadline = time.monotonic() + 15
    while set(cluster.running()) - {victim} and time.monotonic() < deadline:
        time.sleep(0.02)
    survivors = set(cluster.running()) - {victim}
    assert not survivors, f"still running: {survivors}\n{cluster.report()}"
    name = "the scheduler" if victim == "scheduler" else victim
    for rank in range(workers):
        if f"worker {rank}" == victim:
            continue
        output = cluster.output(f"worker {rank}")
        line = next(x for x in output.splitlines() if x.startswith("failed at"))
        seconds = float(line.split()[2].rstrip(":")) - killed
        assert name in line, line
        assert seconds < 10, f"worker {rank} noticed after {seconds:.1f} s"
