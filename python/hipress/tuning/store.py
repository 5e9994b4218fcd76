"""Type "auto" of a key-value store: its workers choose a codec before their first gradient.

All workers together push gradients of the model's sizes over the job's own topology, under keys
that are there for that alone. What is chosen, and what changes it, is as everywhere
(:mod:`hipress.tuning.follower`). A worker's step begins when a key is pushed again
(:mod:`hipress.secopa.steps`), so all must push their keys in the same order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hipress.config import CompressionConfig
from hipress.dtypes import FLOAT32
from hipress.secopa.auto import FIRST_KEY
from hipress.secopa.choice import FIRST_ELEMENTS
from hipress.secopa.explanation import Explanation
from hipress.secopa.network_watch import BLOCK_STEPS
from hipress.secopa.steps import Steps
from hipress.tuning.choice import choose
from hipress.tuning.feedback_guard import FeedbackGuard, sample_step
from hipress.tuning.follower import UNKNOWN, Follower, forbids
from hipress.tuning.guard import Guard, squares
from hipress.tuning.store_ranks import Key, Store, StoreMeter, StoreRanks, numpy_type
from hipress.tuning.ways import BF16_HOOK, POWERSGD, ways_for

MIN_SIZE = 1024
"""A store's own least size of a gradient that is compressed."""


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
        self._pushes = Steps()
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
        return self._pushes.has_begun and (self.follower is None or self.follower.is_settled)

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
        if not self._pushes.has_begun or self._is_another_model(keys):
            settle()
            self._choose()
            self._pushes = Steps()
            self._begin_step()
        if self._pushes.begins(keys):
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
            raw = sum(key.size * np.dtype(numpy_type(key)).itemsize for key in keys)
            peers = node.num_workers
            raw *= 2 * (peers - 1) / peers if node.serverless else 1
            self.follower = Follower(choice, ranks, raw, overlaps=not node.sees_results)

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
        if settles or self._ranks.has_measured:
            self._settled = (time.perf_counter(), self._ranks.step) if settles else None
        self._ranks.has_measured = False

    @property
    def _settles(self) -> bool:
        """Where nobody waits for results, what a step takes is known only of several, from when all
        that was begun is over until it is again; else computing would never hide communication."""
        if self.follower.is_trying:
            return self.follower.settles
        return not self._seconds or self._ranks.step % BLOCK_STEPS == 0

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
