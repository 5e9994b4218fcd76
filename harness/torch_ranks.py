"""Functions as the ranks of a torch.distributed job, with a time limit."""

from __future__ import annotations

import datetime
import faulthandler
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable

import pytest

from harness.processes import free_port
from harness.torch_job import environment_of

torch = pytest.importorskip("torch", reason="needs torch")

TIMEOUT = 120  # seconds for a whole job
PRELOAD = ["torch", "torch._dynamo", "torch.distributed.checkpoint", "harness.torch_ranks"]
"""Modules to import in advance. DDP imports torch._dynamo with the first model, which takes
seconds."""


def run_ranks(
    function: Callable,
    world_size: int,
    *args: object,
    timeout: float = TIMEOUT,
    join: bool = True,
    gpu: bool = False,
    when_done: Callable[[int, object], None] = lambda rank, value: None,
) -> list:
    """Run ``function(rank, *args)`` on every rank, and return their results.

    With ``join``, ranks are in an initialized Gloo group; without, they only have its environment.
    Without ``gpu`` they see no GPU: FSDP2 would use it, and more ranks than GPUs are an error.

    A rank that raises returns its exception as text: "ValueError: ...". Ranks are forked from a
    server that has imported torch, so that a job starts in tenths of a second.

    Raises:
        AssertionError: If a rank dies or exceeds the time limit. No rank outlives the call.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    queue = context.SimpleQueue()
    port = free_port()
    ranks = [
        context.Process(
            target=_run,
            args=(function, rank, world_size, port, queue, args, join, gpu),
            daemon=True,
        )
        for rank in range(world_size)
    ]
    for process in ranks:
        process.start()
    found: dict[int, object] = {}
    deadline = time.monotonic() + timeout
    try:
        while len(found) < world_size:
            while not queue.empty():
                rank, value = queue.get()
                found[rank] = value
                when_done(rank, value)
            gone = [r for r, p in enumerate(ranks) if r not in found and p.exitcode is not None]
            if gone and queue.empty():
                for rank in gone:
                    found[rank] = f"died with status {ranks[rank].exitcode}"
            late = [rank for rank in range(world_size) if rank not in found]
            assert time.monotonic() < deadline, f"ranks {late} are not done after {timeout} s"
            time.sleep(0.01)
    finally:
        for rank, process in enumerate(ranks):
            if rank not in found and process.is_alive():
                os.kill(process.pid, signal.SIGUSR1)  # prints its stack
                time.sleep(0.5)
        for process in ranks:
            process.kill()
            process.join()
    return [found[rank] for rank in range(world_size)]


def returned(results):
    """Return the results of ranks, which may differ."""
    assert not any(isinstance(found, str) for found in results), results
    return results


def _run(function, rank, world_size, port, queue, args, join, gpu) -> None:
    os.environ.update(environment_of(rank, world_size, port), OMP_NUM_THREADS="1")
    if not gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        # Otherwise is_available() reports the server's state when it imported torch._dynamo.
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    faulthandler.register(signal.SIGUSR1)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    import torch.distributed as dist

    failed = False
    try:
        if join:
            dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
        value = function(rank, *args)
    except Exception as error:
        traceback.print_exc()
        value = f"{type(error).__name__}: {error}"
        failed = True
    queue.put((rank, value))
    # An error ends a program. A finished rank stays until it is killed, so that unfinished ranks do
    # not see it die.
    time.sleep(0.2 if failed else 300)
    os._exit(0)
