"""The workers of a key-value store's job: what type "auto" measures on them, and asks of them.

Numbers are compared by uncompressed sums in which each worker has elements of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hipress.config import CompressionConfig
from hipress.dtypes import FLOAT32
from hipress.secopa.auto import FIRST_KEY
from hipress.secopa.choice import Measured, compare
from hipress.secopa.steps import MEASURING
from hipress.tuning.ways import Way, apart

FIRST = FIRST_KEY + (1 << 40)
"""The first key of these; those of ``plan="auto"`` are below."""
MAX_ELEMENTS = 1 << 23
"""Elements that are measured in all, about: of a larger model every second (third, ...) gradient in
order of size, and one larger than this as if it had this many."""
NUMBERS = 8
"""Numbers of a worker that are compared at once, at most."""


class Key(Protocol):
    """What a node knows of a key."""

    name: str
    size: int
    dtype: int
    compress: bool


class Store(Protocol):
    """The node whose gradients are compressed."""

    rank: int
    num_workers: int
    num_servers: int
    serverless: bool
    sees_results: bool
    known_keys: Mapping[int, Key]
    auto_keys: Iterator[int]
    allows_feedback: Callable[[], bool | None]

    def init_array(self, key: int, value: np.ndarray, name: str, compress: bool) -> object: ...

    def group(
        self, keys: Sequence[int], gradients: Sequence[np.ndarray], outs: Sequence[np.ndarray]
    ) -> Any: ...

    def pushpull(self, key: int, gradient: np.ndarray) -> Any: ...

    def barrier(self) -> None: ...

    def wait_all(self) -> None: ...

    def norm_of_states(self, first: int, last: int) -> float: ...

    def stats(self) -> dict[str, int]: ...


def numpy_type(key: Key) -> type:
    """NumPy's type of a key's gradients."""
    return np.float32 if key.dtype == FLOAT32 else np.float16


class StoreRanks:
    """The workers of a job; what a :class:`hipress.tuning.follower.Follower` asks of them."""

    sends_all_it_leaves = True

    def __init__(
        self, node: Store, config: CompressionConfig, compress: Callable[[CompressionConfig], None]
    ) -> None:
        self.node, self.rank, self.step = node, node.rank, 0
        self._config, self._compress = config, compress
        self._numbers: int | None = None
        self._samples: dict[int, int] = {}  # keys by elements
        self.way: Way | None = None
        """That by which gradients go; None: there is none yet."""
        self.has_measured = False
        """Whether ways were measured since this was set to False."""
        self.settle = node.wait_all
        """Blocks until all that this worker has pushed and pulled is over."""

    @property
    def compares_results(self) -> bool:
        return self.node.sees_results

    def new_key(self) -> int:
        """The number of a key that no front end uses."""
        return next(self.node.auto_keys)

    def _uncompressed_key(self, elements: int) -> int:
        key = self.new_key()
        value = np.zeros(elements, np.float32)
        self.node.init_array(key, value, f"{MEASURING}{key}", compress=False)
        return key

    def begin_maxima(self, values: Sequence[float]) -> tuple[Any, np.ndarray, int]:
        if self._numbers is None:
            self._numbers = self._uncompressed_key(NUMBERS * self.node.num_workers)
        mine = np.zeros((self.node.num_workers, NUMBERS), np.float32)
        mine[self.rank, : len(values)] = values
        return self.node.pushpull(self._numbers, mine.reshape(-1)), mine, len(values)

    def end_maxima(self, begun: tuple[Any, np.ndarray, int]) -> list[float]:
        pending, found, count = begun
        pending.wait()
        return found.max(axis=0)[:count].tolist()

    def mean(self, sample: np.ndarray) -> np.ndarray:
        if not sample.size:
            return sample
        if sample.size not in self._samples:
            self._samples[sample.size] = self._uncompressed_key(sample.size)
        total = sample.copy()
        self.node.pushpull(self._samples[sample.size], total).wait()
        return total / np.float32(self.node.num_workers)

    def use(self, way: Way) -> None:
        self.way = way
        self.try_out(way)

    def try_out(self, way: Way, most: int | None = None) -> None:
        """Has all that is pushed from now on go by this way, until :meth:`use` says another one.

        :param most: elements to which larger gradients were cut: they are compressed, too
        """
        self.settle()
        config = replace(self._config, type=way.type, params=way.params)
        if most is not None and most < (config.min_size or 0):
            config = replace(config, min_size=most)
        self._compress(config)

    def residual_norm(self) -> float:
        self.settle()
        return self.node.norm_of_states(0, FIRST_KEY - 1)

    def allows_feedback(self) -> bool | None:
        return self.node.allows_feedback()

    def bytes_sent(self) -> int:
        return self.node.stats()["bytes_sent"]


class StoreMeter:
    """Measures what a model's gradients take by ways, on all workers together.

    :param keys: of the model
    """

    def __init__(
        self, ranks: StoreRanks, keys: Sequence[Key], ways: Sequence[Way], first: int
    ) -> None:
        self._ranks, self._ways, self._first = ranks, ways, first
        self._keys = sorted(keys, key=lambda key: -key.size)
        self.elements = sum(key.size for key in keys)
        """Of all gradients."""
        self._made: dict[int, list[int]] = {}  # numbers by sample
        self._size, self._group, self._count = 0, None, 0

    def measure(self) -> list[Measured]:
        """Seconds of all gradients by each way. :raises HipressError: if a node fails meanwhile"""
        self._ranks.has_measured = True
        try:
            found = compare(
                self._sample, len(self._ways), self.elements, MAX_ELEMENTS, self._first,
                apart(self._ways),
            )  # fmt: skip
        finally:
            self._size, self._group = 0, None
        if self._ranks.way is not None:
            self._ranks.use(self._ranks.way)
        return found

    measure_again = measure

    def _sample(self, way: int, size: int) -> tuple[float, int]:
        """Seconds of a sample of about ``size`` elements by a way, and the sample's elements."""
        ranks = self._ranks
        if size != self._size:
            self._size, self._group = size, self._new_group(size)
        ranks.try_out(self._ways[way], size)
        ranks.node.barrier()
        began = time.perf_counter()
        self._group.pushpull().wait()
        seconds = time.perf_counter() - began
        return ranks.end_maxima(ranks.begin_maxima([seconds]))[0], self._count

    def _keys_of(self, size: int) -> tuple[list[Key], list[int]]:
        """Keys of a sample of about so many elements, and how many elements of each."""
        some, servers = self._keys[:: math.ceil(self.elements / size)], self._ranks.node.num_servers
        if len(some) < servers and size < self.elements:
            # A small key goes to one of them, and a large one to all: pieces of the largest.
            some, size = self._keys[:1] * servers, size // servers
        return some, [min(key.size, size) for key in some]

    def _new_group(self, size: int) -> Any:
        some, sizes = self._keys_of(size)
        if size not in self._made:
            self._made[size] = [self._ranks.new_key() for _ in some]
            for number, key, count in zip(self._made[size], some, sizes):
                value = np.zeros(count, numpy_type(key))
                self._ranks.node.init_array(number, value, f"{MEASURING}{number}", key.compress)
        numbers, kinds = self._made[size], [numpy_type(key) for key in some]
        random = np.random.default_rng(self._ranks.rank)
        values = 0.01 * random.standard_normal(max(sizes), dtype=np.float32)
        by_kind = {kind: values.astype(kind) for kind in set(kinds)}
        self._count = sum(sizes)
        return self._ranks.node.group(
            numbers, [by_kind[kind][:n] for kind, n in zip(kinds, sizes)],
            [np.empty(n, kind) for kind, n in zip(kinds, sizes)],
        )  # fmt: skip
