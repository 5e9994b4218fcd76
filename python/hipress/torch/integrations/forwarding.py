"""Base class of wrappers that replace a user's optimizer."""

from __future__ import annotations

from typing import Any

import torch


def _attribute(name: str) -> property:
    """Return a property that reads, sets and deletes an attribute of the wrapped optimizer."""

    def fget(self: Forwarding) -> Any:
        return getattr(self._optimizer, name)

    def fset(self: Forwarding, value: Any) -> None:
        setattr(self._optimizer, name, value)

    def fdel(self: Forwarding) -> None:
        delattr(self._optimizer, name)

    return property(fget, fset, fdel, f"The optimizer's ``{name}``.")


class Forwarding:
    """Wrapper with every attribute of an optimizer that it lacks, and the optimizer's class.

    To isinstance() it has the same class.
    """

    _optimizer: torch.optim.Optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    # A GradScaler leaves these at an optimizer that unscales gradients, and skips steps, by itself.
    grad_scale = _attribute("grad_scale")
    found_inf = _attribute("found_inf")

    @property
    def __class__(self) -> type:
        # Learning rate schedulers and other tools accept only instances of Optimizer.
        return type(self._optimizer)
