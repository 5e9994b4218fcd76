"""Compressed gradients in Hugging Face's Trainer (package transformers).

With Accelerate alone nothing is needed: ``accelerator.prepare(model)`` returns a
DistributedDataParallel model, which :func:`hipress.torch.compress` takes.
"""

from __future__ import annotations

import logging
import os
import shutil
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch.distributed import checkpoint
from torch.nn.parallel import DistributedDataParallel
from transformers import TrainerCallback

from hipress.base import files
from hipress.config import AUTO
from hipress.torch.authentication import authenticate
from hipress.torch.integrations.ddp import Compression, compress
from hipress.torch.state.checkpoint import is_complete, load_checkpoint
from hipress.torch.state.momentum import SharedMomentum

if TYPE_CHECKING:
    from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments

FOLDER = "hipress"
"""Folder in each of the Trainer's checkpoints with the residuals of all ranks."""
_log = logging.getLogger("hipress")


def compress_trainer(trainer: Trainer, type: str = AUTO, **settings: object) -> CompressionCallback:
    """Make a Trainer synchronize compressed gradients. Call this before ``trainer.train()``.

    >>> trainer = Trainer(model=model, args=args, train_dataset=dataset)
    >>> compress_trainer(trainer)

    Each checkpoint of the Trainer gets the residuals of all ranks. ``train()`` with
    ``resume_from_checkpoint`` continues with them, also with another number of ranks. It drops
    residuals of an earlier ``train()`` of this Trainer, as it drops the weights. Without
    ``resume_from_checkpoint`` both remain.

    Args:
        trainer: the Trainer, whose ranks train by DistributedDataParallel
        type: "auto", which chooses, or a name, see :func:`hipress.torch.compress`
        settings: other arguments of :func:`hipress.torch.compress`. Errors are raised when training
            begins.
    """
    callback = CompressionCallback(trainer, type, settings)
    trainer.add_callback(callback)
    return callback


class CompressionCallback(TrainerCallback):
    """Callback that :func:`compress_trainer` adds to a Trainer.

    ``compression`` is the :class:`hipress.torch.Compression` from the beginning of training on. It
    is None if there is only one process, and so nothing to compress.
    """

    def __init__(self, trainer: Trainer, type: str, settings: dict) -> None:
        self._trainer, self._type, self._settings = trainer, type, settings
        self._compressed: DistributedDataParallel | None = None
        self._checkpoint: str | None = None
        """Checkpoint from which the Trainer has resumed, if training is about to begin."""
        self.compression: Compression | None = None
        self._watch_loading()

    def _watch_loading(self) -> None:
        """Record which checkpoint the Trainer loads, because callbacks receive only a step."""
        load = getattr(self._trainer, "_load_optimizer_and_scheduler", None)
        if load is None:
            return

        def watched(checkpoint: str | None, *args, **kwargs) -> object:
            self._checkpoint = checkpoint
            return load(checkpoint, *args, **kwargs)

        self._trainer._load_optimizer_and_scheduler = watched

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others
    ) -> None:
        """Compress the model, and load the residuals of the checkpoint from which it resumes."""
        loaded, self._checkpoint = self._checkpoint, None
        if args.world_size == 1:
            return
        model = self._trainer.model_wrapped
        if not isinstance(model, DistributedDataParallel):
            raise TypeError(
                "compress_trainer() works where the Trainer wraps its model in "
                f"DistributedDataParallel; here it is {model.__class__.__name__} (for FSDP2 there "
                "is hipress.torch.compress_fsdp)"
            )
        resumes = state.global_step > 0
        if model is not self._compressed:
            self.compression = compress(model, self._type, **self._settings)
            self._compressed = model
            if args.max_grad_norm > 0:  # clipping would discard a part of the residuals
                self.compression.forbid_feedback()
        elif resumes:  # train() may be called repeatedly
            _forget(self.compression)
        if resumes:
            folder = self._saved_to(state) if loaded is None else loaded
            self._resume(model, os.path.join(folder, FOLDER), args.process_index == 0)

    def _resume(self, model: DistributedDataParallel, folder: str, speaks: bool) -> None:
        """Load the residuals if every rank can.

        A rank that did so alone would count other steps. If they are lost, the rank that ``speaks``
        logs a warning.
        """
        device = next(model.parameters()).device
        everywhere = torch.tensor(int(is_complete(folder)), device=device)
        dist.all_reduce(everywhere, dist.ReduceOp.MIN, model.process_group)
        if everywhere:
            load_checkpoint(self.compression, folder)
        elif speaks:
            _log.warning(
                "%s is missing or was not saved to its end: training resumes without what "
                "compression had left for later steps",
                folder,
            )

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others
    ) -> None:
        """Save the residuals of all ranks in the Trainer's checkpoint."""
        if self.compression is None:
            return
        folder = os.path.join(self._saved_to(state), FOLDER)
        partial = f"{folder}.partial"
        first = args.process_index == 0
        if first:  # before any rank writes: all wait for the first rank's plan
            shutil.rmtree(partial, ignore_errors=True)
        if dist.is_initialized():
            authenticate()  # to plan a checkpoint, PyTorch's ranks send each other pickles
        try:
            checkpoint.save({"hipress": self.compression}, checkpoint_id=partial)
            if first:
                _replace_folder(partial, folder)
        except BaseException:
            if first:
                shutil.rmtree(partial, ignore_errors=True)
            raise

    def _saved_to(self, state: TrainerState) -> str:
        """Return the checkpoint that the Trainer saves at this step.

        Each trial of a search for hyperparameters has a separate folder.
        """
        trainer = self._trainer
        folder = trainer.args.output_dir
        if hasattr(trainer, "_get_output_dir"):
            folder = trainer._get_output_dir(getattr(trainer, "_trial", None))
        return os.path.join(folder, f"checkpoint-{state.global_step}")


def _replace_folder(new: str, folder: str) -> None:
    """Rename the folder of a complete checkpoint. If this fails, the previous checkpoint stays."""
    old = f"{folder}.old"
    shutil.rmtree(old, ignore_errors=True)
    if os.path.isdir(folder):
        os.replace(folder, old)
    try:
        files.replace(new, folder)
    except BaseException:
        if os.path.isdir(old) and not os.path.isdir(folder):
            os.replace(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _forget(compression: Compression) -> None:
    """Reset a compression to before its first step.

    Then the state of a job of another size can be loaded. If there is none, no old state may
    remain.
    """
    compression.replace_codec(compression.settings)
    compression.reshard({})
    if compression.shared is not None:  # its sums belong to keys that do not exist any more
        shared = SharedMomentum(compression.shared.factor)
        shared.compressed_only = compression.shared.compressed_only
        compression.shared = shared
    compression.step = 0
