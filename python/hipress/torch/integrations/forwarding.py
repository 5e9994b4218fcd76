"""What stands in the place of a user's optimizer."""

from __future__ import annotations

from typing import Any

import torch


def _attribute(name: str) -> property:
    """A property that is an attribute of the optimizer: read, set and deleted there."""

    def fget(self: Forwarding) -> Any:
        return getattr(self._optimizer, name)

    def fset(self: Forwarding, value: Any) -> None:
        setattr(self._optimizer, name, value)

    def fdel(self: Forwarding) -> None:
        delattr(self._optimizer, name)

    return property(fget, fset, fdel, f"The optimizer's ``{name}``.")


class Forwarding:
    """Has every attribute of an optimizer that it has not itself, and is one to isinstance()."""

    _optimizer: torch.optim.Optimizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)

    # A GradScaler leaves these at an optimizer that unscales gradients, and skips steps, by itself.
    grad_scale = _attribute("grad_scale")
    found_inf = _attribute("found_inf")

    @property
    def __class__(self) -> type:
        # Learning rate schedulers and others take what is an Optimizer to isinstance(), only.
        return type(self._optimizer)
