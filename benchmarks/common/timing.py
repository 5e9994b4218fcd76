"""Helpers of measured processes inside a job: options, timing of steps, reports."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

RESULT = "@result "  # a process reports a JSON object in a line that starts with this


def options(**defaults: Any) -> SimpleNamespace:
    """Return the options passed to :func:`benchmarks.common.jobs.node`, over the defaults."""
    return SimpleNamespace(**{**defaults, **json.loads(sys.argv[1])})


def report(**values: Any) -> None:
    """Report `values` to the process that waits for the job."""
    print(RESULT + json.dumps(values), flush=True)


def time_blocks(
    step: Callable[[], None],
    barrier: Callable[[], None],
    blocks: int,
    steps: int = 1,
    reset: Callable[[], None] | None = None,
) -> list[float]:
    """Return the seconds of a step in each of some blocks of `steps` steps.

    A barrier comes before each block, and none inside it: as in training, a worker begins the next
    step when it has all results of the last. With one step per block, the time includes the delay
    with which other workers leave the barrier.

    Args:
        step: Function that makes one step, to its last result.
        reset: Function called before each block, which is not timed.
    """
    seconds = []
    for _ in range(blocks):
        if reset:
            reset()
        barrier()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        seconds.append((time.perf_counter() - began) / steps)
    return seconds


def best_seconds(run: Callable[[], object], seconds: float) -> float:
    """Return the seconds of the fastest of at least two runs that fit into the given time."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
        if time.perf_counter() > end:
            return best
