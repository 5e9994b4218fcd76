"""How long servers and the scheduler may outlive a job's workers."""

from __future__ import annotations

import os

from hipress.elastic import process_table

SECONDS = 15.0
"""Seconds in which they should end, or have computed for at least a twentieth of the time."""
MOST_SECONDS = 600.0
"""Seconds after which they are no longer waited for, however busy they are."""


class Drain:
    """Begins when the last worker has ended. A scheduler writes the job's timeline then, and
    `hipress profile` evaluates it there, which takes longer the larger the job was."""

    def __init__(self, now: float) -> None:
        self.began, self.renewals = now, 0
        self._until, self._used = now + SECONDS, processor_seconds()

    def over(self, now: float) -> bool:
        """Whether to stop them: each time a term ends in which one computed, another begins."""
        if now < self._until:
            return False
        used = processor_seconds()
        most = max((seconds - self._used.get(pid, 0.0) for pid, seconds in used.items()), default=0)
        if most < SECONDS / 20 or now >= self.began + MOST_SECONDS:
            return True
        self._until, self._used, self.renewals = now + SECONDS, used, self.renewals + 1
        return False


def processor_seconds() -> dict[int, float]:
    """The processor time of each process that descends from this one, by process id."""
    found = {}
    for pid in process_table.descendants():
        fields = process_table.read_stat(pid)
        if fields is not None:
            found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found
