"""Keras training that synchronises weights every H steps instead of gradients in each (DiLoCo)."""

from __future__ import annotations

import os
from collections.abc import Mapping

import keras

from hipress.config import CompressionConfig
from hipress.local_sgd.node_job import NodeDiLoCo
from hipress.local_sgd.schedule import Schedule
from hipress.tensorflow.job import join
from hipress.tensorflow.outer import Outer, Weights


class DiLoCo(keras.callbacks.Callback):
    """Synchronises a model's weights with those of the other workers every ``sync_every`` steps.

    >>> model.compile(keras.optimizers.AdamW(1e-3), loss)
    >>> diloco = hvd.DiLoCo(model, sync_every=30, compression={"type": "maxmin", "bits": 4})
    >>> model.fit(images, labels, callbacks=[diloco])

    In a loop of one's own, call :meth:`step` after each step of the optimizer, and :meth:`finish`
    in the end.

    Each worker trains by itself. After H steps the workers average how far they have come since the
    last time, the *pseudo-gradients*, and an outer optimizer makes one step with that (Douillard et
    al., arXiv:2311.08105). What a codec leaves out stays in its residual for the next time. All
    workers make it together, and begin with worker 0's weights; they make the same number of steps.
    Variables that are not trained, such as batch normalisation's means, stay each worker's own.
    Nothing is sent from within a ``tf.function``, so XLA may compile the model.

    :param model: of Keras 3, built; its trained variables are float32 or float16
    :param sync_every: H, steps between two synchronisations of the same weights
    :param outer_optimizer: of Keras 3, a new one, which gets float32 copies of the weights that are
        the same on all workers; default: SGD with Nesterov's momentum 0.9 and learning rate 0.7
    :param compression: a codec's name; a mapping with "type" and what else
        ``kv.set_gradient_compression`` takes; or a :class:`hipress.CompressionConfig`
    :param fragments: into how many parts of about equal size the model is cut, which are
        synchronised at steps of their own (Douillard et al., arXiv:2501.18512)
    :param fragment_sync_delay: steps that a fragment may travel, fewer than ``sync_every``; with 0
        training waits for it
    :param fragment_update_alpha: the share of a worker's own weights that stays when a fragment is
        back, in [0, 1)
    :param early_steps: steps in the beginning, such as a fifth of all, in which all weights become
        the mean of the workers' every ``early_sync_every`` steps (Lin et al., arXiv:1808.07217)
    :raises ValueError: in one sentence, for what cannot be, or a second compression of the job
    :raises HipressError: for a compression that is not allowed; on all workers, if their settings
        or models differ, or somebody is missing
    """

    def __init__(
        self,
        model: keras.Model,
        sync_every: int,
        outer_optimizer: keras.optimizers.Optimizer | None = None,
        compression: str | Mapping[str, object] | CompressionConfig = "none",
        *,
        fragments: int = 1,
        fragment_sync_delay: int = 0,
        fragment_update_alpha: float = 0.0,
        early_steps: int = 0,
        early_sync_every: int = 5,
    ) -> None:
        super().__init__()
        schedule = Schedule(
            sync_every, early_steps, early_sync_every, fragment_sync_delay, fragment_update_alpha
        )
        CompressionConfig.of(compression).refuse_auto()
        weights = Weights(model.trainable_variables, lambda: getattr(model, "optimizer", None))
        job = join()
        outer = Outer(outer_optimizer)
        job.compress(compression)
        self._of = model
        self._diloco = NodeDiLoCo(job.node, job.keys, weights, outer, schedule, fragments)

    def step(self) -> None:
        """Notes that the optimizer has made a step; synchronises if it is time.

        :raises HipressError: if a worker has died or is silent
        """
        self._diloco.scheduler.advance()

    def synchronize(self) -> None:
        """Makes all weights the mean of the workers' now, without a step of the outer optimizer: at
        the end of training, for the steps since the last time. All workers call it."""
        self._diloco.scheduler.synchronize()

    def finish(self) -> None:
        """Waits for the fragments that are under way, and takes their results."""
        self._diloco.scheduler.finish()

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Saves outer weights and optimizer, what is under way, and residuals.

        Every worker calls it, after the same step, and saves its own model and optimizer beside it:
        between synchronisations they differ. Each writes ``path.diloco-RANK``, and residuals to
        ``path.worker-RANK``, as :func:`hipress.tensorflow.save_states` does.

        :raises HipressError: if it cannot be written; what was there is there still
        """
        self._diloco.save(path)

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Goes on from what :meth:`save_states` saved in a job of the same shape, bit for bit.
        Every worker calls it, and loads its model and optimizer before.

        :raises HipressError: for no file, one that is not whole or another job's
        :raises ValueError: if it is of another model or outer optimizer
        """
        self._diloco.load(path)

    # As a callback of Keras's.

    def set_model(self, model: keras.Model) -> None:
        """:raises ValueError: for another model"""
        if model is not self._of:
            raise ValueError("this DiLoCo synchronises another model than the one that is trained")
        if (steps := getattr(model, "steps_per_execution", 1)) != 1:
            raise ValueError(
                f"DiLoCo counts batches: model.compile must have steps_per_execution=1, not {steps}"
            )
        super().set_model(model)

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        self.step()

    def on_train_end(self, logs: object = None) -> None:
        self.finish()
