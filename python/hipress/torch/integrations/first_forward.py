"""Detection of a DDP model's first training step, by PyTorch's hook for all modules.

Some integrations are not given the model: DDP's communication hook, callbacks of trainers.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle


def watch(owner: Any, found: Callable[[Any, DistributedDataParallel], bool]) -> RemovableHandle:
    """Call ``found(owner, model)`` with each DDP model before it synchronizes gradients.

    The call comes before a forward pass with gradients, except in ``no_sync()``. All ranks run such
    a pass together, as DDP requires. It applies from now on, until ``found`` returns True or raises
    an error, or the owner is freed. So ``found`` must not hold a reference to the owner.
    """
    reference = weakref.ref(owner)

    @torch.compiler.disable
    def before(module: torch.nn.Module, _: Any) -> None:
        alive = reference()
        if alive is None or not torch.is_grad_enabled():
            return
        # torch.compile() puts a module around the model.
        for each in itertools.chain((module,), module.children()):
            if isinstance(each, DistributedDataParallel) and each.require_backward_grad_sync:
                try:
                    done = found(alive, each)
                except BaseException:
                    handle.remove()
                    raise
                if done:
                    handle.remove()
                    return

    handle = register_module_forward_pre_hook(before)
    weakref.finalize(owner, handle.remove).atexit = False
    return handle
