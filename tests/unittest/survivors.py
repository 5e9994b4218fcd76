"""Jobs of which one process is killed or stopped: all other processes must end, and name it."""

from __future__ import annotations

import random
import time

from harness.cluster import Cluster
from scripts import SCRIPTS

TRAIN_UNTIL_FAILURE = SCRIPTS / "train_until_failure.py"


def check_that_survivors_name_the_dead(cluster: Cluster, workers: int, victim: str, number: int):
    """Send a signal to one process of a job that runs TRAIN_UNTIL_FAILURE."""
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
