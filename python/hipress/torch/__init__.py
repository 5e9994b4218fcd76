"""Compressed gradients for PyTorch: a process group's ranks are a job of the native engine.

>>> model = DistributedDataParallel(network)
>>> hipress.torch.compress(model, "onebit")
"""

from __future__ import annotations

from hipress.torch import backend
from hipress.torch.adam import FrozenAdamW
from hipress.torch.engine import HipressError
from hipress.torch.fsdp import compress_fsdp
from hipress.torch.hook import Compression, compress
from hipress.torch.optimizer import (
    DistributedOptimizer,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from hipress.torch.state import load_checkpoint

__all__ = [
    "Compression",
    "DistributedOptimizer",
    "FrozenAdamW",
    "HipressError",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "compress",
    "compress_fsdp",
    "load_checkpoint",
]

backend.register()
