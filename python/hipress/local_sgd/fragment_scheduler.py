"""Counter of inner steps that starts and completes the outer steps of fragments."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from hipress.local_sgd.outer import Fragment, OuterWeights
from hipress.local_sgd.schedule import Schedule

_log = logging.getLogger("hipress")


class DiLoCoMethods:
    """Methods that every front end's DiLoCo has."""

    _scheduler: FragmentScheduler

    def synchronize(self) -> None:
        """Make all weights the mean of the workers' weights, regardless of the schedule.

        Use it at the end of training, so that all workers have the same model. The outer optimizer
        makes no step, because its momentum would move weights that were hardly trained since its
        last step. The count of inner steps continues. All workers call it after the same step.
        """
        self._scheduler.synchronize()

    def finish(self) -> None:
        """Complete the outer steps that have started."""
        self._scheduler.finish()


class FragmentScheduler:
    """Start and completion of outer steps in a job whose workers stay.

    Args:
        outer: Outer weights, with an average that connects the workers.
        schedule: Inner steps after which fragments start.
        on_complete: Called after each outer step with the fragment, and whether the step was
            an average without the outer optimizer.
    """

    def __init__(
        self,
        outer: OuterWeights,
        schedule: Schedule,
        on_complete: Callable[[Fragment, bool], None] | None = None,
    ) -> None:
        schedule.check_fragments(len(outer.fragments))
        self.outer, self.schedule = outer, schedule
        self._on_complete = on_complete
        self.step = 0
        """Number of inner steps so far."""

    def set_delay(self, delay: int) -> None:
        """Use another delay and the outer weights' present fragments; nothing may be pending."""
        self.schedule = replace(self.schedule, delay=delay)
        self.schedule.check_fragments(len(self.outer.fragments))

    def advance(self) -> None:
        """Count an inner step; all workers make the same number of them."""
        self.step += 1
        schedule, fragments = self.schedule, self.outer.fragments
        if schedule.is_early(self.step):
            if schedule.starts(self.step):
                self._average_all()
            return
        for fragment in fragments:
            if fragment.is_pending and self.step == fragment.due:
                self._complete(fragment, schedule.alpha)
            if schedule.starts(self.step, fragment.number, len(fragments)):
                self.outer.start(fragment, self.step + schedule.delay)
                if not schedule.delay:
                    self._complete(fragment, schedule.alpha)

    def synchronize(self) -> None:
        """See :meth:`DiLoCoMethods.synchronize`."""
        self.finish()
        self._average_all()

    def finish(self) -> None:
        """Complete the outer steps that have started."""
        for fragment in self.outer.fragments:
            if fragment.is_pending:
                self._complete(fragment, self.schedule.alpha)

    def _average_all(self) -> None:
        for fragment in self.outer.fragments:
            self.outer.start(fragment, self.step)
        for fragment in self.outer.fragments:
            if fragment.is_pending:
                self._complete(fragment, 0.0, average=True)

    def _complete(self, fragment: Fragment, alpha: float, average: bool = False) -> None:
        """Complete an outer step; after a NaN or Inf, reset all fragments to the outer weights."""
        if self._complete_one(fragment, alpha, average):
            return
        for other in self.outer.fragments:
            if other.is_pending:
                self._complete_one(other, 0.0, average)
            self.outer.update(other)

    def _complete_one(self, fragment: Fragment, alpha: float, average: bool) -> bool:
        finite = self.outer.complete(fragment, alpha, average)
        if not finite:
            _log.warning(
                "step %d: a pseudo-gradient of fragment %d has a NaN or Inf; all weights are those "
                "of the synchronization before again",
                self.step,
                fragment.number,
            )
        if self._on_complete is not None:
            self._on_complete(fragment, average)
        return finite
