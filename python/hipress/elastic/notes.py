"""Short texts that the members of one view leave for each other."""

from __future__ import annotations

from typing import Any

KEY_CHARACTERS = 200
VALUE_CHARACTERS = 100_000
EPOCHS = 4  # older ones are forgotten
NOTES = 50_000  # of one epoch; older ones are forgotten, too: more than copies of a state make
OVER = "over"
"""The key of a member that has come to the end of training, together with the others."""


class Notes:
    """Texts by epoch and key. The first value of a key stays."""

    def __init__(self) -> None:
        self._by_epoch: dict[int, dict[str, str]] = {}

    def put(self, epoch: int, key: str, value: str) -> None:
        of_epoch = self._by_epoch.setdefault(epoch, {})
        of_epoch.setdefault(key, value)
        if len(of_epoch) > NOTES:
            del of_epoch[next(iter(of_epoch))]
        for old in sorted(self._by_epoch)[:-EPOCHS]:
            del self._by_epoch[old]

    @property
    def over(self) -> bool:
        """Whether a member has come to the end of training."""
        return any(OVER in of_epoch for of_epoch in self._by_epoch.values())

    def get(self, epoch: int, key: str) -> str | None:
        return self._by_epoch.get(epoch, {}).get(key)


def check(key: str, value: str) -> None:
    """:raises ValueError: one of them is too long"""
    if len(key) > KEY_CHARACTERS or len(value) > VALUE_CHARACTERS:
        raise ValueError(
            f"a note's key may have {KEY_CHARACTERS} characters, its value {VALUE_CHARACTERS}, not "
            f"{len(key)} and {len(value)}"
        )


def is_note(payload: Any) -> bool:
    """Whether a payload is [epoch, key] or [epoch, key, value], of the right types and lengths."""
    if not isinstance(payload, list) or len(payload) not in (2, 3):
        return False
    if type(payload[0]) is not int or not all(isinstance(text, str) for text in payload[1:]):
        return False
    return len(payload[1]) <= KEY_CHARACTERS and len(payload[-1]) <= max(
        KEY_CHARACTERS, VALUE_CHARACTERS
    )
