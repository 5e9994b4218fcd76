"""Rates and times as text: ``10gbit``, ``50us``."""

from __future__ import annotations

import re

_RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def rate(text: str) -> float:
    """Convert a rate to bytes per second: ``"10gbit"`` -> 1.25e9."""
    return _read(text, _RATES, "a rate") / 8


def seconds(text: str) -> float:
    """Convert a time to seconds: ``"50us"`` -> 5e-5."""
    return _read(text, _TIMES, "a time", zero=True)


def _read(text: str, units: dict[str, float], what: str, zero: bool = False) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]+)", text.strip().lower())
    if not match or match[2] not in units or (not zero and float(match[1]) == 0):
        raise ValueError(f"{what} is a number and one of {', '.join(units)}, not {text!r}")
    return float(match[1]) * units[match[2]]
