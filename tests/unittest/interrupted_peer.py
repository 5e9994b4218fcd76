"""Nodes of several jobs, for test_interrupts.py. Each job has one more node in another process.

Each line of standard input is a job as a JSON object, see :func:`run`. One line of output reports
that worker 0 of a job is ready, and another line reports the failure that ended the job.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import numpy as np

from hipress.errors import HipressError
from hipress.runtime.member import JobMember
from hipress.runtime.node import Node
from hipress.runtime.scheduler import Scheduler

_kept: list[object] = []


class _WithOptions(JobMember):
    def __init__(self) -> None:
        super().__init__(self.options)


class _Worker(Node, _WithOptions):
    """Worker whose options are given in code."""

    def __init__(self, options: dict[str, object]) -> None:
        self.options = options
        super().__init__()


def run(name: str, roles: list[str], options: dict[str, object], keys: int) -> None:
    """Take part in a job until it fails.

    Args:
        roles: Roles of the job's nodes in this process, each at most once.
        options: Options of all nodes, by the names of environment variables.
        keys: Number of keys that worker 0 initializes.
    """
    try:
        if "scheduler" in roles:
            _kept.append(Scheduler({**options, "DMLC_ROLE": "scheduler"}))
        if "server" in roles:
            server = {**options, "DMLC_ROLE": "server"}
            threading.Thread(target=lambda: _kept.append(JobMember(server)), daemon=True).start()
        if "worker" not in roles:
            return
        worker = _Worker({**options, "DMLC_ROLE": "worker", "DMLC_WORKER_ID": 0})
        for key in range(keys):
            worker.init_array(key, np.zeros(4, np.float32))
        print(f"{name}: ready", flush=True)
        if name == "controller":
            worker.command(0, 1, b"")
        while not (failure := worker.failure()):
            time.sleep(0.02)
        raise HipressError(failure)
    except HipressError as error:
        print(f"{name}: failed: {error}", flush=True)


if __name__ == "__main__":
    for line in sys.stdin:
        threading.Thread(target=run, kwargs=json.loads(line), daemon=True).start()
