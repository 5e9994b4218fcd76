"""How processes end, in words and as a shell shows it."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """A process that died: who, how (as Popen's returncode), when."""

    name: str
    where: str
    status: int
    ended: float
    started: float

    def __str__(self) -> str:
        place = f" on {self.where}" if self.where else ""
        end = describe(self.status)
        if self.where and self.status == 255:
            end += " (so ssh ends when it cannot connect)"
        return f"{self.name}{place} {end} after {self.ended - self.started:.1f} s"


def describe(status: int) -> str:
    """A process's end in words."""
    number = -status if status < 0 else status - 128
    name = ""
    if number > 0:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}" if status < 0 else ""
    if status < 0:
        return f"was killed by {name} (signal {number})"
    return f"exited with status {status}" + (f" (128 + {number}: {name})" if name else "")


def shell_status(status: int) -> int:
    """The status as a shell shows it: 128 + signal."""
    return 128 - status if status < 0 else status
