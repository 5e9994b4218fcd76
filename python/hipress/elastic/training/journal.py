"""Reports of an elastic job: lines for users, and a journal for tests and for later analysis.

Rank 0 reports each change of the workers in one line. Where ``HIPRESS_ELASTIC_LOG`` names a folder,
each slot has a file there, ``worker-2.jsonl``, with a line of JSON for each event. Training does
not depend on either: what cannot be written is lost.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Mapping

from hipress.base.files import LineFile
from hipress.elastic.membership.view import Member, View

_log = logging.getLogger("hipress")


def tell(line: str, level: int = logging.INFO) -> None:
    """Write a line for users to the log, or to stderr if the script has not set up logging."""
    if _log.hasHandlers():
        _log.log(level, "%s", line)
    else:
        with contextlib.suppress(OSError):
            print(f"hipress: {line}", file=sys.stderr, flush=True)


def describe(view: View, before: View | None, step: int, norms: Mapping[str, float]) -> str:
    """Return a sentence about a view that has begun. It names workers by their slots.

    ``before`` is the last view that this process was in. ``norms`` are those of residuals at their
    last comparison, by the members' ids.
    """
    one = len(view.members) == 1
    does = ("begins" if one else "begin") if not step else ("goes on" if one else "go on")
    after = f" after step {step}" if step else ""
    parts = [f"view {view.epoch}: {len(view.members)} worker{'' if one else 's'} {does}{after}"]
    parts += [_loss(member, why, norms.get(member.id)) for member, why in _gone(view, before)]
    if before is not None:
        new = [member for member in view.members if member.id not in before]
        parts += [f"worker {member.slot} has joined" for member in new]
    elif view.epoch > 1:
        parts.append("this one has joined")
    return "; ".join(parts)


def _gone(view: View, before: View | None) -> list[tuple]:
    reasons = {member.id: why for member, why in view.departed}
    if before is None:
        return list(view.departed)
    return [
        (member, reasons.get(member.id, "")) for member in before.members if member.id not in view
    ]


def _loss(member: Member, why: str, norm: float | None) -> str:
    reason = f": {why}" if why else ""
    size = "" if norm is None else f", a norm of {norm:.3g} when last compared,"
    return f"worker {member.slot} is gone{reason}; its residual{size} is discarded"


class Journal:
    """One process's journal; it does nothing without a folder."""

    def __init__(self, slot: int) -> None:
        folder = os.environ.get("HIPRESS_ELASTIC_LOG", "")
        self._about = {"pid": os.getpid(), "slot": slot}
        self._file = None
        if folder:
            path = os.path.join(folder, f"worker-{slot}.jsonl")
            self._file = LineFile(path, "journal (HIPRESS_ELASTIC_LOG)")

    def write(self, event: str, **fields: object) -> None:
        """Add an event, with the time in seconds since 1970."""
        if self._file is not None:
            line = {"time": time.time(), **self._about, "event": event, **fields}
            self._file.write(json.dumps(line))
