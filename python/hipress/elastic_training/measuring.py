"""What the workers of an engine's job measure together, and compare, where gradients lie in NumPy
arrays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

import numpy as np

from hipress.config import CompressionConfig
from hipress.elastic_training.sums import MIN_SIZE, Sums
from hipress.engine import Engine
from hipress.secopa.choice import FIRST_ELEMENTS, Measured, compare
from hipress.secopa.plan import Decision
from hipress.secopa.steps import MEASURING
from hipress.tuning.ways import Way, apart, vectors

MAX_ELEMENTS = 1 << 23
"""Elements that are measured in all, about."""
_MOST = 8
"""Numbers of a worker that are compared at once, at most."""
Shapes = Mapping[str, Sequence[int]]


def config_of(way: Way, config: CompressionConfig, shapes: Shapes) -> CompressionConfig:
    """The compression by which gradients of these shapes go by a way.

    :param config: of type "auto"
    """
    as_they_are = {name: Decision(False, 1) for name in vectors(shapes)}
    return replace(config, type=way.type, params=way.params, plan=as_they_are)


class _Sum:
    """A sum under way, whose memory the next one of its size takes.

    :param flat: where it will be
    """

    def __init__(self, future: Future[None], flat: np.ndarray) -> None:
        self._future, self._flat = future, flat
        self._found: np.ndarray | None = None

    def found(self) -> np.ndarray:
        """Waits for it.

        :raises HipressError: if a worker dies or is silent meanwhile
        """
        if self._found is None:
            self._future.result()
            self._found = self._flat.copy()
        return self._found


class EngineNumbers:
    """Numbers that the workers of an engine's job compare, all together, in float32. Each worker
    has elements of its own in a sum, which no other one's rounding reaches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sums: dict[int, Sums] = {}  # by elements
        self._last: dict[int, _Sum] = {}

    def begin_maxima(self, values: Sequence[float]) -> tuple[_Sum, int]:
        """Begins to compare up to eight numbers; waits for nobody but who is a comparison behind.

        :raises HipressError: if a worker has died or is silent
        """
        mine = np.zeros((self._engine.world_size, _MOST), np.float32)
        mine[self._engine.rank, : len(values)] = values
        return self._start(mine.reshape(-1)), len(values)

    def end_maxima(self, begun: tuple[_Sum, int]) -> list[float]:
        """The maxima over all workers, with the same bits on each.

        :raises HipressError: if a worker dies or is silent meanwhile
        """
        of, count = begun
        return of.found().reshape(-1, _MOST).max(axis=0)[:count].tolist()

    def maxima(self, *values: float) -> list[float]:
        """The maxima over all workers, for which all wait."""
        return self.end_maxima(self.begin_maxima(values))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over all workers of float32[n], with the same bits on each.

        :raises HipressError: if a worker dies or is silent meanwhile
        """
        if not values.size:
            return values
        return self._start(values).found() / np.float32(self._engine.world_size)

    def _start(self, values: np.ndarray) -> _Sum:
        size = values.size
        if size not in self._sums:
            sizes = {f"{MEASURING}{size} numbers": (size, "float32")}
            self._sums[size] = Sums(self._engine, CompressionConfig.of("none"), sizes)
        if size in self._last:
            self._last[size].found()
        (gradients,) = self._sums[size].buckets
        gradients.flat[:] = values
        self._last[size] = _Sum(self._sums[size].start(gradients), gradients.flat)
        return self._last[size]


class Meter:
    """Measures what gradients take by ways, on all workers together.

    :param config: of type "auto"
    :param shapes: of all gradients by name
    :param dtype: of most of them
    :param compare: compares the ways, see :func:`hipress.secopa.choice.compare`
    :param most: of the sums, see :func:`hipress.elastic_training.sums.buckets`
    """

    def __init__(
        self, engine: Engine, numbers: EngineNumbers, config: CompressionConfig, shapes: Shapes,
        dtype: str, ways: Sequence[Way], compare: Callable[..., list[Measured]] = compare,
        *most: float,
    ) -> None:  # fmt: skip
        self._engine, self._numbers, self._config = engine, numbers, config
        self._shapes, self._dtype, self._ways, self._compare = shapes, dtype, ways, compare
        self.elements = sum(map(math.prod, shapes.values()))
        """Of all gradients."""
        self._most, self._size, self._sums = most, 0, {}

    def measure(self) -> list[Measured]:
        """Seconds of all gradients by each way.

        :raises HipressError: if a worker dies or is silent meanwhile
        """
        first = max(FIRST_ELEMENTS, self._config.min_size or MIN_SIZE)
        found = self._compare(
            self.sample, len(self._ways), self.elements, MAX_ELEMENTS, first, apart(self._ways)
        )
        self._take(0)
        return found

    measure_again = measure

    def sample(self, way: int, size: int) -> tuple[float, int]:
        """Seconds of a sample of about ``size`` elements by a way on the slowest worker, and the
        sample's elements."""
        self._take(size)
        if way not in self._sums:
            self._sums[way] = self._new_sums(way, size)
            self._numbers.maxima(0.0)  # all have their keys
        sums = self._sums[way]
        began = time.perf_counter()
        for future in [sums.start(gradients) for gradients in sums.buckets]:
            future.result()
        (seconds,) = self._numbers.maxima(time.perf_counter() - began)
        return seconds, sum(gradients.flat.size for gradients in sums.buckets)

    def _take(self, size: int) -> None:
        """Has sums of one size at a time, for memory's sake."""
        if size != self._size:
            self._engine.await_encodes()
            self._size, self._sums = size, {}

    def _new_sums(self, way: int, size: int) -> Sums:
        """Sums of every second (third, ...) gradient in order of size, one larger than the sample
        as if it had the sample's elements."""
        every = max(1, math.ceil(self.elements / size))
        by_size = sorted(self._shapes.items(), key=lambda item: -math.prod(item[1]))
        about = f"{MEASURING}{self._ways[way].name}/{size}"
        shapes = {f"{about}/{name}": shape for name, shape in by_size[::every]}
        sizes = {n: (min(size, math.prod(shape)), self._dtype) for n, shape in shapes.items()}
        # What is larger than the sample is cut to its size, and must be compressed all the same.
        cut = replace(self._config, min_size=min(self._config.min_size or MIN_SIZE, size))
        config = config_of(self._ways[way], cut, shapes)
        sums = Sums(self._engine, config, sizes, *self._most)
        random = np.random.default_rng(self._engine.rank)
        for gradients in sums.buckets:
            values = random.standard_normal(gradients.flat.size, np.float32)
            gradients.flat[:] = (0.01 * values).astype(gradients.flat.dtype)
        sums.prepare({})
        return sums
