"""Type "auto" of a key-value store: its workers choose a codec before their first gradient.

All workers together push gradients of the model's sizes over the job's topology, with keys that are
used for measurements only. Numbers are compared by uncompressed sums in which each worker has
separate elements. A worker's step begins when a key is pushed again
(:class:`hipress.autotune.steps.StepDetector`), so all workers must push their keys in the same
order.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hipress.autotune.choice import choose, feedback_from, forbids_feedback
from hipress.autotune.controller import TuningController
from hipress.autotune.explanation import Explanation
from hipress.autotune.frontend import StepFrontend, SumReductions
from hipress.autotune.measurement import FIRST_ELEMENTS
from hipress.autotune.methods import BF16_HOOK, POWERSGD, Method, candidates
from hipress.autotune.network_watch import BLOCK_STEPS
from hipress.autotune.quality_guard import FeedbackGuard, RoundingGuard
from hipress.autotune.steps import FIRST_KEY, MEASURING, StepDetector, are_training_keys
from hipress.config import CompressionConfig
from hipress.dtypes import FLOAT32

MIN_SIZE = 1024
"""Elements from which on a store compresses gradients by default."""


class KnownKey(NamedTuple):
    """Key that is initialized."""

    name: str
    size: int
    """Elements."""
    dtype: int
    """Type flag."""
    compress: bool
    """Whether its gradients may be compressed."""

    @property
    def numpy_dtype(self) -> type:
        """NumPy's type of the gradients."""
        return np.float32 if self.dtype == FLOAT32 else np.float16


def new_key(node: TunedNode, dtype: type, size: int, compress: bool) -> int:
    """Initialize a key that no front end uses, on all workers together."""
    key = next(node.auto_keys)
    node.init_array(key, np.zeros(size, dtype), f"{MEASURING}{key}", compress)
    return key


class StoreReductions(SumReductions):
    """Reductions over the workers of a store."""

    def __init__(self, node: TunedNode) -> None:
        super().__init__(node.rank, node.num_workers)
        self._node = node
        self._keys: dict[int, int] = {}
        """Keys by elements."""

    def begin_sum(self, values: np.ndarray) -> Callable[[], np.ndarray]:
        """Begin the sum of float32[n] over all ranks, and return a function that waits for it."""
        if values.size not in self._keys:
            self._keys[values.size] = new_key(self._node, np.float32, values.size, compress=False)
        total = values.copy()
        pending = self._node.pushpull(self._keys[values.size], total)

        def wait() -> np.ndarray:
            pending.wait()
            return total

        return wait


class StoreFrontend(StepFrontend):
    """A store's gradients with type "auto". ``compress`` sets the compression."""

    keeps_error_feedback = True
    rank_noun = "worker"

    def __init__(
        self,
        node: TunedNode,
        config: CompressionConfig,
        compress: Callable[[CompressionConfig], None],
    ) -> None:
        self.node, self._config, self._compress = node, config, compress
        self.rank, self.num_ranks, self.step = node.rank, node.num_workers, 0
        self.compares_results = node.compares_results
        self.reductions = StoreReductions(node)
        self.method: Method | None = None
        """Method of the gradients, or None before the choice."""
        self.has_measured = False
        """Whether methods were measured since it was set to False."""
        self.settle = node.wait_all
        """Function that blocks until all pushes and pulls of this worker have ended."""
        self._keys_of_size: dict[int, list[int]] = {}
        self._size, self._group, self._count = 0, None, 0

    def set_keys(self, keys: Sequence[KnownKey], min_size: int) -> None:
        """Set the keys of the model."""
        servers = self.node.num_servers
        self.first_elements = max(FIRST_ELEMENTS, min_size, min(min_size * servers, 1 << 20))
        self._keys = sorted(keys, key=lambda key: -key.size)
        self.elements = sum(key.size for key in keys)
        self._keys_of_size = {}

    def use(self, method: Method) -> None:
        """Synchronize all later gradients by a method."""
        self.method = method
        self._set(method)

    def _set(self, method: Method, most: int | None = None) -> None:
        """Use a method for all later pushes, also of gradients that were cut to ``most``."""
        self.settle()
        config = replace(self._config, type=method.type, params=method.params)
        if most is not None and most < (config.min_size or 0):
            config = replace(config, min_size=most)
        self._compress(config)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Enclose the measurement; free its memory at the end."""
        self.has_measured = True
        try:
            yield
        finally:
            self._size, self._group = 0, None
        if self.method is not None:
            self.use(self.method)

    def time_gradients(self, method: Method, size: int) -> tuple[float, int]:
        """Return the slowest rank's seconds of a sample, and its elements."""
        if size != self._size:
            self._size, self._group = size, self._new_group(size)
        self._set(method, size)
        self.node.barrier()
        began = time.perf_counter()
        self._group.pushpull().wait()
        (seconds,) = self.reductions.max(time.perf_counter() - began)
        return seconds, self._count

    def _sample(self, size: int) -> tuple[list[KnownKey], list[int]]:
        """Return keys of a sample of about so many elements, and the elements of each."""
        some, servers = self._keys[:: math.ceil(self.elements / size)], self.node.num_servers
        if len(some) < servers and size < self.elements:
            # A small key uses one server and a large one all, so parts of the largest are measured.
            some, size = self._keys[:1] * servers, size // servers
        return some, [min(key.size, size) for key in some]

    def _new_group(self, size: int) -> Any:
        some, sizes = self._sample(size)
        if size not in self._keys_of_size:
            self._keys_of_size[size] = [
                new_key(self.node, key.numpy_dtype, count, key.compress)
                for key, count in zip(some, sizes)
            ]
        random = np.random.default_rng(self.rank)
        values = 0.01 * random.standard_normal(max(sizes), dtype=np.float32)
        dtypes = [key.numpy_dtype for key in some]
        by_dtype = {dtype: values.astype(dtype) for dtype in set(dtypes)}
        self._count = sum(sizes)
        return self.node.group(
            self._keys_of_size[size],
            [by_dtype[dtype][:n] for dtype, n in zip(dtypes, sizes)],
            [np.empty(n, dtype) for dtype, n in zip(dtypes, sizes)],
        )

    def residual_norm(self) -> float:
        """Return the 2-norm of all residuals of this rank."""
        self.settle()
        return self.node.norm_of_states(0, FIRST_KEY - 1)

    def allows_feedback(self) -> bool | None:
        """Return whether the optimizers support error feedback, or None."""
        return self.node.allows_feedback()

    def bytes_sent(self) -> int:
        """Return the bytes that this rank has sent so far."""
        return self.node.stats()["bytes_sent"]


