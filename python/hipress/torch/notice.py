"""Why a job cannot go on, told by the rank that found out to all the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

_KEY = "failure"
_PATIENCE = 2.0
"""Seconds for one word with the store, whose host may be the one that has died."""


class Notice:
    """The first failure of a job, kept in its store.

    :param store: this job's part of it
    """

    def __init__(self, store: dist.Store, rank: int) -> None:
        self._store, self._rank = store, rank

    def post(self, text: str) -> None:
        """Leaves ``text`` for the others, unless one of them has been faster."""
        _try(lambda: self._store.compare_set(_KEY, "", f"rank {self._rank} gave up: {text}"))

    def read(self) -> str | None:
        """Which rank gave up and why; empty if none has said so, None if the store is gone."""
        found = _try(lambda: self._store.get(_KEY) if self._store.check([_KEY]) else b"")
        return None if found is None else found.decode("utf-8", "replace")


def _try(call: Callable[[], Any]) -> Any:
    """What ``call`` returns; None if it fails, or takes too long."""
    found: list = []

    def run() -> None:
        try:
            found.append(call())
        except (RuntimeError, dist.DistError):  # no store, no news
            pass

    thread = threading.Thread(target=run, name="hipress-notice", daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return found[0] if found else None
