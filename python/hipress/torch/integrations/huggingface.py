"""Compressed gradients in Hugging Face's Trainer (package transformers)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel
from transformers import TrainerCallback, TrainerState

from hipress.config import AUTO, CompressionConfig
from hipress.torch.integrations import first_forward
from hipress.torch.integrations.checkpoint_folder import forget, load_folder, save_folder
from hipress.torch.integrations.ddp import compress
from hipress.torch.integrations.fsdp import compress_fsdp

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle
    from transformers import Trainer, TrainerControl, TrainingArguments

    from hipress.torch.integrations.ddp import Compression
    from hipress.torch.integrations.fsdp import ShardedCompression

FOLDER = "hipress"
"""Folder in each of the Trainer's checkpoints with the residuals of all ranks."""


class HiPressCallback(TrainerCallback):
    """Callback that makes a Trainer synchronize compressed gradients.

    >>> trainer = Trainer(model=model, args=args, train_dataset=data, callbacks=[HiPressCallback()])

    Each checkpoint of the Trainer gets the residuals of all ranks. ``train()`` with
    ``resume_from_checkpoint`` continues with them, also with another number of ranks, if the
    checkpoint is in ``args.output_dir`` or named by ``args.resume_from_checkpoint``. It drops
    residuals of an earlier ``train()`` of this Trainer, as it drops the weights. Without
    ``resume_from_checkpoint`` both remain. :func:`compress_trainer` also supports checkpoints in
    other folders and searches for hyperparameters.

    ``compression`` is the :class:`hipress.torch.Compression` (with FSDP2 the result of
    :func:`hipress.torch.compress_fsdp`) from the first training step on. It is None if there is
    only one process, and so nothing to compress.

    Args:
        type: "auto", which chooses, or a name, see :func:`hipress.torch.compress`
        settings: other arguments of :func:`hipress.torch.compress`. Errors are raised in the first
            training step.
    """

    def __init__(self, type: str | CompressionConfig = AUTO, **settings: object) -> None:
        self._type, self._settings = type, settings
        self._compressed: torch.nn.Module | None = None
        self._inner: torch.nn.Module | None = None
        """Model that DistributedDataParallel wraps."""
        self._handle: RemovableHandle | None = None
        self._resumes = self._clips = False
        self._folder: str | None = None
        """Checkpoint from which the Trainer resumes, if it is known."""
        self.compression: Compression | ShardedCompression | None = None

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: torch.nn.Module | None = None,
        **others,
    ) -> None:
        """Compress the model, now or in the first training step."""
        self._resumes, self._clips = state.global_step > 0, args.max_grad_norm > 0
        self._folder = self._resumed_from(args, state) if self._resumes else None
        if self._handle is not None:
            self._handle.remove()
        if args.world_size == 1:
            return
        wrapped = self._wrapped(model)
        if wrapped is not None:
            self._begin(wrapped)
        else:
            self._inner = model
            self._handle = first_forward.watch(self, HiPressCallback._begin_if_trained)

    def _wrapped(self, model: torch.nn.Module) -> torch.nn.Module | None:
        """Return the model that synchronizes gradients, or None if it is not known yet."""
        return model if isinstance(model, FSDPModule) else None

    def _begin_if_trained(self, model: DistributedDataParallel) -> bool:
        if not any(module is self._inner for module in model.module.modules()):
            return False
        self._begin(model)
        return True

    def _begin(self, model: torch.nn.Module) -> None:
        """Compress the model, and load the residuals of the checkpoint from which it resumes."""
        if model is not self._compressed:
            make = compress if isinstance(model, DistributedDataParallel) else compress_fsdp
            self.compression = make(model, self._type, **self._settings)
            self._compressed = model
            if self._clips:  # clipping would discard a part of the residuals
                self.compression.forbid_feedback()
        elif self._resumes:  # train() may be called repeatedly
            forget(self.compression)
        if self._resumes:
            load_folder(self.compression, os.path.join(self._folder or "", FOLDER))

    def _resumed_from(self, args: TrainingArguments, state: TrainerState) -> str | None:
        """Return the checkpoint from which the Trainer resumes, which callbacks are not given.

        It has the same history as the state.
        """
        for folder in (args.resume_from_checkpoint, self._saved_to(args, state)):
            path = os.path.join(str(folder), "trainer_state.json")
            if os.path.isfile(path):
                found = TrainerState.load_from_json(path)
                if (found.global_step, found.log_history) == (state.global_step, state.log_history):
                    return str(folder)
        return None

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **others,
    ) -> None:
        """Add the compression's metrics to what the Trainer logs."""
        if self.compression is not None and logs is not None:
            found = self.compression.metrics(prefix="hipress/")
            logs.update(found)
            if state.log_history:
                state.log_history[-1].update(found)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others
    ) -> None:
        """Save the residuals of all ranks in the Trainer's checkpoint."""
        folder = self._saved_to(args, state)
        if self.compression is not None and folder is not None:
            save_folder(self.compression, os.path.join(folder, FOLDER))

    def _saved_to(self, args: TrainingArguments, state: TrainerState) -> str | None:
        """Return the checkpoint that the Trainer saves at this step, or None if it is not known.

        Each trial of a search for hyperparameters has a separate folder.
        """
        if state.is_hyper_param_search:
            return None
        return os.path.join(args.output_dir, f"checkpoint-{state.global_step}")


