"""``plan: 'auto'`` of a key-value store: a job finds out what to compress and how to cut it.

All workers together push gradients of a few sizes over the job's own topology, uncompressed and
compressed, several at once as in training (small ones in shared messages), and time them
(:mod:`hipress.secopa.tuner`). A gradient of fewer elements than pay goes uncompressed; if
compression pays at no size, nothing is compressed. In the same way they find how large the
partitions of a large gradient should be; that holds for keys that are initialised later.

The measured times are what the plan predicts from. Every so many steps the workers, before the
step begins and when all before it is over, time one size again. Where that differs by more than
MAX_DRIFT they measure all anew, and the answer holds from this step on, on all of them. Whoever
keeps a residual for a gradient that goes uncompressed from now on adds it to the next one.

After the first such check, and after each that makes another plan, the plan is tried: steps of
training are run with it, with everything compressed, and with other choices that are not predicted
to be much slower, in turns, and the fastest is kept (:mod:`hipress.secopa.trial`). Codecs that such
turns would harm are not tried (:func:`hipress.secopa.trial.is_harmless`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from hipress.casync.graph import PARTITION_ELEMENTS
from hipress.secopa.steps import MEASURING, Steps
from hipress.secopa.trial import BLOCK_STEPS, Trial, block_steps, is_harmless
from hipress.secopa.tuner import CONCURRENT_ELEMENTS, NEVER, SIZES, least_size, measure

MIN_CONCURRENT = 4
"""Gradients of a size that are under way together, at least."""
PARTITION_CHOICES = (PARTITION_ELEMENTS, 1 << 16, 1 << 17, 1 << 19)
"""Elements of a partition that are tried, the topologies' own first."""
MAX_CUT_SECONDS = 0.125
"""Seconds of a gradient of the largest size above which links are busy however it is cut: nothing
is tried."""
MAX_CUT_ELEMENTS = 1 << 22
"""Elements, at most, of the gradients that are cut up: enough for two partitions for each worker or
server, or several choices would come to the same cut."""
CUT_ROUNDS = 6
"""Times that each cut is timed, as ROUNDS for sizes: cuts differ by less."""
CUT_GAIN_RATIO = 0.95
"""The part of the own cut's time that another one may take in most rounds, to replace it; and it
must gain something in three out of four: chance must not decide."""
MAX_DRIFT = 1.5
"""The factor by which times may differ from those that the plan was made from."""
PROBE = 2
"""Index of the size that is timed again."""
FIRST_CHECK_STEPS, MAX_CHECK_STEPS = 16, 1024
"""Steps until it is, the first time; twice as many, up to the latter, if nothing has changed."""
TRIAL_MIN_SIZES = (0, 256, 4096, NEVER)
"""Elements from which on compression is tried in steps of training, beside what was planned: all;
all that the measured sizes speak of; all whose uncompressed tasks are not run where they become
ready."""
MAX_PREDICTED_RATIO = 1.5
"""The multiple of the fastest one's predicted time above which a choice is not tried."""
FIRST_KEY = 1 << 62
"""Keys from here on are these; front ends count theirs from 0."""

_log = logging.getLogger("hipress.secopa")


class Key(Protocol):
    """What a node knows of a key whose gradients are pushed."""

    size: int


class Store(Protocol):
    """The node whose keys a plan measures."""

    rank: int
    num_workers: int
    num_servers: int
    known_keys: Mapping[int, Key]

    def init_array(self, key: int, value: np.ndarray, name: str) -> object: ...

    def group(
        self, keys: Sequence[int], gradients: Sequence[np.ndarray], outs: Sequence[np.ndarray]
    ) -> Any: ...

    def pushpull(self, key: int, gradient: np.ndarray) -> Any: ...

    def barrier(self) -> None: ...


class Compression(Protocol):
    """The fields of :class:`hipress.CompressionConfig` that a plan reads or replaces."""

    type: str
    params: Mapping[str, object]
    min_size: int | None


@dataclass(frozen=True)
class Case:
    """Gradients that are timed."""

    size: int
    compressed: bool
    partition: int = PARTITION_ELEMENTS

    def __str__(self) -> str:
        return f"{self.size}/{'y' if self.compressed else 'n'}/{self.partition}"


