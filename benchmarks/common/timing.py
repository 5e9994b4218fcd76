"""What a measured process does inside a job: gets its options, times steps, reports."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

RESULT = "@result "  # a process hands a JSON object over by printing a line that starts so


def options(**defaults: Any) -> SimpleNamespace:
    """What :func:`benchmarks.common.jobs.node` was given, over the defaults."""
    return SimpleNamespace(**{**defaults, **json.loads(sys.argv[1])})


def report(**values: Any) -> None:
    """Hand `values` to whoever waits for the job."""
    print(RESULT + json.dumps(values), flush=True)


def time_blocks(
    step: Callable[[], None],
    barrier: Callable[[], None],
    blocks: int,
    steps: int = 1,
    reset: Callable[[], None] | None = None,
) -> list[float]:
    """Return the seconds of a step in each of some blocks of `steps` steps.

    A barrier comes before each block, and no other inside it: as in training, a worker begins the
    next step when it has all results of the last. With one step a block, the time includes what
    the others leave the barrier later.

    :param step: makes one step, to its last result
    :param reset: what to do before each block, not timed
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
    """Return the fastest of as many runs as fit into the given time, and at least two."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
        if time.perf_counter() > end:
            return best
