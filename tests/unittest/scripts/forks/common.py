"""Waits until worker 1 has forked."""

import os
import time
from pathlib import Path

import forked_children

go_on = Path(os.environ["GO_ON"])


def await_worker_1():
    while not go_on.exists():
        time.sleep(0.02)


def fork_all():
    """Fork a child for each way to end, and start processes by multiprocessing."""
    for name in forked_children.ENDINGS:
        forked_children.fork(name)
    forked_children.multiprocess()
