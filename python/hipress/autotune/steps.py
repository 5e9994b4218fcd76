"""Keys of measurements, and the beginning of a step among the keys that a worker pushes."""

from __future__ import annotations

from collections.abc import Sequence

FIRST_KEY = 1 << 62
"""First key of the autotuner. Front ends count theirs from 0."""
MEASURING = "hipress/auto/"
"""Prefix of the names of keys that are used for measurements only. Other text may precede it, as in
"fusion buffer of hipress/auto/0/1"."""


def are_training_keys(keys: Sequence[int]) -> bool:
    """Return whether these are keys of a front end, and not of a measurement."""
    return bool(keys) and keys[0] < FIRST_KEY


class StepDetector:
    """Detector of steps without communication: a step begins when a key is pushed again."""

    def __init__(self) -> None:
        self._pushed: set[int] = set()

    @property
    def has_begun(self) -> bool:
        """Whether a key was pushed."""
        return bool(self._pushed)

    def begins(self, keys: Sequence[int]) -> bool:
        """Return whether a step begins with a push of these keys.

        It does if one of them was already pushed in the current step. No particular key is
        required, because layers may be frozen.
        """
        if self._pushed.isdisjoint(keys):
            self._pushed.update(keys)
            return False
        self._pushed = set(keys)
        return True
