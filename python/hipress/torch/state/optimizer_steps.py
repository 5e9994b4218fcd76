"""Detection of each optimizer's first step, by PyTorch's hook for all optimizers.

A compression often has to know the optimizer, which users mostly create later.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

Seen = Callable[[Any, torch.optim.Optimizer], None]

_watching: weakref.WeakKeyDictionary[Any, tuple[Seen, weakref.WeakSet]] = (
    weakref.WeakKeyDictionary()
)
"""Callback of each owner, and the optimizers that it has seen."""
_registered = False


def watch(owner: Any, seen: Seen) -> None:
    """Call ``seen(owner, optimizer)`` in the first step of every optimizer of this process.

    It applies from now on, as long as the owner lives. So ``seen`` must not hold a reference to it.
    """
    global _registered
    _watching[owner] = seen, weakref.WeakSet()
    if not _registered:  # for good: PyTorch goes through its hooks while they are called
        register_optimizer_step_pre_hook(_before_step)
        _registered = True


def _before_step(optimizer: torch.optim.Optimizer, *others: object) -> None:
    for owner, (seen, known) in list(_watching.items()):
        if optimizer not in known:
            known.add(optimizer)
            seen(owner, optimizer)
