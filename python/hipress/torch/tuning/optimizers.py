"""Finds out whether a model's optimizer bears error feedback."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from hipress.config import AUTO
from hipress.torch.settings import Settings
from hipress.torch.state import optimizer_steps
from hipress.tuning.ways import MAX_MOMENTUM


def allows_feedback(optimizer: torch.optim.Optimizer) -> bool:
    """Checks whether training with this optimizer bears residuals as it is.

    SGD adds gradients up, so a late part counts as much as an early one (Karimireddy et al., ICML
    2019). Adam, and whatever else divides by the size of past gradients, loses a part of it (1-bit
    Adam, arXiv:2102.02888); of other classes, subclasses of SGD too, nothing is known.
    """
    if type(optimizer) is not torch.optim.SGD:
        return False
    return all(0 <= group["momentum"] <= MAX_MOMENTUM for group in optimizer.param_groups)


def _unwrapped(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer inside of a wrapper, such as Accelerate's."""
    return getattr(optimizer, "optimizer", optimizer)


def described(optimizer: torch.optim.Optimizer | None) -> str:
    """A text that is the same on ranks with the same optimizer."""
    if optimizer is None:
        return ""
    inner = _unwrapped(optimizer)
    return f"{type(inner).__name__}, {'with' if allows_feedback(inner) else 'without'} feedback"


class Optimizers:
    """The optimizers of some parameters: one that is given, and those whose first step is seen.

    :param parameters: that are compressed
    :param given: by the user; None: it will be seen
    :raises TypeError: if that is no optimizer
    """

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
        optimizer_steps.watch(self, Optimizers._see)

    def _see(self, optimizer: torch.optim.Optimizer) -> None:
        mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if mine & self._parameters and not allows_feedback(optimizer):
            self._forbidden = True
        self._unknown -= mine

    def forbid(self) -> None:
        """Has them not bear it, whatever they are."""
        self._forbidden = True

    @property
    def allow_feedback(self) -> bool | None:
        """Whether all of them bear it; None if that is not known of all parameters."""
        return False if self._forbidden else None if self._unknown else True


def choosing(
    settings: Settings,
    parameters: Iterable[tuple[str, torch.nn.Parameter]],
    given: torch.optim.Optimizer | None,
) -> Optimizers | None:
    """With type "auto", the optimizers of what is compressed of some parameters.

    :param given: by the user
    :raises ValueError: if one is given that no other type has a use for
    """
    if settings.type == AUTO:
        large = [p for _, p in parameters if p.dim() > 1 and p.numel() >= settings.min_size]
        return Optimizers(large, given)
    if given is not None:
        raise ValueError(f"optimizer= is for type 'auto': leave it out with {settings.type!r}")
    return None
