"""Compressed gradients for PyTorch: a process group's ranks are a job of the native engine.

>>> model = DistributedDataParallel(network)
>>> hipress.torch.compress(model, "onebit")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipress.errors import not_installed

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise not_installed(
        error, "torch", "hipress.torch needs PyTorch 2.6 or later: pip install 'hipress[torch]'"
    ) from None

from hipress.torch.executors.engine import HipressError
from hipress.torch.integrations import process_group
from hipress.torch.integrations.broadcast import (
    broadcast_optimizer_state,
    broadcast_parameters,
)
from hipress.torch.integrations.ddp import Compression, compress
from hipress.torch.integrations.demo import DeMo
from hipress.torch.integrations.diloco import DiLoCo, LocalSGD
from hipress.torch.integrations.optimizer import DistributedOptimizer
from hipress.torch.optim.adam import FrozenAdamW
from hipress.torch.state.checkpoint import load_checkpoint

if TYPE_CHECKING:
    from hipress.torch.integrations.fsdp import compress_fsdp

__all__ = [
    "Compression",
    "DeMo",
    "DiLoCo",
    "DistributedOptimizer",
    "FrozenAdamW",
    "HipressError",
    "LocalSGD",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "compress",
    "compress_fsdp",
    "load_checkpoint",
]

process_group.register()


def __getattr__(name: str) -> Any:
    """Import FSDP, which takes half as long as PyTorch itself, when a script asks for it."""
    if name == "compress_fsdp":
        from hipress.torch.integrations.fsdp import compress_fsdp

        return compress_fsdp
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
