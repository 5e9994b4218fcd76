"""Outer steps on NumPy arrays: pseudo-gradients are summed as gradients are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from hipress.elastic.training.outer_steps import OuterSteps
from hipress.elastic.training.sums import Sums
from hipress.local_sgd.arrays import ArrayWeights, divide_if_finite
from hipress.local_sgd.outer import Arrival, Fragment, OuterOptimizer, OuterWeights
from hipress.local_sgd.schedule import Schedule


class ArrayOuterSteps(OuterSteps):
    """See :class:`hipress.elastic.training.outer_steps.OuterSteps`.

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

    def sizes(self) -> dict[str, tuple[int, str]]:
        """Return elements and type of each pseudo-gradient, by name."""
        return {name: (outer.size, "float32") for name, outer in self.outer.items()}

    def connect(self, sums: Sums) -> None:
        """Average by these sums of :meth:`sizes`, in their memory; they have one bucket."""
        self.outer.connect(SumsAverage(sums))

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
