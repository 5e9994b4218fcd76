"""Waits in a step until Ctrl-C, or for the failure that it causes."""

import time


def interrupt(step):
    """Make a step in which worker 0 has no part, until Ctrl-C interrupts it."""
    print("waits", flush=True)
    try:
        step()
    except BaseException:  # TensorFlow turns KeyboardInterrupt into an error of pybind11
        print("interrupted at", time.monotonic(), flush=True)
        raise


def await_failure(failure):
    """Wait until ``failure()`` returns an error, and print it."""
    while not (error := failure()):
        time.sleep(0.02)
    print("failed:", error, flush=True)
