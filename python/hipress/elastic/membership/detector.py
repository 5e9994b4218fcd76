"""Who has been silent for too long. No clock of its own: the caller says what time it is."""

from __future__ import annotations


class Detector:
    """Notes when each process was heard last.

    A process that was itself stopped (SIGSTOP, a suspended machine) hears nobody meanwhile; it
    notices by the gap between two ticks, and holds that against none of the others.

    :param timeout: seconds of silence after which a process counts as gone
    """

    def __init__(self, timeout: float, now: float) -> None:
        self.timeout = timeout
        self._last_tick = now
        self._heard: dict[str, float] = {}
        self._silent: set[str] = set()

    def watch(self, member_id: str, now: float) -> None:
        """Expects signs of life of a process from now on, if it did not yet."""
        self._heard.setdefault(member_id, now)

    def heard(self, member_id: str, now: float) -> bool:
        """Notes a sign of life. True: the process had been reported as silent."""
        self._heard[member_id] = now
        if member_id in self._silent:
            self._silent.discard(member_id)
            return True
        return False

    def silence(self, member_id: str, now: float) -> float:
        """Seconds since a process's last sign of life; 0 for one that is not known."""
        return now - self._heard.get(member_id, now)

    def forget(self, member_id: str) -> None:
        self._heard.pop(member_id, None)
        self._silent.discard(member_id)

    def tick(self, now: float) -> list[tuple[str, float]]:
        """Whom to suspect from now on, and for how many seconds each has been silent."""
        gap = now - self._last_tick
        self._last_tick = now
        if gap < 0 or gap > self.timeout / 2:
            self._heard = dict.fromkeys(self._heard, now)
        late = []
        for member_id, at in self._heard.items():
            if now - at > self.timeout and member_id not in self._silent:
                late.append((member_id, now - at))
        self._silent.update(member_id for member_id, _ in late)
        return late
