"""Type "auto" of sums in NumPy arrays: the members of a view choose how gradients, or
pseudo-gradients, are compressed.

The members of the first view measure in their first step, or round. Those of later views go on with
that choice, which a worker that joins copies. All numbers go by the engine: there what a worker
waits for ends as soon as a member is known to be gone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np

from hipress.config import CompressionConfig
from hipress.elastic_training.measuring import EngineNumbers, Meter, Shapes, config_of
from hipress.elastic_training.sums import Gradients, Sums, min_size
from hipress.engine import Engine
from hipress.secopa.choice import Measured
from hipress.secopa.explanation import Explanation
from hipress.secopa.rounds import measure_each
from hipress.tuning.choice import choose
from hipress.tuning.feedback_guard import FeedbackGuard, sample_step
from hipress.tuning.follower import UNKNOWN, Follower, forbids
from hipress.tuning.guard import Guard, squares
from hipress.tuning.rounds import RoundChoice
from hipress.tuning.ways import (
    BF16_HOOK,
    POWERSGD,
    ROUND_WAYS,
    UNCOMPRESSED,
    Way,
    vectors,
    ways_for,
)


class Choosing(Sums):
    """Sums whose compression is chosen, and changed while a model trains.

    :param config: of type "auto"
    :param shapes: of all gradients by name
    :param known: the choice of the view before, the same on all workers, if there is one
    """

    def __init__(
        self, engine: Engine, config: CompressionConfig, shapes: Shapes,
        sizes: Mapping[str, tuple[int, str]], known: Mapping[str, Any] | None, *most: float,
    ) -> None:  # fmt: skip
        super().__init__(engine, config_of(UNCOMPRESSED, config, shapes), sizes, *most)
        self._auto, self._shapes, self._known = config, shapes, known
        self.numbers = EngineNumbers(engine)
        self.rank = engine.rank
        """Of whose processes 0 logs."""
        self.begin_maxima, self.end_maxima = self.numbers.begin_maxima, self.numbers.end_maxima

    def prepare(self, remembered: dict[str, Any]) -> None:
        """Keeps what was remembered: keys are made when a way is chosen."""
        self._waiting = remembered

    def use(self, way: Way) -> None:
        """Goes by this way from now on, while nothing is under way."""
        config = config_of(way, self._auto, self._shapes)
        if config != self.config:
            self.replace(config)

    def _meter(self, *about: Any) -> Meter:
        # Kept, as the engine's threads may still write to its memory when measuring has failed.
        self._measuring = Meter(self.engine, self.numbers, self._auto, self._shapes, *about)
        return self._measuring

    def bytes_sent(self) -> int:
        """Bytes that this worker has sent so far."""
        return self.engine.member.stats()["bytes_sent"]

    def choice(self) -> Mapping[str, Any] | None:
        """What the next view's goes on with, as JSON."""
        return self._known


