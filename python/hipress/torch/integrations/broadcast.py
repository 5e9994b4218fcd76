"""Broadcast of one rank's weights and optimizer states to all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from hipress.torch import exchange
from hipress.torch.authentication import authenticate
from hipress.torch.dtypes import local_of
from hipress.torch.integrations.checks import initialized_group, pairs
from hipress.torch.integrations.site import check_shards


def broadcast_parameters(
    parameters: Mapping[str, Any] | Iterable[tuple[str, torch.Tensor]],
    root_rank: int = 0,
    group: dist.ProcessGroup | None = None,
) -> None:
    """Copy tensors in place from a rank to all other ranks, for example ``model.state_dict()``.

    Elements are sent in their logical order, so views and other memory formats are allowed. Ranks
    outside ``group`` may also call this, as in torch.distributed.broadcast(). It does nothing
    there. Of sharded parameters a rank sends its shard, and ``group`` has the ranks with the same
    shard, one of each site.
    """
    group = initialized_group(group, "broadcast_parameters()")
    if dist.get_rank(group) < 0:
        return
    authenticate(group)
    items = parameters.items() if isinstance(parameters, Mapping) else parameters
    found = pairs(items, "broadcast_parameters", "model.state_dict()")
    tensors = [(name, value) for name, value in found if isinstance(value, torch.Tensor)]
    check_shards(tensors, group, "broadcast_parameters()")
    for _, value in tensors:
        if local_of(value).numel():
            tensor = local_of(value).detach()
            # Gloo sends the elements that follow the first one in memory, and ignores strides.
            contiguous = tensor.contiguous()
            dist.broadcast(contiguous, root_rank, group=group)
            if contiguous is not tensor:
                tensor.copy_(contiguous)


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int = 0,
    group: dist.ProcessGroup | None = None,
) -> None:
    """Copy the optimizer state of ``root_rank``, with its learning rates, to every rank.

    Ranks outside ``group`` may also call this. It does nothing there.

    Raises:
        ValueError: on all ranks, if it holds anything but tensors, numbers and texts
    """
    group = initialized_group(group, "broadcast_optimizer_state()")
    if dist.get_rank(group) < 0:
        return
    root = dist.get_group_rank(group, root_rank)
    state = exchange.broadcast_state(group, optimizer.state_dict(), "optimizer states", root)
    if dist.get_rank() != root_rank:
        optimizer.load_state_dict(state)