class StoreTuner:
    """Tuner of a store's compression, whose methods all workers call together."""

    option: str
    """Name of the option whose value is "auto"."""
    watching = False
    """Whether the tuner is in use."""

    def stop(self) -> None:
        """Stop tuning."""
        self.watching = False

    def values_change(self) -> None:
        """Record that servers have an optimizer, so that weights are pulled."""

    def before_push(self, keys: Sequence[int], settle: Callable[[], None]) -> None:
        """Tune before a push of ``keys``, if a step begins with it.

        ``settle`` blocks until all pushes and pulls of this worker have ended.
        """


class StoreController(StoreTuner):
    """Type "auto" of a store. ``compress`` sets the compression."""

    option, watching = "type", True

    def __init__(
        self,
        node: TunedNode,
        config: CompressionConfig,
        compress: Callable[[CompressionConfig], None],
    ) -> None:
        self._node, self.config = node, config
        self._frontend = StoreFrontend(node, config, compress)
        self.controller: TuningController | None = None
        self.explanation = Explanation("auto: nothing is measured before the first gradient")
        self._chosen_for: set[int] = set()
        """Keys at the time of the choice."""
        self._pushes = StepDetector()
        self._settled: tuple[float, int] | None = None
        """Time at which all communication was over last, and the step that began then."""
        self._seconds = 0.0
        """Seconds of a step before that."""
        self._min_size = MIN_SIZE if config.min_size is None else config.min_size
        compress(replace(config, type="none"))

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another method."""
        return self._pushes.has_begun and (self.controller is None or self.controller.is_settled)

    def before_push(self, keys: Sequence[int], settle: Callable[[], None]) -> None:
        """Begin a step with its first push; it may change the choice."""
        if not self.watching or not are_training_keys(keys):
            return
        self._frontend.settle = settle
        if not self._pushes.has_begun or self._is_another_model(keys):
            settle()
            self._choose()
            self._pushes = StepDetector()
            self._begin_step()
        if self._pushes.begins(keys):
            self._frontend.step += 1
            self._begin_step()

    def _is_another_model(self, keys: Sequence[int]) -> bool:
        """Return whether keys are new since the choice, with at least as many elements."""
        if all(key in self._chosen_for for key in keys):
            return False
        known = self._known_keys()
        before = sum(key.size for number, key in known.items() if number in self._chosen_for)
        return max(before, 1) <= sum(key.size for key in known.values()) - before

    def _known_keys(self) -> dict[int, KnownKey]:
        """Return the keys of the model."""
        return {n: key for n, key in self._node.known_keys.items() if n < FIRST_KEY}

    def _choose(self) -> None:
        frontend, node = self._frontend, self._node
        known = self._known_keys()
        self._chosen_for, keys = set(known), list(known.values())
        self.controller = self._settled = None
        self._seconds = 0.0
        frontend.set_keys(keys, self._min_size)
        (forbidden,) = frontend.reductions.max(forbids_feedback(node.allows_feedback()))
        feedback = feedback_from(forbidden)
        narrow = sum(key.size for key in keys if key.dtype != FLOAT32)
        methods = candidates(
            narrow > frontend.elements / 2, feedback is not False, [BF16_HOOK, POWERSGD]
        )
        largest = max((key.size for key in keys if key.compress), default=0)
        choice = choose(frontend, methods, feedback, largest, self._min_size)
        self.explanation = choice.explanation
        frontend.use(choice.method)
        if choice.is_measured:
            raw = sum(key.size * np.dtype(key.numpy_dtype).itemsize for key in keys)
            workers = node.num_workers
            raw *= 2 * (workers - 1) / workers if node.serverless else 1
            overlaps = not node.compares_results
            self.controller = TuningController(choice, frontend, raw, overlaps=overlaps)

    def _begin_step(self) -> None:
        controller, frontend = self.controller, self._frontend
        if controller is None:
            return
        settles = not self._node.compares_results and self._settles
        if settles:
            frontend.settle()
            if self._settled is not None:
                then, step = self._settled
                self._seconds = (time.perf_counter() - then) / (frontend.step - step)
        if not self._node.compares_results:
            controller.seconds.append(self._seconds)
            controller.step_seconds = self._seconds
        controller.begin_step()
        if settles or frontend.has_measured:
            self._settled = (time.perf_counter(), frontend.step) if settles else None
        frontend.has_measured = False

    @property
    def _settles(self) -> bool:
        """Whether all communication must have ended before this step begins.

        If no operation waits for results, the seconds of a step are known only as a mean. It is
        that of several steps between two such times. Otherwise computation would never hide
        communication.
        """
        if self.controller.is_trying:
            return self.controller.settles
        return not self._seconds or self._frontend.step % BLOCK_STEPS == 0

    @property
    def observer(self) -> RoundingGuard | FeedbackGuard | None:
        """Guard that observes gradients now, if there is one."""
        return self.controller and self.controller.observer

    def observe(self, keys: Sequence[int], gradients: Sequence[np.ndarray]) -> None:
        """Pass the gradients of compressed keys to the guard."""
        if self.observer is not None and are_training_keys(keys):
            compressed = self._compressed(keys, gradients)
            self.observer.before((name, [values]) for name, values in compressed)

    def observe_results(
        self, keys: Sequence[int], results: Sequence[np.ndarray], seconds: float
    ) -> None:
        """Record a step's seconds, and pass its results to the guard."""
        if self.controller is None or not are_training_keys(keys):
            return
        self.controller.seconds.append(seconds)
        if self.observer is not None and self.observer.compares_results:
            self.observer.after(self._compressed(keys, results), 1.0 / self._node.num_workers)

    def _compressed(
        self, keys: Sequence[int], arrays: Sequence[np.ndarray]
    ) -> list[tuple[str, np.ndarray]]:
        """Return the name and the flat array of each compressed gradient."""
        known = self._node.known_keys
        return [
            (f"{key:020}", array.reshape(-1))
            for key, array in zip(keys, arrays)
            if known[key].compress and known[key].size >= self._min_size
        ]


