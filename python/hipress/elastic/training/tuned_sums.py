"""Front end of the autotuner for sums in NumPy arrays.

The workers of a view choose how gradients or pseudo-gradients are compressed. The workers of the
first view measure in their first step, or outer step. Those of later views continue with that
choice, which a joining worker copies. All numbers are compared by the engine, whose operations end
as soon as a worker's failure is known.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from hipress.autotune.choice import choose, feedback_from, forbids_feedback
from hipress.autotune.controller import TuningController
from hipress.autotune.explanation import Explanation
from hipress.autotune.frontend import StepFrontend, SumReductions, TuningFrontend
from hipress.autotune.measurement import FIRST_ELEMENTS
from hipress.autotune.methods import (
    BF16_HOOK,
    POWERSGD,
    UNCOMPRESSED,
    Method,
    candidates,
    vectors,
)
from hipress.autotune.outer_steps import OuterFrontend, OuterStepController
from hipress.autotune.steps import MEASURING
from hipress.config import CompressionConfig
from hipress.elastic.training.sums import Gradients, Sums, min_size
from hipress.planning.plan import Decision
from hipress.runtime.engine import Engine

Shapes = Mapping[str, Sequence[int]]


def config_for(method: Method, config: CompressionConfig, shapes: Shapes) -> CompressionConfig:
    """Return the compression with which gradients use a method, from that of type "auto"."""
    uncompressed = {name: Decision(False, 1) for name in vectors(shapes)}
    return replace(config, type=method.type, params=method.params, plan=uncompressed)


class EngineReductions(SumReductions):
    """Reductions by the engine, whose operations end as soon as a worker's failure is known."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.rank, engine.world_size)
        self._engine = engine
        self._sums: dict[int, Sums] = {}
        """Sums by elements."""
        self._last: dict[int, Callable[[], np.ndarray]] = {}
        """Functions that wait for the last sum of each size. The next sum uses the same memory."""

    def begin_sum(self, values: np.ndarray) -> Callable[[], np.ndarray]:
        """See :meth:`hipress.autotune.frontend.SumReductions.begin_sum`."""
        size = values.size
        if size not in self._sums:
            sizes = {f"{MEASURING}{size} numbers": (size, "float32")}
            self._sums[size] = Sums(self._engine, CompressionConfig.of("none"), sizes)
        if size in self._last:
            self._last[size]()
        (gradients,) = self._sums[size].buckets
        gradients.flat[:] = values
        future = self._sums[size].start(gradients)

        @functools.cache
        def wait() -> np.ndarray:
            future.result()
            return gradients.flat.copy()

        self._last[size] = wait
        return wait


class TunedSums(Sums, TuningFrontend):
    """Sums whose method the autotuner chooses, and changes in training.

    Args:
        config: Compression of type "auto".
        shapes: Shapes of all gradients by name.
        known: Choice of the last view, equal on all workers; None if there is none.
    """

    rank_noun = "worker"
    _one_bucket = False

    def __init__(
        self,
        engine: Engine,
        config: CompressionConfig,
        shapes: Shapes,
        sizes: Mapping[str, tuple[int, str]],
        known: Mapping[str, Any] | None,
    ) -> None:
        uncompressed = config_for(UNCOMPRESSED, config, shapes)
        super().__init__(engine, uncompressed, sizes, self._one_bucket)
        self._auto, self._shapes, self._known = config, shapes, known
        self.rank, self.num_ranks = engine.rank, engine.world_size
        self.reductions = EngineReductions(engine)
        self.elements = sum(map(math.prod, shapes.values()))
        self.first_elements = max(FIRST_ELEMENTS, min_size(config))
        self._dtype = self._most_frequent_dtype()
        self._size, self._samples = 0, {}
        matrices = shapes.keys() - vectors(shapes)
        self._largest = max((math.prod(shapes[name]) for name in matrices), default=0)

    def _most_frequent_dtype(self) -> str:
        by_dtype: dict[str, int] = {}
        for size, dtype in self.sizes.values():
            by_dtype[dtype] = by_dtype.get(dtype, 0) + size
        return max(by_dtype, key=by_dtype.get)

    def prepare(self) -> None:
        """Do nothing: keys are created when a method is chosen."""

    def use(self, method: Method) -> None:
        """Sum all later gradients by a method."""
        config = config_for(method, self._auto, self._shapes)
        if config != self.config:
            self.replace(config)

    def bytes_sent(self) -> int:
        """Return the bytes that this worker has sent so far."""
        return self.engine.member.stats()["bytes_sent"]

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice for the next view, as JSON."""
        return self._known

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Keep the memory of samples until the end."""
        yield
        # After an error the samples are kept: the engine's threads may still write to their memory.
        self._set_size(0)

    def time_gradients(self, method: Method, size: int) -> tuple[float, int]:
        """Sum a sample of the gradients; return seconds of the slowest worker, and elements."""
        self._set_size(size)
        if method.name not in self._samples:
            self._samples[method.name] = self._new_sample(method, size)
            self.reductions.max(0.0)  # all workers have their keys
        sums = self._samples[method.name]
        began = time.perf_counter()
        for future in [sums.start(gradients) for gradients in sums.buckets]:
            future.result()
        (seconds,) = self.reductions.max(time.perf_counter() - began)
        return seconds, sum(gradients.flat.size for gradients in sums.buckets)

    def _set_size(self, size: int) -> None:
        """Keep samples of this size only, to save memory."""
        if size != self._size:
            self.engine.await_encodes()
            self._size, self._samples = size, {}

    def _new_sample(self, method: Method, size: int) -> Sums:
        """Return sums of every second (third, ...) gradient in order of size.

        Gradients that are larger than the sample are cut to its size.
        """
        every = max(1, math.ceil(self.elements / size))
        by_size = sorted(self._shapes.items(), key=lambda item: -math.prod(item[1]))
        prefix = f"{MEASURING}{method.name}/{size}"
        shapes = {f"{prefix}/{name}": shape for name, shape in by_size[::every]}
        sizes = {n: (min(size, math.prod(shape)), self._dtype) for n, shape in shapes.items()}
        # A gradient that is cut to the sample's size is compressed nevertheless.
        cut = replace(self._auto, min_size=min(min_size(self._auto), size))
        config = config_for(method, cut, shapes)
        sums = Sums(self.engine, config, sizes, self._one_bucket)
        random = np.random.default_rng(self.rank)
        for gradients in sums.buckets:
            values = random.standard_normal(gradients.flat.size, np.float32)
            gradients.flat[:] = (0.01 * values).astype(gradients.flat.dtype)
        sums.prepare()
        return sums


