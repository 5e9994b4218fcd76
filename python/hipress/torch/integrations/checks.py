"""Checks of arguments that several front ends share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from hipress.torch.dtypes import is_dtensor, local_of
from hipress.torch.private import replicated_by


def initialized_group(group: dist.ProcessGroup | None, who: str) -> dist.ProcessGroup:
    """Return the group that a user gave to ``who``, or the default one."""
    if not dist.is_initialized():
        raise RuntimeError(
            f"{who} needs a process group: call torch.distributed.init_process_group() first"
        )
    return dist.group.WORLD if group is None else group


def group_of(group: dist.ProcessGroup | None, who: str) -> dist.ProcessGroup:
    """Return the group that a user gave to ``who``, or the default one, if this rank is in it."""
    group = initialized_group(group, who)
    if dist.get_rank(group) < 0:
        raise ValueError(
            f"rank {dist.get_rank()} is not in the process group that {who} was given: call {who} "
            "only on the ranks of that group"
        )
    return group


_INSTEAD = {
    "DDP": "wrap the model in DistributedDataParallel, for hipress.torch.compress, or call "
    'replicate() with process_group=torch.distributed.new_group(backend="hipress")',
    "FSDP2": "wrap the model in DistributedDataParallel, for hipress.torch.compress, or call "
    "hipress.torch.compress_fsdp with the model after replicate()",
}
"""Advice for users of replicate(), by what it uses."""


def refuse_replicate(modules: Iterable[torch.nn.Module], who: str) -> None:
    """Refuse modules that PyTorch's composable replicate() has changed."""
    for kind in map(replicated_by, modules):
        if kind:
            raise TypeError(
                f"{who} does not take a model that replicate() has replicated: {_INSTEAD[kind]}"
            )


def refuse_sharded(named: Iterable[tuple[str, torch.Tensor]], who: str, instead: str) -> None:
    """Refuse parameters that are DTensors, in a sentence that ends with what to do instead."""
    for name, parameter in named:
        if is_dtensor(parameter):
            raise ValueError(
                f"parameter {name!r} is sharded, by FSDP2 perhaps, and {who} takes whole "
                f"parameters only: {instead}"
            )


def refuse_replicated(named: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Refuse parameters that are replicated over a device mesh."""
    for name, parameter in named:
        if is_dtensor(parameter) and all(p.is_replicate() for p in parameter.placements):
            raise ValueError(
                f"parameter {name!r} is replicated over a device mesh, by replicate() perhaps, "
                f"whose ranks average its gradient: leave that out, and {_INSTEAD['FSDP2']}"
            )


def only_makes_state(
    optimizer: torch.optim.Optimizer, on_all: Callable[[bool], bool] = bool
) -> bool:
    """Return whether a step only makes an optimizer's state.

    torch.distributed.checkpoint.state_dict makes such a step: all gradients and learning rates
    are 0. ``on_all`` returns whether its argument is true on all ranks of a site: the gradients of
    one shard may be 0 in a real step.
    """
    if any(group.get("lr") != 0 for group in optimizer.param_groups):
        return False
    trained = [p for p in parameters_of(optimizer.param_groups) if p.requires_grad]
    return on_all(all(p.grad is not None and not bool(local_of(p.grad).any()) for p in trained))


def parameters_of(groups: Iterable[Mapping[str, Any]]) -> list[torch.nn.Parameter]:
    """Return all parameters of an optimizer's groups."""
    return [p for group in groups for p in group["params"]]


def pairs(given: Any, who: str, what: str = "model.named_parameters()") -> list[tuple[str, Any]]:
    """Return the names and values that a user gave."""
    found = [given] if isinstance(given, torch.nn.Module) else list(given)
    for each in found:
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            kind = type(each).__name__
            raise TypeError(f"{who} takes names with their values, as of {what}, and not a {kind}")
    return found