class TunedNode:
    """A node whose compression may be tuned."""

    auto: StoreTuner | None = None
    """Tuner of type "auto" or ``plan="auto"``."""
    compares_results = False
    """Whether the front end passes results and times to :meth:`observe_results`."""

    def __init__(self) -> None:
        super().__init__()
        self._requested = CompressionConfig()
        self.auto_keys = itertools.count(FIRST_KEY)
        """Numbers of keys for measurements. Each is used once, as keys stay."""
        self.known_keys: dict[int, KnownKey] = {}
        """Keys whose gradients are pushed."""

    def is_no_gradient(self, key: int) -> None:
        """Record that the gradients of a key are not pushed in each step."""
        del self.known_keys[key]

    def allows_feedback(self) -> bool | None:
        """Return whether all optimizers support error feedback, or None if that is unknown.

        Front ends that know their optimizers override it.
        """
        return None

    @property
    def _controller(self) -> StoreController | None:
        """Tuner of type "auto", if it is in use."""
        tuner = self.auto
        return tuner if isinstance(tuner, StoreController) and tuner.watching else None

    def compresses_shape(self, shape: Sequence[int]) -> bool:
        """Return whether a gradient of this shape may be compressed.

        With type "auto", biases and normalizations may not.
        """
        return len(shape) > 1 or not isinstance(self.auto, StoreController)

    def explain(self) -> Explanation:
        """Return the reasons for the compression, with the measurements, to be printed."""
        if self._controller is None:
            return Explanation(f"{self._requested}, as was asked for")
        return self._controller.explanation

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another method; False before the first gradient."""
        return self._controller is None or self._controller.is_settled

    @property
    def observes(self) -> bool:
        """Whether type "auto" observes the gradients of this step."""
        return self._controller is not None and self._controller.observer is not None

    def observe(self, keys: Sequence[int], gradients: Sequence[np.ndarray]) -> None:
        """Let type "auto" observe gradients before they are pushed, after :meth:`before_push`."""
        if self._controller is not None:
            self._controller.observe(keys, gradients)

    def observe_results(
        self, keys: Sequence[int], results: Sequence[np.ndarray], seconds: float
    ) -> None:
        """Let type "auto" observe the sums of a step, and their seconds.

        Front ends that set :attr:`compares_results` call this.
        """
        if self._controller is not None:
            self._controller.observe_results(keys, results, seconds)
