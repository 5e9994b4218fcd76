"""Failure detector: finds processes that have been silent for too long.

It has no clock. The caller passes the time.
"""

from __future__ import annotations


class Detector:
    """Times at which each process last gave a sign of life.

    A process that was stopped (SIGSTOP, a suspended host) receives no messages meanwhile. It
    detects this by the gap between two ticks and does not suspect other processes for that time.

    Args:
        timeout: seconds of silence after which a process is suspected
    """

    def __init__(self, timeout: float, now: float) -> None:
        self.timeout = timeout
        self._last_tick = now
        self._heard: dict[str, float] = {}
        self._silent: set[str] = set()

    def watch(self, member_id: str, now: float) -> None:
        """Expect signs of life of a process from now on. Do nothing if it is watched already."""
        self._heard.setdefault(member_id, now)

    def heard(self, member_id: str, now: float) -> bool:
        """Record a sign of life. Return True if the process had been reported as silent."""
        self._heard[member_id] = now
        if member_id in self._silent:
            self._silent.discard(member_id)
            return True
        return False

    def silence(self, member_id: str, now: float) -> float:
        """Return the seconds since a process's last sign of life, or 0 for an unknown process."""
        return now - self._heard.get(member_id, now)

    def forget(self, member_id: str) -> None:
        """Stop to expect signs of life of a process."""
        self._heard.pop(member_id, None)
        self._silent.discard(member_id)

    def tick(self, now: float) -> list[tuple[str, float]]:
        """Return processes to suspect from now on, each with its seconds of silence."""
        gap = now - self._last_tick
        self._last_tick = now
        if gap < 0 or gap > self.timeout / 2:
            self._heard = dict.fromkeys(self._heard, now)
        late = []
        for member_id, last in self._heard.items():
            if now - last > self.timeout and member_id not in self._silent:
                late.append((member_id, now - last))
        self._silent.update(member_id for member_id, _ in late)
        return late
