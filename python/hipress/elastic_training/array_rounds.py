"""Rounds of frameworks whose arrays NumPy can read: pseudo-gradients are summed as gradients."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np

from hipress.config import CompressionConfig
from hipress.diloco.outer import Fragment, Optimizer, Weights
from hipress.elastic_training.rounds import Rounds, RoundSettings
from hipress.elastic_training.sums import Sums
from hipress.elastic_training.tuned_sums import TunedPseudoGradients
from hipress.engine import Engine

_Sums = TypeVar("_Sums", bound=Sums)


class ArrayRounds(Rounds):
    """See :class:`hipress.elastic_training.rounds.Rounds`.

    :param weights: the worker's own
    :param optimizer: the outer one
    :param outer_optimizer: its name
    """

    def __init__(
        self, weights: Weights, optimizer: Optimizer, outer_optimizer: str, settings: RoundSettings
    ) -> None:
        super().__init__(settings, outer_optimizer)
        self._optimizer = optimizer
        self._future: Future[float] | None = None  # seconds that sums were on their way
        self._fragment = Fragment(0, weights, list(weights.shapes()))

    def sums(self, engine: Engine, config: CompressionConfig, uncompressed: int = 0) -> Sums:
        """The sums of a view's pseudo-gradients; all workers of the engine's job call this.

        They are one bucket, so that a NaN or Inf anywhere leaves all residuals as they were.

        :param uncompressed: rounds from now on that are the rest of a warm-up
        """
        return self._placed(Sums(engine, config, self._sizes(), math.inf, uncompressed))

    def tuned(
        self, engine: Engine, config: CompressionConfig, known: Mapping[str, Any] | None
    ) -> TunedPseudoGradients:
        """Those whose compression is chosen.

        :param config: of type "auto"
        :param known: the choice of the view before, the same on all workers, if there is one
        """
        shapes = {name: array.shape for name, array in self._fragment.outer.items()}
        return self._placed(TunedPseudoGradients(
            engine, config, shapes, self._sizes(), known, math.inf,
            sync_every=self.schedule.sync_every, delay=self._settings.delay,
        ))  # fmt: skip

    def _sizes(self) -> dict[str, tuple[int, str]]:
        return {name: (array.size, "float32") for name, array in self._fragment.outer.items()}

    def _placed(self, sums: _Sums) -> _Sums:
        """Has the fragment's sums be where these are made."""
        (gradients,) = sums.buckets
        for name, span in gradients.slices.items():
            shape = self._fragment.outer[name].shape
            self._fragment.sums[name] = gradients.flat[span].reshape(shape)
        return sums

    def start(self, compression: Sums) -> None:
        self._fragment.subtract()
        (gradients,) = compression.buckets
        arrival, began = Future(), time.perf_counter()

        def arrived(sums: Future[None]) -> None:
            if error := sums.exception():
                arrival.set_exception(error)
            else:
                arrival.set_result(time.perf_counter() - began)

        compression.start(gradients).add_done_callback(arrived)
        self._future = arrival

    def take(self, compression: Sums, alpha: float) -> bool:
        future, self._future = self._future, None
        compression.took(future.result())  # in each round: who is told compares with the others
        workers = compression.engine.world_size
        return self._fragment.take(self._optimizer, workers, alpha, average=self.averages)

    def abandon(self) -> None:
        self._future = None

    def begin_with_weights(self) -> None:
        self._fragment.begin_with_weights()

    def give_outer_weights(self) -> None:
        self._fragment.update()

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        for name, values in self._fragment.outer.items():
            yield name, memoryview(values.reshape(-1).view(np.uint8))

    def outer_state(self) -> dict[str, Any]:
        return {"outer": self._fragment.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_outer_state(self, saved: Mapping[str, Any]) -> None:
        self._fragment.load_state_dict(saved["outer"])
        self._optimizer.load_state_dict(saved["optimizer"])
