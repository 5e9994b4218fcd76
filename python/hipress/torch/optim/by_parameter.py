"""Optimizers that update one parameter after the other."""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch


class ByParameter(torch.optim.Optimizer, abc.ABC):
    """An optimizer whose step updates each parameter that has a gradient, by itself."""

    @torch.no_grad()
    def step(self, closure: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
        """One step; ``closure`` computes loss and gradients anew, as in torch.optim."""
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
        """Updates a parameter, by the options of its group."""
