"""Children that a worker forks for test_forks.py, with their ways to end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable

SECONDS = 20
"""Time for a child to end, on a busy machine. One that waits for other workers never does."""


def _raise() -> None:
    raise ValueError("of the child")


ENDINGS: dict[str, tuple[Callable[[], object], int]] = {
    "sys.exit()": (sys.exit, 0),
    "sys.exit(3)": (lambda: sys.exit(3), 3),
    "exception": (_raise, 1),
    "os._exit(4)": (lambda: os._exit(4), 4),
}
"""Functions that end a child, and the exit status of that child."""


def fork(name: str) -> None:
    """Fork a child that ends in the named way, and print how it ended. In the child this function
    raises an exception or does not return."""
    end, expected = ENDINGS[name]
    child = os.fork()
    if child == 0:
        end()
    until = time.monotonic() + SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            print(f"{name}: hangs", flush=True)
            return
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(status)
    print(f"{name}: {'ends' if code == expected else f'status {code}'}", flush=True)


def call(name: str, function: Callable[[], object]) -> None:
    """Call a function in a child, and print whether it raises an error there about the fork."""
    child = os.fork()
    if child == 0:
        try:
            function()
        except Exception as error:
            os._exit(0 if "was forked from a worker's" in str(error) else 1)
        os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"{name}: {'refused' if code == 0 else f'status {code}'}", flush=True)


def multiprocess() -> None:
    """Use a pool of forked processes, and a process that fails; print whether both end."""
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        found = pool.map_async(abs, [-1, -2]).get(SECONDS)
        pool.close()
        pool.join()
    print(f"pool: {'ends' if found == [1, 2] else found}", flush=True)
    process = context.Process(target=_raise)
    process.start()
    process.join(SECONDS)
    if process.exitcode is None:
        process.kill()
    print(f"process: {'ends' if process.exitcode == 1 else process.exitcode}", flush=True)
