"""Wait for Gloo's threads when the interpreter ends.

A thread of Gloo needs Python's lock to run a callback of a future and to free it. It also needs the
lock to release tensors that Python knows. The waiter for the future may continue earlier, and end.
Before Python 3.14, a C++ thread that requests the lock of an ending interpreter ends the process:
"terminate called without an active exception". PyTorch waits for its threads only when the last
owner of the process group has been freed, which may be the module of a script.
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
"""Maximum seconds for which a process waits at its end, because other ranks may have ended."""
_POLL_SECONDS = 0.001
_NAME = "pt_gloo"
"""Prefix of the names that PyTorch gives to Gloo's threads."""


class _Held:
    """Callback of a future that supports weak references."""

    __slots__ = ("__weakref__", "_call")

    def __init__(self, call: Callable[[torch.futures.Future], Any]) -> None:
        self._call = call

    def __call__(self, future: torch.futures.Future) -> Any:
        return self._call(future)


_held: set[weakref.ref[_Held]] = set()


def awaited(
    call: Callable[[torch.futures.Future], Any],
) -> Callable[[torch.futures.Future], Any]:
    """Return the same callback, but make the end of this process wait for it.

    The process waits until the callback has run and its thread has freed it.
    """
    held = _Held(call)
    # A function without bytecode, in which the thread that frees it cannot lose Python's lock.
    _held.add(weakref.ref(held, _held.discard))
    return held


_works: list[dist.Work] = []  # otherwise Python may hold no reference to a pending one


def completed(work: dist.Work) -> dist.Work:
    """Return the same operation, perhaps in progress, which a process that ends waits for."""
    _works[:] = [each for each in _works if not _is_over(each)]
    _works.append(work)
    return work


def _is_over(work: dist.Work) -> bool:
    try:
        return work.is_completed()
    except RuntimeError:  # it has failed
        return True


def _any_runs() -> bool:
    """Return whether one of Gloo's threads runs or is ready to run.

    A thread that will get Python's lock is. This is known on Linux only.
    """
    for task in Path("/proc/self/task").glob("*"):
        try:
            name, state = task.joinpath("stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended
            continue
        if name.startswith(_NAME) and state.split()[0] == "R":
            return True
    return False


def settle() -> None:
    """Wait until no thread of Gloo needs Python's lock, for at most MAX_SECONDS."""
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
