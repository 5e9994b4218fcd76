"""Types of elements, devices and tensors that gradients may have."""

from __future__ import annotations

import sys

import torch

from hipress import dtypes

NAMES = {getattr(torch, name): name for name in dtypes.FLAGS}
"""Types of gradients that can be compressed, and their names in :mod:`hipress.dtypes`."""
FLAGS = {dtype: dtypes.FLAGS[name] for dtype, name in NAMES.items()}
"""Numbers of these types in c_api.h."""
DEVICE_TYPES = ("cpu", "cuda")
"""Types of devices whose gradients can be synchronized."""


def of_gradient(parameter: torch.Tensor) -> torch.dtype:
    """Return the dtype of a parameter's gradient, which newer PyTorch allows to differ."""
    return getattr(parameter, "grad_dtype", None) or parameter.dtype


def floats(*size: int) -> torch.Tensor:
    """Return zeros for the library, regardless of PyTorch's default dtype and device."""
    return torch.zeros(size, dtype=torch.float32, device="cpu")


def is_dtensor(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a DTensor, without importing that module, which takes long.

    If the module was never imported, there are no DTensors.
    """
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


@torch.no_grad()
def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's shard of a DTensor, in the same memory, or another tensor itself.

    A shard may have no elements. Operations in place on it change its own version, not the
    DTensor's.
    """
    return tensor.to_local() if is_dtensor(tensor) else tensor
