"""Type checks of values in JSON objects from other processes."""

from __future__ import annotations

import math
from collections.abc import Iterable

DAMAGED = (ValueError, OverflowError, KeyError, TypeError, AttributeError, IndexError)
"""Exceptions that reading a damaged object may raise."""


def typed(value: object, kind: type, what: str) -> object:
    """Return a value of the right type. Numbers must be finite; int is accepted for float."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    wrong = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    if wrong or (kind is float and not math.isfinite(value)):
        raise TypeError(f"{what} is {value!r}")
    return value


def texts(values: Iterable, what: str) -> list[str]:
    """Return a list of texts."""
    return [typed(value, str, what) for value in values]


def is_count(value: object) -> bool:
    """Return whether a value is a whole number of 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
