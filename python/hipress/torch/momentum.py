"""A warning of momentum that is applied twice: by the codec, and by the optimizer."""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from hipress.torch.synchronizer import Synchronizer

_log = logging.getLogger("hipress")


def watch(compression: Synchronizer) -> None:
    """Looks once, in the first step of the optimizer of these gradients, whether it has a momentum
    of its own besides the codec's, and warns on rank 0 if so.

    For ``compress()`` does not know the optimizer, which is often made later.
    """
    kept = weakref.ref(compression)

    def look(optimizer: torch.optim.Optimizer, *others: object) -> None:
        compression = kept()
        if compression is None:
            handle.remove()
            return
        for group in optimizer.param_groups:
            if any(compression.momentum(parameter) for parameter in group["params"]):
                handle.remove()
                problem = doubled(compression, optimizer, group)
                if problem and compression.rank == 0:
                    _log.warning("%s", problem)
                return

    handle = register_optimizer_step_pre_hook(look)


def doubled(compression: Synchronizer, optimizer: torch.optim.Optimizer, group: dict) -> str:
    """What is wrong with an optimizer's group of parameters whose gradients come with momentum."""
    if getattr(optimizer, "compression", None) is compression:  # a FrozenAdamW, which knows
        return ""
    settings, name = compression.settings, type(optimizer).__name__
    own, beta = group.get("momentum", 0.0), float(group.get("betas", (0.0,))[0])
    if not own and not beta:
        return ""
    has, instead = (
        (f"momentum {own}", f"give {name} momentum=0") if own
        else (f"beta 1 {beta}", "use hipress.torch.FrozenAdamW(..., compression=...)")
    )  # fmt: skip
    return (
        f"{settings.type} has momentum {settings.momentum} and {name} has {has}: with both it "
        f"counts twice, and training may diverge; {instead}, or give {settings.type} momentum=0"
    )
