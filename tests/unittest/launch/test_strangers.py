"""Crowds of strangers, which do not take a job's descriptors."""

from __future__ import annotations

import contextlib
import resource
import socket
import sys
import time

from harness.cluster import Cluster
from scripts import SCRIPTS

LIMIT = 64
SERVER = (sys.executable, str(SCRIPTS / "strangers" / "server.py"), str(LIMIT))
WORKER = SCRIPTS / "strangers" / "worker.py"


def test_a_job_forms_in_a_crowd_of_strangers():
    """A job forms in a crowd of strangers, four times as many as the scheduler may have
    descriptors. They send nothing, and stay."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft > 8 * LIMIT, "this test needs descriptors itself"
    with contextlib.ExitStack() as stack:
        job = stack.enter_context(Cluster(WORKER, workers=4, servers=1, server_command=SERVER))
        strangers = []

        def crowd(count: int) -> None:
            for _ in range(count):
                with contextlib.suppress(OSError):
                    stranger = socket.create_connection(("127.0.0.1", job.port), timeout=5)
                    strangers.append(stack.enter_context(stranger))

        deadline = time.monotonic() + 60
        while not strangers and time.monotonic() < deadline:  # until the scheduler listens
            crowd(1)
            time.sleep(0.05)
        crowd(4 * LIMIT)
        assert len(strangers) > 2 * LIMIT
        (job.path / "crowded").touch()
        while len(job.running()) == 6 and time.monotonic() < deadline:
            crowd(10)  # and more come all the time
            time.sleep(0.1)
        results = {result.name: result for result in job.wait(120)}
    assert [result.returncode for result in results.values()] == [0] * 6, results
    assert results["worker 3"].output.strip() == "sum 4.0"
    assert not [name for name, one in results.items() if "cannot open a file" in one.output]
    assert "was too slow in a crowd of callers" in results["scheduler"].output