class TunedGradients(TunedSums, StepFrontend):
    """Sums of gradients.

    Args:
        step: Returns the number of the step that begins.
        allows_feedback: Returns whether the optimizer supports error feedback; None if unknown.
    """

    keeps_error_feedback = False  # uncompressed gradients do not send residuals
    compares_results = True

    def __init__(
        self, *arguments: Any, step: Callable[[], int], allows_feedback: Callable[[], bool | None]
    ) -> None:
        super().__init__(*arguments)
        self._step_of, self._allows_feedback = step, allows_feedback
        self._controller: TuningController | None = None
        self._begun = False
        self._explanation = Explanation("auto: nothing is measured before the first step")

    @property
    def step(self) -> int:
        """Number of the step that begins."""
        return self._step_of()

    def allows_feedback(self) -> bool | None:
        """Return whether the optimizer supports error feedback, or None if unknown."""
        return self._allows_feedback()

    def explain(self) -> Explanation:
        """Return the reasons for the method, with the measurements, to be printed."""
        return self._explanation

    def begin_step(self) -> None:
        """See :meth:`Sums.begin_step`. The workers choose before the first step."""
        if not self._begun:
            self._begin()
            self._begun = True
        if self._controller is not None:
            self._controller.begin_step()

    def _begin(self) -> None:
        (forbidden,) = self.reductions.max(forbids_feedback(self.allows_feedback()))
        feedback = feedback_from(forbidden)
        is_16_bit = self._dtype != "float32"
        methods = candidates(is_16_bit, feedback is not False, [BF16_HOOK, POWERSGD])
        chosen = choose(
            self, methods, feedback, self._largest, min_size(self._auto), known=self._known
        )
        self._explanation = chosen.explanation
        if not chosen.is_measured:
            return
        transfers = 2 * (self.num_ranks - 1) / self.num_ranks
        raw = sum(gradients.flat.nbytes for gradients in self.buckets) * transfers
        self._controller = TuningController(chosen, self, raw, tries=False)
        self._controller.load_network(self._known or {})
        self.use(chosen.method)
        (waiting,) = self.reductions.max(float(self.error_feedback.norm() > 0))
        self._controller.resume(waiting > 0)

    def residual_norm(self) -> float:
        """Return the 2-norm of all residuals of this worker."""
        self.engine.await_encodes()
        return self.error_feedback.norm()

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice for the next view, as JSON."""
        return self._known if self._controller is None else self._controller.state_dict()

    def start(self, of: Gradients) -> Future[None]:
        """See :meth:`Sums.start`.

        Gradients and sums are timed, and observed if a guard needs it.
        """
        controller = self._controller
        if controller is None:
            return super().start(of)
        self.make_keys(of)  # not included in the time
        after, seconds, began = self._observe(of), controller.seconds, time.perf_counter()
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

    def _observe(self, of: Gradients) -> Callable[[], None] | None:
        """Observe gradients before they are summed.

        Return a function that observes their sums, or None if that is not needed.
        """
        observer = self._controller.observer
        spans = {n: s for n, s in of.slices.items() if self.compresses(n, s.stop - s.start)}
        if observer is None or not spans:
            return None
        observer.before((name, [of.flat[span]]) for name, span in spans.items())
        if not observer.compares_results:
            return None

        def after() -> None:
            sums = ((name, of.flat[span]) for name, span in spans.items())
            observer.after(sums, 1.0 / self.num_ranks)

        return after


class TunedPseudoGradients(TunedSums, OuterFrontend):
    """Sums of pseudo-gradients, all of which travel at once.

    Args:
        sync_every: Inner steps from one outer step to the next.
        delay: Inner steps for which the sums may travel.
    """

    _one_bucket = True

    def __init__(self, *arguments: Any, sync_every: int, delay: int = 0) -> None:
        super().__init__(*arguments)
        self.compresses_any = self._largest >= max(1, min_size(self._auto))
        self._tuner = OuterStepController(self, sync_every, delay=delay)

    def explain(self) -> Explanation:
        """Return the reasons for the method, with the measurements, to be printed."""
        return self._tuner.explanation

    def before_round(self, step: int, steps: int, seconds: float) -> None:
        """See :meth:`hipress.autotune.outer_steps.OuterStepController.before_outer_step`."""
        self._tuner.before_outer_step(step, steps, seconds, self._known)

    def took(self, seconds: float) -> None:
        """Record how long the weights traveled."""
        self._tuner.record_travel(0, seconds)

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice for the next view, as JSON."""
        return self._tuner.view_state() or self._known
