"""States of compressions in PyTorch, in a form that tests can compare and change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat_state(state: Mapping[str, tuple]) -> dict[str, Any]:
    """Return the values of all ranks' states by a key that begins with the rank, "rank0/step"."""
    return {
        f"{rank}/{key}": value
        for rank, parts in state.items()
        for part in parts
        for key, value in part.items()
    }


def changed(state: Mapping[str, tuple], rank: int, **fields: Any) -> dict[str, tuple]:
    """Return a state in which fields of one rank have other values."""
    key = f"rank{rank}"
    (part,) = state[key]
    return {**state, key: ({**part, **fields},)}
