"""Optimizers that update one parameter after the other."""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch


class ByParameter(torch.optim.Optimizer, abc.ABC):
    """Optimizer whose step updates each parameter that has a gradient separately."""

    @torch.no_grad()
    def step(self, closure: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
        """Make one step. ``closure`` computes loss and gradients again, as in torch.optim."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    @abc.abstractmethod
    def _update(self, parameter: torch.Tensor, group: dict) -> None:
        """Update a parameter with the options of its group."""
