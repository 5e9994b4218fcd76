"""Type "auto" of a key-value store: its workers choose a codec before their first gradient.

All workers together push gradients of the model's sizes over the job's own topology, under keys
that are there for that alone. What is chosen, and what changes it, is as everywhere
(:mod:`hipress.tuning.follower`). A worker's step begins when the key is pushed that was the first
to be pushed a second time, so all must push their keys in the same order.

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
from hipress.secopa.choice import FIRST_ELEMENTS, Measured, compare
from hipress.secopa.explanation import Explanation
from hipress.secopa.network_watch import BLOCK_STEPS
from hipress.tuning.choice import choose
from hipress.tuning.feedback_guard import FeedbackGuard, sample_step
from hipress.tuning.follower import UNKNOWN, Follower, forbids
from hipress.tuning.guard import Guard, squares
from hipress.tuning.saved import residual_norm
from hipress.tuning.ways import BF16_HOOK, POWERSGD, Way, apart, ways_for

FIRST = FIRST_KEY + (1 << 40)
"""The first key of these; those of ``plan="auto"`` are below."""
MIN_SIZE = 1024
"""A store's own least size of a gradient that is compressed."""
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

    def save_states(self, server: int | None, first: int, last: int) -> bytes: ...

    def stats(self) -> dict[str, int]: ...


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
        ranks.try_out(self._ways[way])
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
                value = np.zeros(count, _numpy(key))
                self._ranks.node.init_array(number, value, f"hipress/auto/{number}", key.compress)
        numbers, kinds = self._made[size], [_numpy(key) for key in some]
        random = np.random.default_rng(self._ranks.rank)
        values = 0.01 * random.standard_normal(max(sizes), dtype=np.float32)
        by_kind = {kind: values.astype(kind) for kind in set(kinds)}
        self._count = sum(sizes)
        return self._ranks.node.group(
            numbers, [by_kind[kind][:n] for kind, n in zip(kinds, sizes)],
            [np.empty(n, kind) for kind, n in zip(kinds, sizes)],
        )  # fmt: skip


def _numpy(key: Key) -> type:
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
        self.node.init_array(key, value, f"hipress/auto/{key}", compress=False)
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

    def try_out(self, way: Way) -> None:
        """Has all that is pushed from now on go by this way, until :meth:`use` says another one."""
        self.settle()
        self._compress(replace(self._config, type=way.type, params=way.params))

    def residual_norm(self) -> float:
        self.settle()
        return residual_norm(self.node.save_states(None, 0, FIRST_KEY - 1))

    def allows_feedback(self) -> bool | None:
        return self.node.allows_feedback()

    def bytes_sent(self) -> int:
        return self.node.stats()["bytes_sent"]


