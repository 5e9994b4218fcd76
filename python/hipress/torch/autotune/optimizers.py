"""Detection of whether a model's optimizer supports error feedback."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from hipress.autotune.methods import MAX_MOMENTUM
from hipress.config import AUTO
from hipress.torch.settings import Settings
from hipress.torch.state import optimizer_steps


def allows_feedback(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether this unmodified optimizer supports error feedback.

    SGD adds gradients up, so a late part counts as much as an early one (Karimireddy et al., ICML
    2019). Adam and other optimizers that divide by the size of past gradients lose a part of it
    (1-bit Adam, arXiv:2102.02888). Other classes, including subclasses of SGD, are unknown.
    """
    if type(optimizer) is not torch.optim.SGD:
        return False
    return all(0 <= group["momentum"] <= MAX_MOMENTUM for group in optimizer.param_groups)


def _unwrapped(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return the optimizer inside a wrapper, such as Accelerate's."""
    return getattr(optimizer, "optimizer", optimizer)


def describe(optimizer: torch.optim.Optimizer | None) -> str:
    """Return a text that is equal on ranks with the same optimizer."""
    if optimizer is None:
        return ""
    inner = _unwrapped(optimizer)
    return f"{type(inner).__name__}, {'with' if allows_feedback(inner) else 'without'} feedback"


class TunedOptimizers:
    """The optimizers of some parameters: the user's argument, and those that make a step."""

    def __init__(
        self, parameters: Iterable[torch.nn.Parameter], given: torch.optim.Optimizer | None = None
    ) -> None:
        self._parameters = frozenset(map(id, parameters))
        self._unknown = set(self._parameters)
        self._forbidden = False
        if given is not None:
            if not isinstance(given, torch.optim.Optimizer):
                raise TypeError(
                    f"optimizer= takes a torch.optim.Optimizer, not {type(given).__name__}"
                )
            self._see(_unwrapped(given))
        optimizer_steps.watch(self, TunedOptimizers._see)

    def _see(self, optimizer: torch.optim.Optimizer) -> None:
        mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if mine & self._parameters and not allows_feedback(optimizer):
            self._forbidden = True
        self._unknown -= mine

    def forbid(self) -> None:
        """Do not allow error feedback with any optimizer."""
        self._forbidden = True

    @property
    def allow_feedback(self) -> bool | None:
        """Whether all optimizers support error feedback; None if some are not known."""
        return False if self._forbidden else None if self._unknown else True


def tuned_optimizers(
    settings: Settings,
    parameters: Iterable[tuple[str, torch.nn.Parameter]],
    given: torch.optim.Optimizer | None,
) -> TunedOptimizers | None:
    """Return the optimizers of the compressed parameters with type "auto", otherwise None."""
    if settings.type == AUTO:
        large = [p for _, p in parameters if p.dim() > 1 and p.numel() >= settings.min_size]
        return TunedOptimizers(large, given)
    if given is not None:
        raise ValueError(f"optimizer= is for type 'auto': leave it out with {settings.type!r}")
    return None
