"""What Gloo's threads do for this process: an interpreter that ends waits until that is over.

A thread of Gloo's needs Python's lock to run a callback of a future's, to free the callback after
that, and to give up tensors that Python knows, too. Whoever waits for the future may be told first,
and end. Before Python 3.14, a thread of C++ that asks an interpreter that is ending for its lock
ends the process: "terminate called without an active exception". PyTorch waits for its threads only
when the last that holds the process group is gone, which may be the module of a script.
"""

from __future__ import annotations

import atexit
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

MAX_SECONDS = 2.0
"""For which a process waits at its end, at most: the other ranks may be gone."""
_POLL_SECONDS = 0.001
_NAME = "pt_gloo"
"""What the names of Gloo's threads, which PyTorch gives them, begin with."""


class _Held:
    """A callback of a future's; there are weak references to it."""

    __slots__ = ("__weakref__", "_call")

    def __init__(self, call: Callable[[torch.futures.Future], Any]) -> None:
        self._call = call

    def __call__(self, future: torch.futures.Future) -> Any:
        return self._call(future)


_held: set[weakref.ref[_Held]] = set()


def awaited(
    call: Callable[[torch.futures.Future], Any],
) -> Callable[[torch.futures.Future], Any]:
    """The same callback, for which this process waits at its end: until it has run and its thread
    has freed it."""
    held = _Held(call)
    # A function without bytecode, in which the thread that frees it cannot lose Python's lock.
    _held.add(weakref.ref(held, _held.discard))
    return held


_works: list[dist.Work] = []  # else nothing of Python's may hold one that is under way


def completed(work: dist.Work) -> dist.Work:
    """The same operation, which may be under way when a job is over: this process waits for it at
    its end."""
    _works[:] = [each for each in _works if not _is_over(each)]
    _works.append(work)
    return work


def _is_over(work: dist.Work) -> bool:
    try:
        return work.is_completed()
    except RuntimeError:  # it has failed
        return True


def _any_runs() -> bool:
    """Whether one of Gloo's threads is on a processor or waits for one, as it does that is to have
    Python's lock. Those of other systems than Linux are not known."""
    for task in Path("/proc/self/task").glob("*"):
        try:
            name, state = task.joinpath("stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended
            continue
        if name.startswith(_NAME) and state.split()[0] == "R":
            return True
    return False


def settle() -> None:
    """Waits until Gloo's threads do nothing that needs Python's lock, or for a while."""
    until, idle = time.monotonic() + MAX_SECONDS, 0
    while idle < 2 and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)  # without Python's lock
        busy = _held or not all(map(_is_over, list(_works))) or _any_runs()
        idle = 0 if busy else idle + 1


def _forget() -> None:
    _held.clear()
    _works.clear()


atexit.register(settle)
os.register_at_fork(after_in_child=_forget)  # which has none of these threads
