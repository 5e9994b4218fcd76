"""Compressed gradients in Hugging Face's Accelerate."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from torch.nn.parallel import DistributedDataParallel

from hipress.config import AUTO, CompressionConfig
from hipress.torch.integrations import first_forward
from hipress.torch.integrations.ddp import Compression, compress
from hipress.torch.private import comm_hooks

if TYPE_CHECKING:
    from accelerate.utils import DistributedDataParallelKwargs

VARIABLE = "HIPRESS_ACCELERATE"
"""Environment variable with the type for scripts that make no :class:`HiPressHandler`."""


class HiPressHandler:
    """Handler for ``accelerator.ddp_handler``, which compresses each model that is prepared.

    >>> accelerator = Accelerator()
    >>> accelerator.ddp_handler = HiPressHandler()
    >>> model, optimizer, batches = accelerator.prepare(model, optimizer, batches)

    Accelerate's argument ``kwargs_handlers`` takes no other classes than its own.

    Args:
        type: "auto", which chooses, or a name, see :func:`hipress.torch.compress`
        ddp: arguments of DistributedDataParallel
        settings: other arguments of :func:`hipress.torch.compress`
    """

    def __init__(
        self,
        type: str | CompressionConfig = AUTO,
        ddp: DistributedDataParallelKwargs | None = None,
        **settings: Any,
    ) -> None:
        self._type, self._ddp, self._settings = type, ddp, settings
        self.compression: Compression | None = None
        """Compression of the latest model that was prepared, or None before."""

    def to_kwargs(self) -> dict[str, Any]:
        """Return the arguments of DistributedDataParallel. Accelerate calls this."""
        return {} if self._ddp is None else self._ddp.to_kwargs()

    def register_comm_hook(self, model: DistributedDataParallel) -> None:
        """Compress the model. Accelerate calls this when it has wrapped one."""
        self.compression = compress(model, self._type, **self._settings)


class _CodecVariable:
    """Owner of the watch for the model that the environment variable is for."""

    def __init__(self, type: str) -> None:
        self.type = type

    def start(self, model: DistributedDataParallel) -> bool:
        """Compress the model, unless it has a communication hook already."""
        if not comm_hooks(model):
            compress(model, self.type)
        return True


_variable = _CodecVariable(os.environ.get(VARIABLE, ""))
if _variable.type:
    first_forward.watch(_variable, _CodecVariable.start)
