"""Outer steps of elastic training (DiLoCo), in any framework; see :mod:`hipress.local_sgd`.

In elastic training with ``sync_every``, what the workers of a view do together is one outer step of
all weights. It is the step that the membership protocol counts, and the transaction that is rolled
back after a failure. A worker makes its inner steps alone, whatever happens to other workers.

::

    inner steps ── start ──(delay: inner steps)── complete ── inner steps ...
                     │                               │
                     └── a worker fails: the workers that trained repeat the outer step in the
                         next view, with the inner steps that they have by then

Until an outer step is complete, only the states of error feedback have changed, and these are
rolled back. So no worker repeats an inner step.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from hipress.elastic.training.sums import Sums
from hipress.local_sgd.arrays import ArrayWeights, divide_if_finite
from hipress.local_sgd.outer import Arrival, Fragment, OuterOptimizer, OuterWeights
from hipress.local_sgd.schedule import Schedule

_log = logging.getLogger("hipress")

_DILOCO_ONLY = ("fragments", "backup_device")


def schedule_of(
    sync_every: Any,
    outer_optimizer: object,
    early_steps: Any,
    early_sync_every: Any,
    delay: Any,
    alpha: float,
    others: Iterable[str],
    diloco: str,
) -> Schedule | None:
    """Return the schedule that a State's arguments describe, or None without ``sync_every``.

    ``others`` are names of the State's other arguments; the class ``diloco`` supports them.

    Raises:
        ValueError: If an argument is out of range, or needs another one.
    """
    if sync_every is None:
        given = {
            "outer_optimizer": outer_optimizer is not None,
            "early_steps": early_steps,
            "fragment_sync_delay": delay,
            "fragment_update_alpha": alpha,
        }
        for name in filter(given.get, given):
            raise ValueError(f"{name} needs sync_every: the steps of a round")
        return None
    schedule = Schedule(sync_every, early_steps, early_sync_every, delay, alpha)
    if outer_optimizer is None:
        raise ValueError("sync_every needs outer_optimizer, which steps the outer weights")
    for name in _DILOCO_ONLY:
        if name in others:
            raise ValueError(
                "elastic training synchronizes the model as one fragment, in host memory: leave "
                f"{name} out ({diloco} has it)"
            )
    return schedule


class OuterSteps:
    """Outer weights and optimizer of a job, which outlive its views.

    Args:
        schedule: Inner steps after which an outer step starts.
        outer: Outer weights in one fragment.
        outer_optimizer: Class name of the outer optimizer.
    """

    def __init__(self, schedule: Schedule, outer: OuterWeights, outer_optimizer: str) -> None:
        self.schedule, self.outer = schedule, outer
        self._outer_optimizer = outer_optimizer
        self.completed = 0
        """Number of complete outer steps, of all workers together."""
        self.step = 0
        """Inner step after which the present outer step started."""
        self.inner_steps = 0
        """Inner steps of this worker that are not in an outer step it has completed."""
        self.due: int | None = None
        """Inner step after which the pending outer step is completed; None if none is pending."""
        self.unfinished = False
        """Whether an outer step has started that this worker has not completed."""
        self.averages = False
        """Whether the present outer step averages without the outer optimizer."""
        self.has_own = False
        """Whether this worker kept a share (alpha) of its weights in the last outer step."""
        self._since = 0  # inner steps since the last outer step started
        self._alpha = 0.0  # of the present outer step
        self._seconds: list[float] = []
        self._last = time.perf_counter()
        self._loaded = False

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Return the bytes of the outer weights, which are in host memory, by name."""
        for name, outer in self.outer.items():
            yield name, memoryview(np.asarray(outer).reshape(-1).view(np.uint8))

    def begin(self) -> None:
        """Begin with the model's weights, or with outer weights that were loaded."""
        if self._loaded:
            self.reset_weights()
        else:
            self.outer.copy_weights()

    def count_inner_step(self) -> None:
        """Count an inner step of this worker."""
        now = time.perf_counter()
        self._seconds.append(now - self._last)
        self.inner_steps, self._since, self._last = self.inner_steps + 1, self._since + 1, now

    @property
    def step_seconds(self) -> float:
        """Mean duration of an inner step since the last outer step, in seconds.

        The first one includes the end of the outer step. It counts only if it is the only one.
        """
        return max(statistics.fmean(self._seconds[1:] or self._seconds or [0.0]), 1e-6)

    def start(
        self, compression: Any, step: int, delayed: bool = True, average: bool = False
    ) -> None:
        """Start an outer step.

        Args:
            compression: Compression of the view.
            step: Number of the inner step that has just been made.
            delayed: Whether the schedule's delay and alpha apply.
            average: Average without the outer optimizer.

        Raises:
            HipressError: If a worker died or is silent. No weights have changed then. The outer
                step is due nevertheless.
        """
        schedule = self.schedule
        early = schedule.is_early(step)
        in_turn = delayed and not early
        self.step, self.unfinished = step, True
        self._alpha, self.averages = schedule.alpha if in_turn else 0.0, early or average
        self.due = step + schedule.delay * in_turn
        since, self._since = self._since, 0
        compression.before_round(step, max(since, 1), self.step_seconds)
        self.outer.start(self.outer.fragments[0])

    def complete(self, compression: Any) -> None:
        """Complete the outer step that is due.

        Raises:
            HipressError: If a worker died or is silent; no weights have changed then.
        """
        self.due = None
        (fragment,) = self.outer.fragments
        finite = self.outer.complete(fragment, self._alpha, self.averages)
        compression.took(fragment.seconds)  # in every outer step, as on the other workers
        if not finite:
            _log.warning(
                "round %d: a pseudo-gradient has a NaN or Inf; weights are those of the round "
                "before again",
                self.completed + 1,
            )
        self.completed += 1
        self.has_own = finite and self._alpha > 0
        self._end(self._since if self.has_own else 0)

    def _end(self, inner_steps: int = 0) -> None:
        self.inner_steps, self.due, self.unfinished = inner_steps, None, False
        self._seconds, self._last = [], time.perf_counter()

    def reset_weights(self) -> None:
        """Set the model's weights to the outer weights, and discard this worker's inner steps."""
        self.outer.abandon()
        self.outer.update(self.outer.fragments[0])
        self.has_own = False
        self._end()

    @property
    def keeps_own(self) -> bool:
        """Whether workers have different weights after an outer step."""
        return self.schedule.alpha > 0

    def settings(self) -> dict[str, str]:
        """Return texts that must be the same on all workers, by name."""
        schedule = self.schedule
        return {
            "sync_every": str(schedule.sync_every),
            "early_steps": schedule.early or "0",
            "fragment_sync_delay": str(schedule.delay),
            "fragment_update_alpha": f"{schedule.alpha:g}",
            "outer_optimizer": self._outer_optimizer,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the number of outer steps, the outer weights and the outer optimizer's state."""
        return {"completed": self.completed, **self.outer.state_dict(pending=False)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            ValueError: If it is from another model.
        """
        self.outer.load_state_dict(saved)
        self.completed, self._loaded = saved["completed"], True


class ArrayOuterSteps(OuterSteps):
    """Outer steps on NumPy arrays: pseudo-gradients are summed as gradients are.

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

    def state_dict(self) -> dict[str, Any]:
        """Return the same state with outer weights and optimizer state in a mapping each."""
        state: dict[str, Any] = {"outer": {}, "optimizer": {}}
        for name, values in super().state_dict().items():
            if name.startswith("outer/"):
                state["outer"][name] = values
            elif name == "completed":
                state[name] = values
            else:
                state["optimizer"][name.removeprefix("optimizer/")] = values
        return state

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        optimizer = {f"optimizer/{name}": values for name, values in saved["optimizer"].items()}
        super().load_state_dict({"completed": saved["completed"], **saved["outer"], **optimizer})


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