class ChoosingGradients(Choosing):
    """Of gradients.

    :param step: the number of the step that begins
    :param allows_feedback: whether the optimizer bears error feedback; None: it is not known
    """

    sends_all_it_leaves = False  # uncompressed gradients know nothing of residuals
    compares_results = True

    def __init__(
        self, *arguments: Any, step: Callable[[], int], allows_feedback: Callable[[], bool | None]
    ) -> None:
        super().__init__(*arguments)
        self._step_of, self.allows_feedback = step, allows_feedback
        self._follower: Follower | None = None
        self._begun = False
        self._explanation = Explanation("auto: nothing is measured before the first step")

    @property
    def step(self) -> int:
        """That begins."""
        return self._step_of()

    def explain(self) -> Explanation:
        """Why gradients are summed as they are, and what was measured; to be printed."""
        return self._explanation

    def begin_step(self) -> None:
        """See :meth:`Sums.begin_step`: before the first one the workers choose."""
        if not self._begun:
            self._begin()
            self._begun = True
        if self._follower is not None:
            self._follower.begin_step()

    def _begin(self) -> None:
        auto, count = self._auto, self.engine.world_size
        (forbidden,) = self.numbers.maxima(forbids(self.allows_feedback()))
        feedback = None if forbidden == UNKNOWN else not forbidden
        by_type: dict[str, int] = {}
        for size, dtype in self.sizes.values():
            by_type[dtype] = by_type.get(dtype, 0) + size
        dtype = max(by_type, key=by_type.get)
        ways = ways_for(dtype != "float32", feedback is not False, [BF16_HOOK, POWERSGD])
        meter = self._meter(dtype, ways)
        matrices = self._shapes.keys() - vectors(self._shapes)
        chosen = choose(
            ways, feedback, meter, (count, "worker"),
            max((math.prod(self._shapes[name]) for name in matrices), default=0), min_size(auto),
            logs=self.rank == 0, known=self._known,
        )  # fmt: skip
        self._explanation = chosen.explanation
        if not chosen.is_measured:
            return
        raw = sum(gradients.flat.nbytes for gradients in self.buckets) * 2 * (count - 1) / count
        self._follower = Follower(chosen, self, raw, tries=False)
        if self._known and "network" in self._known:
            self._follower.load_network(self._known)
        self.use(chosen.way)
        (waiting,) = self.numbers.maxima(float(self.norm() > 0))
        self._follower.resume(waiting > 0)

    def mean(self, sample: np.ndarray) -> np.ndarray:
        """The mean of float32[n] over all workers."""
        return self.numbers.mean(sample)

    def residual_norm(self) -> float:
        """The norm of all residuals of this worker."""
        self.engine.await_encodes()
        return self.norm()

    def choice(self) -> Mapping[str, Any] | None:
        return self._known if self._follower is None else self._follower.state_dict()

    def start(self, of: Gradients) -> Future[None]:
        """See :meth:`Sums.start`; looks at gradients and sums where the guard wants to."""
        if self._follower is None:
            return super().start(of)
        self.make_keys(of)  # which takes time of its own
        after, seconds, began = self._watch(of), self._follower.seconds, time.perf_counter()
        done: Future[None] = Future()

        def ended(future: Future[None]) -> None:
            seconds.append(time.perf_counter() - began)
            if error := future.exception():
                done.set_exception(error)
                return
            if after is not None:
                after()
            done.set_result(None)

        super().start(of).add_done_callback(ended)
        return done

    def _watch(self, of: Gradients) -> Callable[[], None] | None:
        """Looks at gradients that are about to be summed; returns what is to be called with their
        sums, if anything."""
        guard = self._follower.guard()
        spans = {n: s for n, s in of.slices.items() if self.compresses(n, s.stop - s.start)}
        if guard is None or not spans:
            return None
        if isinstance(guard, Guard):
            for span in spans.values():
                guard.add(squares(of.flat[span]))
            return None
        if guard.is_last(self.step):
            parts = (of.flat[span].astype(np.float32, copy=False) for span in spans.values())
            guard.add_square(sum(float(np.dot(part, part)) for part in parts))
        guard.before(_samples(of, spans, 1.0))
        return lambda: _after(guard, of, spans, 1.0 / self.engine.world_size)


def _samples(of: Gradients, spans: Mapping[str, slice], scale: float) -> dict[str, np.ndarray]:
    return {
        name: np.float32(scale)
        * of.flat[span][:: sample_step(span.stop - span.start)].astype(np.float32, copy=False)
        for name, span in spans.items()
    }


def _after(guard: FeedbackGuard, of: Gradients, spans: Mapping[str, slice], scale: float) -> None:
    guard.after(_samples(of, spans, scale))


class ChoosingRounds(Choosing):
    """Of pseudo-gradients, all of which travel at once.

    :param sync_every: H
    :param delay: inner steps for which they may travel
    """

    def __init__(self, *arguments: Any, sync_every: int, delay: int = 0) -> None:
        super().__init__(*arguments)
        count = self.engine.world_size
        self.elements = sum(size for size, _ in self.sizes.values())
        self.raw = 4 * self.elements * 2 * (count - 1) / count
        self.alone = "there is one worker" if count == 1 else ""
        matrices = self._shapes.keys() - vectors(self._shapes)
        large = any(self.sizes[name][0] >= min_size(self._auto) for name in matrices)
        self._ways = ROUND_WAYS if large else (UNCOMPRESSED,)
        self._choice = RoundChoice(self, self._ways, sync_every, delay=delay)

    def explain(self) -> Explanation:
        """Why pseudo-gradients are summed as they are, and what was measured; to be printed."""
        return self._choice.explanation

    def measure(self) -> list[Measured]:
        """See :class:`hipress.tuning.rounds.Front`."""
        return self._meter("float32", self._ways, measure_each, math.inf).measure()

    def before_round(self, step: int, steps: int, seconds: float) -> None:
        """See :meth:`hipress.tuning.rounds.RoundChoice.before_round`."""
        choice = self._choice
        if choice.plan is None and self._known and choice.load_state_dict(self._known):
            self.use(choice.way)
        if choice.before_round(step, steps, seconds):
            self.use(choice.way)

    def took(self, seconds: float) -> None:
        """Takes how long the weights were on their way."""
        self._choice.took(0, seconds)

    def choice(self) -> Mapping[str, Any] | None:
        return self._choice.to_carry() or self._known
