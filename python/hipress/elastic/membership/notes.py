"""Short texts that the members of one view share with each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

KEY_CHARACTERS = 200
VALUE_CHARACTERS = 100_000
VIEWS = 4  # views whose notes are kept; notes of older views are dropped
NOTES = 50_000  # notes of one view that are kept; copies of a state need fewer
OVER = "over"
"""Key of the note of a member that has reached the end of training together with all members."""


class Notes:
    """Texts by view (``View.identity``) and key. The first value of a key stays."""

    def __init__(self) -> None:
        self._by_view: dict[str, dict[str, str]] = {}

    def put(self, view: str, key: str, value: str, present: Collection[str] = ()) -> None:
        """Store a note. Notes of the views in ``present`` are kept in any case."""
        of_view = self._by_view.setdefault(view, {})
        of_view.setdefault(key, value)
        if len(of_view) > NOTES:
            del of_view[next(iter(of_view))]
        old = [each for each in self._by_view if each not in present and each != view]
        for each in old[: max(0, len(self._by_view) - VIEWS)]:
            del self._by_view[each]

    @property
    def over(self) -> bool:
        """Whether a member has reached the end of training."""
        return any(OVER in of_view for of_view in self._by_view.values())

    def get(self, view: str, key: str) -> str | None:
        """Return a note, or None."""
        return self._by_view.get(view, {}).get(key)


def check(key: str, value: str) -> None:
    """Check the lengths of a key and a value.

    Raises:
        ValueError: one of them is too long
    """
    if len(key) > KEY_CHARACTERS or len(value) > VALUE_CHARACTERS:
        raise ValueError(
            f"a note's key may have {KEY_CHARACTERS} characters, its value {VALUE_CHARACTERS}, not "
            f"{len(key)} and {len(value)}"
        )


def is_note(payload: Any) -> bool:
    """Return whether a payload is a valid [view, key] or [view, key, value]."""
    if not isinstance(payload, list) or len(payload) not in (2, 3):
        return False
    if not all(isinstance(text, str) for text in payload):
        return False
    if max(map(len, payload[:2])) > KEY_CHARACTERS:
        return False
    return len(payload) == 2 or len(payload[2]) <= VALUE_CHARACTERS
