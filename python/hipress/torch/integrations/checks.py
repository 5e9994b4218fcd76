"""What a DistributedOptimizer may be given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from hipress.torch.private import is_stepped_in_backward
from hipress.torch.sharded import is_dtensor


def parameters_of(groups: Iterable[Mapping[str, Any]]) -> list[torch.nn.Parameter]:
    """All parameters of an optimizer's groups."""
    return [p for group in groups for p in group["params"]]


def pairs(given: Any, who: str, what: str = "model.named_parameters()") -> list[tuple[str, Any]]:
    """The names and values that a user gave.

    :raises TypeError: if it is anything else, in a sentence that begins with ``who``
    """
    found = [given] if isinstance(given, torch.nn.Module) else list(given)
    for each in found:
        if not isinstance(each, (tuple, list)) or len(each) != 2:
            kind = type(each).__name__
            raise TypeError(f"{who} takes names with their values, as of {what}, and not a {kind}")
    return found


def check(
    optimizer: torch.optim.Optimizer, named: list[tuple[str, torch.nn.Parameter]], passes: int,
    op: str,
) -> None:  # fmt: skip
    """Checks what a DistributedOptimizer was given.

    :param named: the parameters that require a gradient
    :raises ValueError: if something is wrong
    """
    if op not in ("average", "sum"):
        raise ValueError(f"op must be 'average' or 'sum', not {op!r}")
    if not isinstance(passes, int) or passes < 1:
        raise ValueError(f"backward_passes_per_step must be 1 or more, not {passes!r}")
    sharded = [name for name, p in named if is_dtensor(p)]
    if sharded:
        raise ValueError(
            f"parameter {sharded[0]!r} is sharded, and FSDP2 reduces its gradient: use "
            "hipress.torch.compress_fsdp"
        )
    early = [name for name, p in named if is_stepped_in_backward(p)]
    if early:
        raise ValueError(
            f"parameter {early[0]!r} has an optimizer in the backward pass, which would use its "
            "gradient before it is averaged: use step() of this one instead"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(
            "LBFGS decides by the loss, which each rank has of its own data, how often it computes "
            "gradients: use another optimizer"
        )
    names, owners = set(), {}
    for name, p in named:
        if name in names:
            raise ValueError(
                f"named_parameters has two parameters {name!r}: give them names of their own, such "
                "as 'encoder.weight'"
            )
        if id(p) in owners:
            raise ValueError(f"{name!r} and {owners[id(p)]!r} are one parameter: give it once")
        names.add(name)
        owners[id(p)] = name
    lacking = [p for p in parameters_of(optimizer.param_groups) if p.requires_grad]
    lacking = [p for p in lacking if id(p) not in owners]
    if lacking:
        raise ValueError(
            f"named_parameters lacks {len(lacking)} of the optimizer's parameters, the first of "
            f"shape {tuple(lacking[0].shape)}"
        )
