"""Compressed gradients for PyTorch: a process group's ranks are a job of the native engine.

>>> model = DistributedDataParallel(network)
>>> hipress.torch.compress(model, "onebit")
"""

# What belongs here: adapters. They move tensors, and call hooks and optimizers. What does not:
# tuning, elastic training and DiLoCo themselves, which all front ends share:
#
#     integrations   DDP, FSDP2, optimizers, process groups: where gradients come from
#     synchronizer   a set of named gradients in flat tensors: what every integration calls
#     executors      how a bucket travels: native engine, GPU, or the user's process group
#     state          residuals, momentum, checkpoints
#     autotune, elastic, optim   type "auto"; elastic jobs; optimizers
#
# `start.py` begins a compression before the first step. If the ranks have a secret,
# `authentication.py` makes each of them prove it. `settings.py` compares the settings and models
# of all ranks, which `exchange.py` sends as JSON: bytes of a process group that any process may
# have joined are never unpickled. Parts of PyTorch without a public name are looked up in
# `private.py` and `private_fsdp.py` only. `low_rank.py` is PowerSGD, and `stats.py` counts what
# was compressed.
#
# docs/contributing/architecture.md follows one bucket of DDP through the files.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hipress.errors import not_installed

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise not_installed(
        error, "torch", "hipress.torch needs PyTorch 2.6 or later: pip install 'hipress[torch]'"
    ) from None

from hipress.errors import HipressError
from hipress.torch.integrations import process_group
from hipress.torch.integrations.broadcast import (
    broadcast_optimizer_state,
    broadcast_parameters,
)
from hipress.torch.integrations.ddp import Compression, HookState, compress, hipress_hook
from hipress.torch.integrations.demo import DeMo
from hipress.torch.integrations.diloco import DiLoCo, LocalSGD
from hipress.torch.integrations.optimizer import DistributedOptimizer
from hipress.torch.optim import FrozenAdamW
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
    "HookState",
    "LocalSGD",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "compress",
    "compress_fsdp",
    "hipress_hook",
    "load_checkpoint",
]

process_group.register()


def __getattr__(name: str) -> Any:
    """Import FSDP, which takes half as long as PyTorch itself, when a script asks for it."""
    if name == "compress_fsdp":
        from hipress.torch.integrations.fsdp import compress_fsdp

        return compress_fsdp
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