class AutoPlan:
    """Measures between the steps of a node's training; every method is collective.

    :param compress: sets the compression
    :param cut: sets the elements of a partition, for keys that are initialised later
    """

    def __init__(
        self,
        node: Store,
        compress: Callable[[Compression], None],
        cut: Callable[[int], None] | None,
    ) -> None:
        self._node = node
        self.rank = node.rank
        self._compress = compress
        self._cut = cut
        random = np.random.default_rng(node.rank)
        nodes = max(node.num_workers, node.num_servers)
        self._cut_size = max(SIZES[-1], min(2 * nodes * PARTITION_ELEMENTS, MAX_CUT_ELEMENTS))
        self._gradient = 0.01 * random.standard_normal(self._cut_size, dtype=np.float32)
        self._out = np.empty(max(MIN_CONCURRENT * SIZES[-1], 2 * self._cut_size), np.float32)
        self._groups: dict[Case, Any] = {}
        self._next_key = FIRST_KEY
        self._agreement_key = self._new_key(2 * len(SIZES), "agreement")
        self._times = np.empty(0)
        self._watching = False
        self._pushes = Steps()
        self._stale = False  # the first plan is of another kind of values
        self._trial: Trial | None = None
        self._block = BLOCK_STEPS  # steps that are timed before the next stop
        self._began = 0.0
        self.chosen: Compression | None = None
        """The compression in force."""

    def _new_key(self, size: int, name: str) -> int:
        key, self._next_key = self._next_key, self._next_key + 1
        self._node.init_array(key, np.zeros(size, np.float32), f"{MEASURING}{name}")
        return key

    def _take(self, config: Compression) -> None:
        """Takes over the user's choice, and its variants: nothing compressed, and everything."""
        self._config = config
        plain = replace(config, type="none", params={}, entropy=False, min_size=None, pull="auto")
        self._variants = plain, replace(config, min_size=0)

    def decide(self, config: Compression) -> Compression:
        """Measures, sets the compression that pays, and watches over it from now on.

        Returns it: ``config`` with the min_size that pays, or type none.

        :raises HipressError: if a node fails meanwhile
        """
        self._take(config)
        self._decide()
        self._watching, self._untried = True, is_harmless(config.type, config.params)
        self._pushes, self._steps, self._trial = Steps(), 1, None
        self._stale = False
        self._interval = self._next_stop = FIRST_CHECK_STEPS
        self._block = BLOCK_STEPS
        return self.chosen

    def values_change(self) -> None:
        """Notes that servers got an optimizer, so that weights are pulled: other bytes, and never
        compressed.

        All workers then decide again before they push their first gradient, if that is still to
        come; later, the next check finds out. It is enough that one worker has called this.
        """
        self._stale = True

    def stop(self) -> None:
        """Does not watch any more."""
        self._watching = False
        self._trial = None

    @property
    def watching(self) -> bool:
        """Whether the plan is in force."""
        return self._watching

    @property
    def trying(self) -> bool:
        """Whether choices are being tried, or still are to be."""
        return self._watching and (self._trial is not None or self._untried)

    def before_push(self, keys: Sequence[int], settle: Callable[[], None]) -> None:
        """Checks the plan if a step begins with this push of ``keys`` and it is time to.

        :param settle: blocks until all that this worker has pushed and pulled is over
        """
        if not self._watching or not keys or keys[0] >= FIRST_KEY:
            return
        if not self._pushes.has_begun:
            settle()
            self._renew()
        if not self._pushes.begins(keys):
            return
        if self._steps >= self._next_stop:
            settle()
            seconds = time.perf_counter() - self._began
            if self._trial is None:
                self._check(seconds / self._block)
            else:
                self._end_block(self._trial, seconds)
        elif self._steps == self._next_stop - self._block:
            self._began = time.perf_counter()
        self._steps += 1

    def _renew(self) -> None:
        """Decides again if any worker knows that the plan is stale."""
        if self._sum(np.array([float(self._stale)]))[0] > 0:
            self._decide()
        else:
            self._compress(self.chosen)

    def _check(self, seconds: float) -> None:
        """Times PROBE again, and plans anew if that has changed; a step takes ``seconds``."""
        now = measure(self, [SIZES[PROBE]])[:, 0]
        then = self._times[:, PROBE]
        drift = float(np.exp(np.abs(np.log(now / then)).max()))
        # The sum has the same bits on all workers, but their logarithms may not: worker 0 decides.
        drifted = self.from_worker_0(drift > MAX_DRIFT)
        self._interval = FIRST_CHECK_STEPS if drifted else min(2 * self._interval, MAX_CHECK_STEPS)
        self._next_stop = self._steps + self._interval
        before = self.chosen
        if drifted:
            self._decide()
            self._untried = is_harmless(self._config.type, self._config.params)
            if self.rank == 0:
                _log.warning(
                    "plan auto: at step %d, a gradient of %d elements takes %.4g s uncompressed "
                    "and %.4g s compressed, not %.4g s and %.4g s as planned with: %s",
                    self._steps, SIZES[PROBE], *now, *then,
                    "the plan stays" if self.chosen == before
                    else f"the plan is now {_brief(self.chosen)}",
                )  # fmt: skip
        else:
            self._compress(before)
        if self._untried:
            self._untried = False
            self._begin_trial(seconds)

    def _begin_trial(self, seconds_of_step: float) -> None:
        """Tries all that compresses other keys than the plan and may be as fast."""
        sizes = [key.size for number, key in self._node.known_keys.items() if number < FIRST_KEY]
        own = self._config.min_size or 0
        distinct: dict[int, int] = {}  # by how many keys they compress
        for least in (self._least, *(max(least, own) for least in TRIAL_MIN_SIZES)):
            distinct.setdefault(sum(size >= least for size in sizes), least)
        choices = list(distinct.values())
        raw, compressed = self._curves
        seconds = [sum((compressed if n >= least else raw)(n) for n in sizes) for least in choices]
        limit = MAX_PREDICTED_RATIO * min(seconds)
        near = [i == 0 or s <= limit for i, s in enumerate(seconds)]
        mask = self.from_worker_0(sum(bit << i for i, bit in enumerate(near)))
        self._choices = [least for i, least in enumerate(choices) if mask >> i & 1]
        if len(self._choices) > 1:
            self._trial = Trial(len(self._choices))
            self._block = self.from_worker_0(block_steps(seconds_of_step))
        self._use(self._least)
        self._next_stop = self._steps + (1 + self._block if self._trial else self._interval)

    def _end_block(self, trial: Trial, seconds: float) -> None:
        """Takes the seconds of all workers' last steps; the next choice takes its turn."""
        trial.add(float(self._sum(np.array([seconds]))[0]))
        self._use(self._choices[trial.choice])
        if trial.over:
            if self.rank == 0:
                _log.info(
                    "plan auto: at step %d, steps were tried: %s", self._steps,
                    f"{_brief(self.chosen)}, in {trial.ratio(trial.choice):.2f} of the plan's time"
                    if trial.choice > 0 else "the plan stays",
                )  # fmt: skip
            self._trial, self._block = None, BLOCK_STEPS
        self._next_stop = self._steps + (self._interval if trial.over else 1 + self._block)

    def _use(self, least: int) -> None:
        """Compresses gradients of ``least`` elements and more."""
        plain = self._variants[0]
        self.chosen = plain if least == NEVER else replace(self._config, min_size=least)
        self._compress(self.chosen)

    def _decide(self) -> None:
        self._times = measure(self, SIZES)
        least, self._curves = least_size(self, self._times, self._config.type)
        if self._cut is not None:
            self._choose_partition(compressed=least <= SIZES[-1])
        self._least = max(least, self._config.min_size or 0)
        self._use(self._least)

    def _choose_partition(self, compressed: bool) -> None:
        """Sets the elements of a partition that is fastest, if it is by CUT_GAIN_RATIO."""
        best = PARTITION_ELEMENTS
        if self.from_worker_0(self._times[int(compressed), -1] < MAX_CUT_SECONDS):
            cases = [Case(self._cut_size, compressed, choice) for choice in PARTITION_CHOICES]
            rounds = [[self._seconds(case) for case in cases] for _ in range(CUT_ROUNDS)]
            ratios = np.array(rounds[1:])
            ratios = np.log(ratios / ratios[:, :1])
            found = np.concatenate([np.median(ratios, axis=0), np.quantile(ratios, 0.75, axis=0)])
            usual, bad = np.exp(self.mean(found)).reshape(2, -1)
            gains = np.where((usual <= CUT_GAIN_RATIO) & (bad < 1), usual, 1.0)
            best = self.from_worker_0(PARTITION_CHOICES[int(np.argmin(gains))])
        if self.rank == 0:
            _log.info("plan auto: gradients are cut into parts of about %d elements", best)
        self._cut(best)

    # What a Meter has.

    def seconds(self, size: int, compressed: bool) -> float:
        """Seconds of one of several gradients that are pushed and pulled together."""
        return self._seconds(Case(size, compressed))

    def _seconds(self, case: Case) -> float:
        node, size = self._node, case.size
        self._compress(self._variants[case.compressed])
        if case not in self._groups:
            if self._cut is not None:
                self._cut(case.partition)
            count = max(MIN_CONCURRENT if size <= SIZES[-1] else 2, CONCURRENT_ELEMENTS // size)
            keys = [self._new_key(size, f"{case}/{i}") for i in range(count)]
            outs = [self._out[i * size : (i + 1) * size] for i in range(count)]
            self._groups[case] = node.group(keys, [self._gradient[:size]] * count, outs)
        node.barrier()
        start = time.perf_counter()
        self._groups[case].pushpull().wait()
        return (time.perf_counter() - start) / len(self._groups[case].keys)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        """The sum over all workers: the same bits on each. Nothing is compressed from now on."""
        self._compress(self._variants[0])
        array = np.zeros(2 * len(SIZES), np.float32)
        array[: values.size] = values
        self._node.pushpull(self._agreement_key, array).wait()
        return array[: values.size]

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over all workers of up to ten values, with the same bits on each."""
        return self._sum(values) / self._node.num_workers

    def from_worker_0(self, number: int) -> int:
        """Worker 0's, on all: a small number, or a power of two times one; exact as float32."""
        return int(self._sum(np.array([number if self.rank == 0 else 0]))[0])


def _brief(config: Compression) -> str:
    if config.type == "none":
        return "to compress nothing"
    return f"{config.type} from {config.min_size} elements on"