class StoreChoice:
    """Chooses and follows, between the steps of a node's training; every method is collective.

    :param config: of type "auto"
    :param compress: sets the compression
    """

    def __init__(
        self, node: Store, config: CompressionConfig, compress: Callable[[CompressionConfig], None]
    ) -> None:
        self._node, self.config = node, config
        self._ranks = StoreRanks(node, config, compress)
        self.watching = True
        """Whether the choice is in force."""
        self.follower: Follower | None = None
        self.explanation = Explanation("auto: nothing is measured before the first gradient")
        """Why gradients are synchronised as they are."""
        self._chosen_for: set[int] = set()  # keys that were known then
        self._seen: set[int] = set()  # keys that were pushed, until one is again
        self._step_key: int | None = None  # with this key's push a step begins
        self._guard: Guard | FeedbackGuard | None = None
        self._settled: tuple[float, int] | None = None
        """When what had been begun was over last, and the step that began then."""
        self._seconds = 0.0
        """Of a step before that."""
        self._least = MIN_SIZE if config.min_size is None else config.min_size
        compress(replace(config, type="none"))

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another way any more."""
        return bool(self._seen) and (self.follower is None or self.follower.is_settled)

    def stop(self) -> None:
        """Does not watch any more."""
        self.watching, self._guard = False, None

    def values_change(self) -> None:
        """Notes that servers got an optimizer: which, the node is asked in a step's beginning."""

    def before_push(self, keys: Sequence[int], settle: Callable[[], None]) -> None:
        """Chooses before the first push; when a step begins with this one, goes by the choice.

        :param settle: blocks until all that this worker has pushed and pulled is over
        """
        if not self.watching or not keys or keys[0] >= FIRST_KEY:
            return
        self._ranks.settle = settle
        if not self._seen or self._is_another_model(keys):
            settle()
            self._choose()
            self._seen, self._step_key = set(), None
            self._begin_step()
        elif self._step_key is None:
            self._step_key = next((key for key in keys if key in self._seen), None)
        self._seen.update(keys)
        if self._step_key in keys:
            self._ranks.step += 1
            self._begin_step()

    def _is_another_model(self, keys: Sequence[int]) -> bool:
        """Whether one of these keys was not there at the choice, and those that were not have as
        many elements as those that were: another model, or layers that were frozen."""
        if all(key in self._chosen_for for key in keys):
            return False
        known = self._known_keys()
        before = sum(key.size for number, key in known.items() if number in self._chosen_for)
        return max(before, 1) <= sum(key.size for key in known.values()) - before

    def _known_keys(self) -> dict[int, Key]:
        """The model's, by number."""
        return {n: key for n, key in self._node.known_keys.items() if n < FIRST_KEY}

    def _choose(self) -> None:
        ranks, node = self._ranks, self._node
        known = self._known_keys()
        self._chosen_for, keys = set(known), list(known.values())
        self.follower = self._guard = self._settled = None
        self._seconds = 0.0
        least = self._least
        mine = forbids(node.allows_feedback())
        (forbidden,) = ranks.end_maxima(ranks.begin_maxima([mine]))
        feedback = None if forbidden == UNKNOWN else not forbidden
        narrow = sum(k.size for k in keys if k.dtype != FLOAT32) > sum(k.size for k in keys) / 2
        ways = ways_for(narrow, feedback is not False, [BF16_HOOK, POWERSGD])
        first = max(FIRST_ELEMENTS, least, min(least * node.num_servers, 1 << 20))
        meter = StoreMeter(ranks, keys, ways, first)
        largest = max((key.size for key in keys if key.compress), default=0)
        choice = choose(
            ways, feedback, meter, (node.num_workers, "worker"), largest, least,
            logs=node.rank == 0,
        )  # fmt: skip
        self.explanation = choice.explanation
        ranks.use(choice.way)
        if choice.is_measured:
            raw = sum(key.size * np.dtype(_numpy(key)).itemsize for key in keys)
            peers = node.num_workers
            raw *= 2 * (peers - 1) / peers if node.serverless else 1
            self.follower = Follower(choice, ranks, raw)

    def _begin_step(self) -> None:
        if self.follower is None:
            return
        settles = not self._node.sees_results and self._settles
        if settles:
            self._ranks.settle()
            if self._settled is not None:
                then, step = self._settled
                self._seconds = (time.perf_counter() - then) / (self._ranks.step - step)
        if not self._node.sees_results:
            self.follower.seconds.append(self._seconds)
            self.follower.step_seconds = self._seconds
        self.follower.begin_step()
        self._guard = self.follower.guard()
        if settles:
            self._settled = time.perf_counter(), self._ranks.step

    @property
    def _settles(self) -> bool:
        """Where nobody waits for results, what a step takes is known only of several, after what
        has been begun is over; while ways are tried, that is waited for in each step."""
        tries = self.follower.is_trying or not self._seconds
        return tries or self._ranks.step % BLOCK_STEPS == 0

    # What front ends show.

    @property
    def looks(self) -> bool:
        """Whether gradients of this step are to be given to :meth:`look`."""
        return self._guard is not None

    def look(self, keys: Sequence[int], gradients: Sequence[np.ndarray]) -> None:
        """Looks at gradients of this step that are about to be pushed."""
        if not keys or keys[0] >= FIRST_KEY:
            return
        guard, step = self._guard, self._ranks.step
        for key, values in self._compressed(keys, gradients):
            if isinstance(guard, Guard):
                guard.add(squares(values))
                continue
            if guard.is_last(step):
                guard.add_square(float(np.dot(values, values)))
            if self._node.sees_results:
                guard.before(_sample(key, values))

    def after(
        self, keys: Sequence[int], results: Sequence[np.ndarray], seconds: float
    ) -> None:
        """Takes the sums that gradients of this step have become, in so many seconds."""
        if self.follower is None or not self.watching or not keys or keys[0] >= FIRST_KEY:
            return
        self.follower.seconds.append(seconds)
        if isinstance(self._guard, FeedbackGuard):
            peers = np.float32(self._node.num_workers)
            for key, values in self._compressed(keys, results):
                self._guard.after(_sample(key, values / peers))

    def _compressed(
        self, keys: Sequence[int], arrays: Sequence[np.ndarray]
    ) -> list[tuple[int, np.ndarray]]:
        """Those that are compressed, as float32[n]."""
        least = self._least
        known = self._node.known_keys
        return [
            (key, array.reshape(-1).astype(np.float32, copy=False))
            for key, array in zip(keys, arrays)
            if known[key].compress and known[key].size >= least
        ]


def _sample(key: int, values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{key:020}": values[:: sample_step(values.size)]}