def compress_trainer(trainer: Trainer, type: str = AUTO, **settings: object) -> CompressionCallback:
    """Make a Trainer synchronize compressed gradients. Call this before ``trainer.train()``.

    >>> trainer = Trainer(model=model, args=args, train_dataset=dataset)
    >>> compress_trainer(trainer)

    It does the same as :class:`HiPressCallback`, and supports checkpoints in any folder.

    Args:
        trainer: the Trainer, whose ranks train by DistributedDataParallel or FSDP2
        type: "auto", which chooses, or a name, see :func:`hipress.torch.compress`
        settings: other arguments of :func:`hipress.torch.compress`. Errors are raised when training
            begins.
    """
    callback = CompressionCallback(trainer, type, settings)
    trainer.add_callback(callback)
    # First, so that TensorBoard's and other loggers' callbacks also log the metrics.
    callbacks = trainer.callback_handler.callbacks
    callbacks.insert(0, callbacks.pop())
    return callback


class CompressionCallback(HiPressCallback):
    """Callback that :func:`compress_trainer` adds to a Trainer, see :class:`HiPressCallback`."""

    def __init__(self, trainer: Trainer, type: str, settings: dict) -> None:
        super().__init__(type, **settings)
        self._trainer = trainer
        self._loaded: str | None = None
        """Checkpoint from which the Trainer has resumed, if training is about to begin."""
        self._watch_loading()

    def _watch_loading(self) -> None:
        """Record which checkpoint the Trainer loads, because callbacks receive only a step."""
        load = getattr(self._trainer, "_load_optimizer_and_scheduler", None)
        if load is None:
            return

        def watched(checkpoint: str | None, *args, **kwargs) -> object:
            self._loaded = checkpoint
            return load(checkpoint, *args, **kwargs)

        self._trainer._load_optimizer_and_scheduler = watched

    def _resumed_from(self, args: TrainingArguments, state: TrainerState) -> str | None:
        loaded, self._loaded = self._loaded, None
        return self._saved_to(args, state) if loaded is None else loaded

    def _wrapped(self, model: torch.nn.Module) -> torch.nn.Module:
        wrapped = self._trainer.model_wrapped
        if not isinstance(wrapped, (DistributedDataParallel, FSDPModule)):
            raise TypeError(
                "compress_trainer() works where the Trainer wraps its model in "
                f"DistributedDataParallel or FSDP2; here it is {wrapped.__class__.__name__}"
            )
        return wrapped

    def _saved_to(self, args: TrainingArguments, state: TrainerState) -> str:
        trainer = self._trainer
        folder = trainer.args.output_dir
        if hasattr(trainer, "_get_output_dir"):
            folder = trainer._get_output_dir(getattr(trainer, "_trial", None))
        return os.path.join(folder, f"checkpoint-{state.global_step}")
