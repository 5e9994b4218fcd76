"""Ctrl-C in a process that waits for gradients in native code of PyTorch, MXNet or TensorFlow."""

from __future__ import annotations

import re
import signal
import sys
import time

import pytest

from harness.cluster import Cluster
from harness.marks import needs_tensorflow
from harness.processes import Processes, base_environment
from harness.torch_job import TorchJob
from scripts import SCRIPTS

SECONDS = 0.5
"""Longest time in seconds from Ctrl-C to KeyboardInterrupt."""
BUSY = 1.0
"""Seconds added to this limit, because a process must first be scheduled on a core."""

# In each program worker 0 makes one step less than worker 1, which waits for it.

TORCH = SCRIPTS / "interrupts" / "torch_ddp.py"

MXNET = SCRIPTS / "interrupts" / "mxnet_store.py"

TENSORFLOW = SCRIPTS / "interrupts" / "tensorflow_function.py"


def check(job: Processes, waiting: str, other: str, end: float = 3 * BUSY) -> None:
    """Interrupt a process that waits, and check the errors.

    Args:
        end: Seconds until the process ends, after KeyboardInterrupt.
    """
    job.wait_for(waiting, "waits", 90)
    time.sleep(0.5)
    began = time.monotonic()
    job.signal(waiting, signal.SIGINT)
    job.wait_for(waiting, "interrupted at", 10)
    at = re.search(r"interrupted at ([\d.]+)", job.output(waiting))
    assert float(at[1]) - began < SECONDS + BUSY, job.report()
    while waiting in job.running():
        assert time.monotonic() < began + SECONDS + BUSY + end, job.report()
        time.sleep(0.02)
    job.wait_for(other, "failed: ", 10)
    assert "1 was interrupted (SIGINT)" in job.output(other) or "1 (" in job.output(other)


def test_interrupt_ends_a_backward_pass_of_pytorch():
    pytest.importorskip("torch")
    with TorchJob([sys.executable, str(TORCH)], 2, base_environment()) as job:
        check(job, "rank 1", "rank 0", 8.0)  # PyTorch needs seconds to end


@pytest.mark.parametrize("servers", [0, 1])
def test_interrupt_ends_a_wait_of_mxnet(servers):
    pytest.importorskip("mxnet")
    with Cluster(MXNET, 2, servers) as job:
        check(job, "worker 1", "worker 0")


@pytest.mark.slow
@needs_tensorflow
def test_interrupt_ends_a_function_of_tensorflow():
    with Cluster(TENSORFLOW, 2, 0, env={"TF_CPP_MIN_LOG_LEVEL": "2"}) as job:
        check(job, "worker 1", "worker 0")
