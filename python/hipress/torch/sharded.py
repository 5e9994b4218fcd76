"""Tensors that are sharded over ranks."""

from __future__ import annotations

import sys

import torch


def is_replicated(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a DTensor that every rank of its mesh has in full."""
    return is_dtensor(tensor) and all(each.is_replicate() for each in tensor.placements)


def is_dtensor(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a DTensor, without importing that module, which takes long.

    If the module was never imported, there are no DTensors.
    """
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)
