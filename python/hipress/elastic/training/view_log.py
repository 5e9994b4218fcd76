"""Messages to users when the workers of an elastic job change: one line, by rank 0."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Mapping

from hipress.elastic.membership.view import View

_log = logging.getLogger("hipress")


def tell(line: str, level: int = logging.INFO) -> None:
    """Write a line for users to the log, or to stderr if the script has not set up logging.

    A line that cannot be written, for example to a full disk, is lost.
    """
    if _log.hasHandlers():
        _log.log(level, "%s", line)
    else:
        with contextlib.suppress(OSError):
            print(f"hipress: {line}", file=sys.stderr, flush=True)


def describe(view: View, before: View | None, step: int, norms: Mapping[str, float]) -> str:
    """Return a sentence about a view that has begun. It names workers by their slots.

    Args:
        before: last view that this process was in, or None
        step: last complete step
        norms: 2-norms of residuals at their last comparison, by the members' ids
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


def _loss(member: object, why: str, norm: float | None) -> str:
    reason = f": {why}" if why else ""
    size = "" if norm is None else f", a norm of {norm:.3g} when last compared,"
    return f"worker {member.slot} is gone{reason}; its residual{size} is written off"
