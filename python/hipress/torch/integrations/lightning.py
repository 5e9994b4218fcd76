"""Compressed gradients in Lightning: strategies for DDP and for FSDP2."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, StrategyRegistry
from lightning.pytorch.trainer.states import TrainerFn
from torch.distributed.fsdp import FSDPModule

from hipress.config import AUTO, CompressionConfig
from hipress.torch.integrations.checkpoint_folder import forget, load_folder, save_folder
from hipress.torch.integrations.ddp import Compression, compress
from hipress.torch.integrations.fsdp import ShardedCompression, compress_fsdp

if TYPE_CHECKING:
    import lightning.pytorch as pl
    import torch


class _CompressedStrategy:
    """Base of both strategies, with their checkpoints and metrics.

    A folder ``NAME.hipress`` next to a checkpoint ``NAME`` has the residuals of all ranks.
    """

    compression: Compression | ShardedCompression | None = None
    """Compression of the model, from the beginning of training on."""
    _resumes_from: str | None = None
    """Checkpoint that was loaded before there was a compression."""

    def _begin(self, trainer: pl.Trainer) -> None:
        """Prepare the compression for the training that begins."""
        if trainer.gradient_clip_val:  # clipping would discard a part of the residuals
            self.compression.forbid_feedback()
        if self._resumes_from is not None:
            load_folder(self.compression, _folder(self._resumes_from))
        if not any(isinstance(each, _Metrics) for each in trainer.callbacks):
            trainer.callbacks.insert(0, _Metrics())  # the last ones save checkpoints

    def save_checkpoint(
        self,
        checkpoint: dict[str, Any],
        filepath: str | os.PathLike[str],
        storage_options: Any | None = None,
    ) -> None:
        """Save a checkpoint, and the residuals of all ranks unless it is of weights only."""
        weights_only = "optimizer_states" not in checkpoint
        super().save_checkpoint(checkpoint, filepath, storage_options)
        if self.compression is not None and not weights_only:
            save_folder(self.compression, _folder(self.broadcast(filepath)))

    def load_checkpoint(
        self, checkpoint_path: str | os.PathLike[str], *args: Any, **options: Any
    ) -> dict[str, Any]:
        """Load a checkpoint. Training that resumes from it also gets the residuals."""
        checkpoint = super().load_checkpoint(checkpoint_path, *args, **options)
        self._resumes_from = None
        path = os.fspath(checkpoint_path)
        # A checkpoint that each rank writes a part of has no states here. Rank 0 decides for all.
        if self.broadcast("optimizer_states" in checkpoint or os.path.isdir(_folder(path))):
            self._resumes_from = path
        return checkpoint

    def remove_checkpoint(self, filepath: str | os.PathLike[str]) -> None:
        """Remove a checkpoint and its residuals."""
        super().remove_checkpoint(filepath)
        if self.is_global_zero:
            shutil.rmtree(_folder(filepath), ignore_errors=True)


class HiPressDDPStrategy(_CompressedStrategy, DDPStrategy):
    """Lightning's DDPStrategy with compressed gradients, on GPUs and CPUs.

    >>> trainer = lightning.Trainer(strategy="hipress")
    >>> trainer = lightning.Trainer(strategy=HiPressDDPStrategy(codec="maxmin:bits=8"))

    Args:
        codec: "auto", which chooses, or a name, perhaps with parameters, or a
            :class:`hipress.CompressionConfig`, see :func:`hipress.torch.compress`
        arguments: those of DDPStrategy
    """

    def __init__(
        self, codec: str | Mapping[str, object] | CompressionConfig = AUTO, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self._codec = codec

    def configure_ddp(self) -> None:
        """Wrap the model in DistributedDataParallel, and compress it."""
        super().configure_ddp()
        self.compression = compress(self.model, CompressionConfig.of(self._codec))

    def setup(self, trainer: pl.Trainer) -> None:
        """Set the strategy up, see Lightning's Strategy.setup()."""
        super().setup(trainer)
        if trainer.state.fn == TrainerFn.FITTING:
            self._begin(trainer)
        self._resumes_from = None


class HiPressModelParallelStrategy(_CompressedStrategy, ModelParallelStrategy):
    """Lightning's ModelParallelStrategy, for FSDP2, with compressed gradients.

    The module's ``configure_model()`` calls ``fully_shard()``, as ModelParallelStrategy requires.

    >>> trainer = lightning.Trainer(strategy="hipress_fsdp")

    Args:
        codec: see :class:`HiPressDDPStrategy`
        arguments: those of ModelParallelStrategy
    """

    def __init__(
        self, codec: str | Mapping[str, object] | CompressionConfig = AUTO, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self._codec = codec
        self._compressed: FSDPModule | None = None

    def setup(self, trainer: pl.Trainer) -> None:
        """Set the strategy up, see Lightning's Strategy.setup()."""
        super().setup(trainer)
        if trainer.state.fn == TrainerFn.FITTING:
            root = _root(self.model)
            if root is not self._compressed:
                self.compression = compress_fsdp(root, CompressionConfig.of(self._codec))
                self._compressed = root
            self._resumes_from = None  # Lightning loads checkpoints after this
            self._begin(trainer)

    def load_checkpoint(
        self, checkpoint_path: str | os.PathLike[str], *args: Any, **options: Any
    ) -> dict[str, Any]:
        """Load a checkpoint, and the residuals, see Lightning's Strategy.load_checkpoint()."""
        checkpoint = super().load_checkpoint(checkpoint_path, *args, **options)
        path, self._resumes_from = self._resumes_from, None
        if self.compression is not None and path is not None:
            forget(self.compression)  # of an earlier fit() with this model
            load_folder(self.compression, _folder(path))
        return checkpoint


class _Metrics(Callback):
    """Callback that logs the compression's metrics with Lightning's loggers."""

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *others: Any
    ) -> None:
        """Log the metrics, as often as the Trainer logs."""
        if trainer.loggers and trainer.global_step % trainer.log_every_n_steps == 0:
            pl_module.log_dict(trainer.strategy.compression.metrics(prefix="hipress/"))


def _folder(checkpoint: str | os.PathLike[str]) -> str:
    """Return the folder with the residuals of a checkpoint."""
    return f"{os.fspath(checkpoint)}.hipress"


def _root(model: torch.nn.Module) -> FSDPModule:
    """Return the module to which the user's fully_shard() was applied last.

    Raises:
        ValueError: if there is none, or several that do not contain each other
    """
    sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    inner = {id(each) for module in sharded for each in module.modules() if each is not module}
    roots = [module for module in sharded if id(module) not in inner]
    if len(roots) != 1:
        raise ValueError(
            f"configure_model() has called fully_shard() with {len(roots)} separate modules: call "
            "it last with the one that contains all parameters"
        )
    return roots[0]


for _name, _strategy in (
    ("hipress", HiPressDDPStrategy),
    ("hipress_fsdp", HiPressModelParallelStrategy),
):
    if _name not in StrategyRegistry:
        StrategyRegistry.register(_name, _strategy, description=_strategy.__doc__.splitlines()[0])
