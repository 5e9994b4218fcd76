"""Where the steps of a worker begin, among the keys that it pushes."""

from __future__ import annotations

from collections.abc import Sequence

MEASURING = "hipress/auto/"
"""What the names of keys begin with that are there for measuring alone; others may come before it,
as in "fusion buffer of hipress/auto/0/1"."""


class Steps:
    """Counts nothing and asks nobody: workers that push their keys in the same order agree."""

    def __init__(self) -> None:
        self._pushed: set[int] = set()

    @property
    def has_begun(self) -> bool:
        """Whether anything was pushed."""
        return bool(self._pushed)

    def begins(self, keys: Sequence[int]) -> bool:
        """Whether a step begins with a push of these keys: one of them was pushed before in the
        step that goes on. No single key is waited for, as layers may be frozen."""
        if self._pushed.isdisjoint(keys):
            self._pushed.update(keys)
            return False
        self._pushed = set(keys)
        return True
