"""``compress_fsdp`` for a model that torchtitan has parallelized, and its options."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import torch
from torchtitan.components.optimizer import OptimizersContainer
from torchtitan.distributed import ParallelDims

import hipress.torch


@dataclass
class CompressionConfig:
    """Arguments of ``hipress.torch.compress_fsdp``."""

    type: str = "maxmin"
    """Codec of the gradients."""
    bits: Optional[int] = 4  # noqa: UP045 (Python 3.9)
    """Bits of an element, for codecs with this parameter."""
    gather: Optional[str] = None  # noqa: UP045
    """Mode of the gathers of weights in host memory: exact, blocks or differences. None: PyTorch's
    all-gather."""


def compress_parts(
    optimizers: OptimizersContainer,
    model_parts: Sequence[torch.nn.Module],
    parallel_dims: ParallelDims,
    *,
    compression: CompressionConfig,
) -> None:
    """Compress what a model's FSDP modules exchange.

    Args:
        optimizers: Unused. torchtitan passes the model's optimizers.
        model_parts: The model, as the only part.
        parallel_dims: Unused. torchtitan passes its meshes.
        compression: The options, from :class:`HiPressTrainer`.
    """
    (model,) = model_parts
    params = {} if compression.bits is None else {"bits": compression.bits}
    hipress.torch.compress_fsdp(model, compression.type, gather=compression.gather, **params)
