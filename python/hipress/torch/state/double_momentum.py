"""Warning about gradients that come with momentum to an optimizer that also has one."""

from __future__ import annotations

import logging
from collections.abc import Container
from typing import Protocol

import torch

from hipress.torch.settings import Settings
from hipress.torch.state import optimizer_steps
from hipress.torch.state.momentum import SharedMomentum

_log = logging.getLogger("hipress")


class Compressing(Protocol):
    """Compression of gradients of which some come with momentum."""

    settings: Settings
    rank: int
    names: Container[int]
    """The ids, by id(), of the parameters."""
    shared: SharedMomentum | None

    def momentum(self, parameter: torch.nn.Parameter) -> float: ...


def watch(compression: Compressing) -> None:
    """Check whether the optimizer of these gradients also has a momentum, and warn on rank 0 if so.

    The check runs once, in the optimizer's first step. ``compress()`` cannot do it, because the
    optimizer is often made later.
    """
    optimizer_steps.watch(compression, _check)


def _check(compression: Compressing, optimizer: torch.optim.Optimizer) -> None:
    problems = (
        doubled(compression, optimizer, group)
        for group in optimizer.param_groups
        if any(_gets_momentum(compression, parameter) for parameter in group["params"])
    )
    problem = next(filter(None, problems), "")
    if problem and compression.rank == 0:
        _log.warning("%s", problem)


def _gets_momentum(compression: Compressing, parameter: torch.nn.Parameter) -> bool:
    if compression.shared is not None and not compression.shared.compressed_only:
        return id(parameter) in compression.names
    return compression.momentum(parameter) > 0


def doubled(compression: Compressing, optimizer: torch.optim.Optimizer, group: dict) -> str:
    """Return a warning if an optimizer's group also has a momentum, otherwise an empty string."""
    if getattr(optimizer, "compression", None) is compression:  # a FrozenAdamW, which knows
        return ""
    settings, name = compression.settings, type(optimizer).__name__
    mine = "shared_momentum" if settings.shared_momentum else f"{settings.type} momentum"
    who = "the compression" if settings.shared_momentum else settings.type
    own, beta = group.get("momentum", 0.0), float(group.get("betas", (0.0,))[0])
    if not own and not beta:
        return ""
    has, instead = (
        (f"momentum {own}", f"give {name} momentum=0")
        if own
        else (f"beta 1 {beta}", "use hipress.torch.FrozenAdamW(..., compression=...)")
    )
    return (
        f"{who} has momentum {settings.any_momentum} and {name} has {has}: with both it "
        f"counts twice, and training may diverge; {instead}, or give {mine}=0"
    )
