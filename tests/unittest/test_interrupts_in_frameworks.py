"""Ctrl-C ends a process that waits for gradients in native code of PyTorch, MXNet or TensorFlow."""

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

SECONDS = 0.5
"""Longest time in seconds from Ctrl-C to KeyboardInterrupt."""
BUSY = 1.0
"""Seconds added to this limit, because a process must first be scheduled on a core."""

# In each program worker 0 makes one step less than worker 1, which waits for it.

TORCH = """
import time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import hipress.torch

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(200, 200))
compression = hipress.torch.compress(model, "onebit", min_size=1)

def step():
    model(torch.ones(2, 200)).sum().backward()

step()
step()  # DDP itself communicates before its second step
if rank == 0:
    while not (failure := compression.engine.member.failure()):
        time.sleep(0.02)
    print("failed:", failure, flush=True)
else:
    print("waits", flush=True)
    try:
        step()
    except KeyboardInterrupt:
        print("interrupted at", time.monotonic(), flush=True)
        raise
"""

MXNET = """
import os, time
import mxnet as mx
import mxnet_hipress

kv = mx.kv.create("dist_sync_hipress")
weight = mx.nd.zeros(200)
kv.init(0, weight)

def step():
    kv.pushpull(0, mx.nd.ones(200), out=weight)
    weight.wait_to_read()

step()
if kv.rank == 0:
    while not (failure := kv._node.failure()):
        time.sleep(0.02)
    print("failed:", failure, flush=True)
else:
    print("waits", flush=True)
    try:
        step()
    except KeyboardInterrupt:
        print("interrupted at", time.monotonic(), flush=True)
        raise
"""

TENSORFLOW = """
import hipress.tensorflow as hvd
import time
import tensorflow as tf
from hipress.tensorflow.job import join

variable = tf.Variable(tf.zeros(200))

@tf.function
def step():
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = tf.reduce_sum(variable * variable)
    return tape.gradient(loss, [variable])

step()
if hvd.rank() == 0:
    while not (failure := join().node.failure()):
        time.sleep(0.02)
    print("failed:", failure, flush=True)
else:
    print("waits", flush=True)
    try:
        step()
    except BaseException:  # TensorFlow turns KeyboardInterrupt into an error of pybind11
        print("interrupted at", time.monotonic(), flush=True)
        raise
"""


def check(job: Processes, waiting: str, other: str, end: float = 3 * BUSY) -> None:
    """Interrupt a process that waits, and check the errors.

    :param end: seconds that the end of the process takes, after KeyboardInterrupt
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
    with TorchJob([sys.executable, "-c", TORCH], 2, base_environment()) as job:
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
