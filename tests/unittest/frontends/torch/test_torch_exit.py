"""Exit of a process whose last gradients have just arrived: it ends without an error."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from harness.processes import base_environment
from harness.torch_job import TorchJob
from harness.torch_ranks import returned, run_ranks, torch
from scripts import SCRIPTS

LAST_STEP = SCRIPTS / "torch_exit.py"


@pytest.mark.slow
def test_a_callback_that_still_runs_is_waited_for():
    with TorchJob([sys.executable, str(LAST_STEP)], 2, base_environment()) as job:
        assert [each.returncode for each in job.wait(100)] == [0, 0], job.report()
        assert "auto: uncompressed, the fastest" in job.output("rank 0")


def test_a_process_waits_for_callbacks_and_for_no_one_who_never_comes(monkeypatch):
    from hipress.torch.executors import gloo_threads

    called, future, never = [], torch.futures.Future(), torch.futures.Future()
    future.add_done_callback(gloo_threads.awaited(lambda _: (time.sleep(0.2), called.append(1))))
    thread = threading.Timer(0.1, future.set_result, [0])
    thread.start()
    gloo_threads.settle()
    assert called
    thread.join()
    never.add_done_callback(gloo_threads.awaited(lambda _: called.append(2)))
    monkeypatch.setattr(gloo_threads, "MAX_SECONDS", 0.3)
    began = time.monotonic()
    gloo_threads.settle()
    assert 0.3 <= time.monotonic() - began < 10
    assert called == [1]
    gloo_threads._forget()  # PyTorch keeps what waits for a future that nothing completes


def test_a_process_waits_for_numbers_that_are_compared(monkeypatch):
    from hipress.torch.autotune.reductions import GroupReductions
    from hipress.torch.executors import gloo_threads

    class Work:
        until = time.monotonic() + 0.3

        def is_completed(self):
            return time.monotonic() > self.until

    monkeypatch.setattr(torch.distributed, "all_reduce", lambda *_, **__: Work())
    begun = GroupReductions(None, None, torch.device("cpu")).begin_max([1.0])
    gloo_threads.settle()
    assert begun[0].is_completed()


def averaged(rank):
    """Return means by PyTorch's hooks, and by HiPress's."""
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    from hipress.torch.autotune.hooks import MEANS, FlatBucket

    found = []
    for theirs, name in (
        (default_hooks.allreduce_hook, "uncompressed"),
        (default_hooks.bf16_compress_hook, "DDP's bf16_compress_hook"),
    ):
        both = []
        for hook in (theirs, MEANS[name]):
            torch.manual_seed(rank)
            bucket = FlatBucket(torch.randn(1000))
            mean = hook(dist.group.WORLD, bucket).wait()
            assert mean.data_ptr() == bucket.buffer().data_ptr()
            both.append(mean.numpy().tobytes())
        found.append(both[0] == both[1])
    return found


def test_gradients_that_go_uncompressed_are_pytorchs():
    assert returned(run_ranks(averaged, 3)) == [[True, True]] * 3
