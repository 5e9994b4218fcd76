"""Outer steps on NumPy arrays: pseudo-gradients are summed as gradients are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np

from hipress.config import CompressionConfig
from hipress.elastic_training.outer_steps import OuterSteps
from hipress.elastic_training.sums import Sums
from hipress.elastic_training.tuned_sums import TunedPseudoGradients
from hipress.engine import Engine
from hipress.local_sgd.arrays import ArrayWeights, divide_if_finite
from hipress.local_sgd.outer import Arrival, Fragment, OuterOptimizer, OuterWeights
from hipress.local_sgd.schedule import Schedule

_Sums = TypeVar("_Sums", bound=Sums)


class ArrayOuterSteps(OuterSteps):
    """See :class:`hipress.elastic_training.outer_steps.OuterSteps`.

    Args:
        weights: The worker's weights.
        optimizer: The outer optimizer.
        outer_optimizer: Its class name.
        schedule: Inner steps after which an outer step starts.
    """

    def __init__(
        self,
        weights: ArrayWeights,
        optimizer: OuterOptimizer,
        outer_optimizer: str,
        schedule: Schedule,
    ) -> None:
        outer = OuterWeights([list(weights.shapes())], weights, optimizer)
        super().__init__(schedule, outer, outer_optimizer)

    def sums(self, engine: Engine, config: CompressionConfig, uncompressed: int = 0) -> Sums:
        """Return the sums of a view's pseudo-gradients; all workers of the job call this.

        They are one bucket, so that a NaN or Inf anywhere leaves all residuals unmodified.

        Args:
            engine: Engine of the view's job.
            config: Compression.
            uncompressed: Number of outer steps until the warm-up ends.
        """
        return self.connect(Sums(engine, config, self._sizes(), math.inf, uncompressed))

    def tuned(
        self, engine: Engine, config: CompressionConfig, known: Mapping[str, Any] | None
    ) -> TunedPseudoGradients:
        """Return sums whose compression is chosen; see :meth:`sums`.

        Args:
            engine: Engine of the view's job.
            config: Compression of type "auto".
            known: Choice of the previous view, the same on all workers; None in the first view.
        """
        shapes = {name: outer.shape for name, outer in self.outer.items()}
        sums = TunedPseudoGradients(
            engine,
            config,
            shapes,
            self._sizes(),
            known,
            math.inf,
            sync_every=self.schedule.sync_every,
            delay=self.schedule.delay,
        )
        return self.connect(sums)

    def connect(self, sums: _Sums) -> _Sums:
        """Average by these sums from now on, in their memory."""
        self.outer.connect(SumsAverage(sums))
        return sums

    def _sizes(self) -> dict[str, tuple[int, str]]:
        return {name: (outer.size, "float32") for name, outer in self.outer.items()}

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Return the bytes of the outer weights, by name."""
        for name, outer in self.outer.items():
            yield name, memoryview(outer.reshape(-1).view(np.uint8))

    def outer_state(self) -> dict[str, Any]:
        """Return outer weights and the outer optimizer's state, in two mappings."""
        found: dict[str, dict[str, np.ndarray]] = {"outer": {}, "optimizer": {}}
        for name, values in super().outer_state().items():
            if name.startswith("outer/"):
                found["outer"][name] = values
            else:
                found["optimizer"][name.removeprefix("optimizer/")] = values
        return found

    def load_outer_state(self, saved: Mapping[str, Any]) -> None:
        """Restore what :meth:`outer_state` returned."""
        optimizer = {f"optimizer/{name}": values for name, values in saved["optimizer"].items()}
        super().load_outer_state({**saved["outer"], **optimizer})


class SumsAverage:
    """See :class:`hipress.local_sgd.outer.Average`; by the sums of one view."""

    def __init__(self, sums: Sums) -> None:
        self._sums = sums
        self._future: Future[None] | None = None

    def allocate(self, fragments: Sequence[Fragment]) -> None:
        """Use the memory of the sums, which have one bucket."""
        (fragment,), (gradients,) = fragments, self._sums.buckets
        fragment.mean = {
            name: gradients.flat[gradients.slices[name]].reshape(outer.shape)
            for name, outer in fragment.outer.items()
        }

    def start(self, fragment: Fragment, arrival: Arrival) -> None:
        """Start to sum."""
        self._future = self._sums.start(self._sums.buckets[0])
        self._future.add_done_callback(arrival.mark)

    def finish(self, fragment: Fragment) -> bool:
        """Wait for the mean; return whether it is finite."""
        future, self._future = self._future, None
        future.result()
        return divide_if_finite(fragment.mean, self._sums.engine.world_size)

    def state_dict(self, fragment: Fragment) -> dict[str, Any]:
        """Return nothing: a pending outer step is not saved, but repeated."""
        return {}

    def load_state_dict(self, fragment: Fragment, state: Mapping[str, Any]) -> None:
        """Do nothing; see :meth:`state_dict`."""
