"""Compressed gradients for PyTorch, on torch.distributed's process groups.

>>> model = DistributedDataParallel(network)
>>> hipress.torch.compress(model, "onebit")
"""

from __future__ import annotations

from hipress.torch.engine import HipressError
from hipress.torch.hook import Compression, compress

__all__ = ["Compression", "HipressError", "compress"]
