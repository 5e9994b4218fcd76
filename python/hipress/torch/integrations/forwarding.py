"""Base class of wrappers that replace a user's optimizer."""

from __future__ import annotations

from typing import Any

import torch

_FORWARDED = ("grad_scale", "found_inf")
"""Attributes that a GradScaler sets and deletes.

It does so at an optimizer that unscales gradients, and skips steps, by itself.
"""


class Forwarding:
    """Wrapper with an optimizer's class for isinstance(), and every attribute that it lacks."""

    _optimizer: torch.optim.Optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FORWARDED:
            setattr(self._optimizer, name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in _FORWARDED:
            delattr(self._optimizer, name)
        else:
            object.__delattr__(self, name)

    @property
    def __class__(self) -> type:
        # Learning rate schedulers and other tools accept only instances of Optimizer.
        return type(self._optimizer)
