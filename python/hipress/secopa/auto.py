"""``plan: 'auto'``: a job finds out by itself what to compress and how to cut it.

All workers together push gradients of a few sizes over the job's own topology, uncompressed and
compressed, several at once as in training (small ones in shared messages), and time them. They add
up what they measured (the logarithms, so that no slow worker outweighs the others), worker 0 fits a
curve to each and finds the least size at which compression is faster; all take its answer. A
gradient of fewer elements goes uncompressed. If compression pays at no size, nothing is compressed.
In the same way they find how large the parts of a large gradient should be; that holds for keys
that are initialised later.

The measured times are what the plan predicts from. Every so many steps the workers, before the
step begins and when all before it is over, time one size again. Where that differs by more than
DRIFT they measure all anew, and the answer holds from this step on, on all of them. Whoever keeps a
residual for a gradient that goes uncompressed from now on adds it to the next one.

After the first such check, and after each that makes another plan, the plan is tried: steps of
training are run with it, with everything compressed, and with other choices that are not predicted
to be much slower, in turns, and the fastest is kept (:mod:`hipress.secopa.trial`). Codecs that such
turns would harm are not tried (:func:`hipress.secopa.trial.harmless`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hipress.casync.graph import PARTITION_ELEMENTS
from hipress.secopa.curve import Curve, fit
from hipress.secopa.trial import BLOCK, GAIN, Trial, block_of, harmless


class Pending(Protocol):
    """A push or pull under way."""

    def wait(self) -> None: ...


class Group(Protocol):
    """Keys that are pushed and pulled in one call."""

    keys: tuple[int, ...]

    def pushpull(self) -> Pending: ...


class Store(Protocol):
    """What a plan needs of the node whose keys it measures."""

    rank: int
    num_workers: int
    num_servers: int
    sizes: dict[int, int]

    def init_array(self, key: int, value: np.ndarray, name: str) -> object: ...

    def group(
        self, keys: Sequence[int], gradients: Sequence[np.ndarray], outs: Sequence[np.ndarray]
    ) -> Group: ...

    def pushpull(self, key: int, gradient: np.ndarray) -> Pending: ...

    def barrier(self) -> None: ...


SIZES = (1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20)
"""Elements of the gradients that are timed."""
AT_ONCE = 4
TOGETHER = 1 << 17
"""Gradients of a size under way together: so many at least, and so many elements in all. Small ones
share a link with others in training; one alone would pass in a burst."""
ROUNDS = 4
"""Times that each is pushed, in turns; the first does not count, the least of the others does."""
LARGEST = 1 << 30
"""Elements up to which the curves are compared."""
PARTS = (1 << 16, 1 << 17, 1 << 19)
"""Elements of a part that are tried beside the topology's own, 1 << 18."""
PARTS_SECONDS = 0.125
"""Where a gradient of the largest of SIZES takes longer, links are busy however it is cut: nothing
is tried."""
PARTS_SIZE = 1 << 22
"""Elements, at most, of the gradients that are cut up: enough for two parts for each worker or
server, or several sizes of parts would come to the same cut."""
PARTS_ROUNDS = 6
"""As ROUNDS, for cuts, which differ by less."""
CLEARLY = 0.95
"""Another cut must take at most this part of the own one's time in most rounds, and gain something
in three out of four: chance must not decide."""
DRIFT = 1.5
"""Times may differ by this factor from those that the plan was made from."""
PROBE = 2
"""Which of SIZES is timed again."""
FIRST_CHECK, LAST_CHECK = 16, 1024
"""Steps until it is, the first time; twice as many, up to the latter, if nothing has changed."""
NEVER = 1 << 62
"""A min_size that no gradient reaches: nothing is compressed."""
TRIED = (0, 256, 4096, NEVER)
"""Elements from which on compression is tried in steps of training, beside what was planned: all;
all that the measured sizes speak of; all whose raw tasks are not run where they become ready."""
NEAR = 1.5
"""What is predicted to take longer than this many times the fastest is not tried."""
FIRST_KEY = 1 << 62
"""Keys from here on are these; front ends count theirs from 0."""

_log = logging.getLogger("hipress.secopa")


def threshold(raw: Curve, compressed: Curve) -> int | None:
    """The least size (a power of two times 1, 1.25, 1.5 or 1.75) from which on compression gains.

    None if it gains at no size, or no longer at the largest.
    """
    sizes = [int((4 + q) * (1 << e) / 4) for e in range(8, LARGEST.bit_length()) for q in range(4)]
    least = None
    for size in reversed(sizes):
        if compressed(size) > GAIN * raw(size):
            break
        least = size
    return least


@dataclass(frozen=True)
class Case:
    """Gradients that are timed."""

    size: int
    compressed: bool
    parts: int = PARTITION_ELEMENTS

    def __str__(self) -> str:
        return f"{self.size}/{'y' if self.compressed else 'n'}/{self.parts}"


class AutoPlan:
    """Measures between the steps of a node's training; every method is collective.

    :param compress: sets compression parameters
    :param cut: sets the elements of a part, for keys that are initialised later
    """

    def __init__(
        self,
        node: Store,
        compress: Callable[[dict[str, object]], None],
        cut: Callable[[int], None] | None,
    ) -> None:
        self._node = node
        self._compress = compress
        self._cut = cut
        random = np.random.default_rng(node.rank)
        nodes = max(node.num_workers, node.num_servers)
        self._parts_size = max(SIZES[-1], min(2 * nodes * PARTITION_ELEMENTS, PARTS_SIZE))
        self._gradient = 0.01 * random.standard_normal(self._parts_size, dtype=np.float32)
        self._out = np.empty(max(AT_ONCE * SIZES[-1], 2 * self._parts_size), np.float32)
        self._groups: dict[Case, Group] = {}
        self._next = FIRST_KEY
        self._talk = self._new(2 * len(SIZES), "agreement")
        self._wish: dict[str, object] = {}
        self._times = np.empty(0)
        self._watching = False
        self._mark: int | None = None  # with this key's push a step begins
        self._seen: set[int] = set()  # keys that were pushed, until one is again
        self._stale = False  # the first plan is of another kind of values
        self._trial: Trial | None = None
        self._block = BLOCK  # steps that are timed before the next stop
        self._began = 0.0
        self.chosen: dict[str, object] = {}
        """The compression parameters in force."""

    def _new(self, size: int, name: str) -> int:
        key, self._next = self._next, self._next + 1
        self._node.init_array(key, np.zeros(size, np.float32), f"hipress/auto/{name}")
        return key

    def decide(self, params: Mapping[str, object]) -> dict[str, object]:
        """Measures, sets the parameters that pay, and watches over them from now on.

        Returns them: ``params`` with the min_size that pays, or type none.

        :raises HipressError: if a node fails meanwhile
        """
        self._wish = dict(params)
        self._decide()
        self._watching, self._untried = True, harmless(self._wish)
        self._mark, self._seen, self._steps, self._trial = None, set(), 0, None
        self._stale = False
        self._interval = self._next_stop = FIRST_CHECK
        self._block = BLOCK
        return self.chosen

    def values_change(self) -> None:
        """Servers got an optimizer, so weights are pulled: other bytes, and never compressed.

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
        """Whether plans are being tried, or still are to be."""
        return self._watching and (self._trial is not None or self._untried)

    def before_push(self, keys: Sequence[int], settle: Callable[[], None]) -> None:
        """Checks the plan if a step begins with this push of ``keys`` and it is time to.

        :param settle: blocks until all that this worker has pushed and pulled is over
        """
        if not self._watching or not keys or keys[0] >= FIRST_KEY:
            return
        if not self._seen:
            settle()
            self._renew()
        if self._mark is None:
            self._mark = next((key for key in keys if key in self._seen), None)
            self._seen.update(keys)
            self._steps = 1  # the first step is over once a key comes again
        if self._mark not in keys:
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
        now = self._timed([Case(SIZES[PROBE], compressed) for compressed in (False, True)])
        then = self._times[:, PROBE]
        drift = float(np.exp(np.abs(np.log(now / then)).max()))
        # The sum has the same bits on all workers, but their logarithms may not: worker 0 decides.
        drifted = self._from_worker_0(drift > DRIFT)
        self._interval = FIRST_CHECK if drifted else min(2 * self._interval, LAST_CHECK)
        self._next_stop = self._steps + self._interval
        before = self.chosen
        if drifted:
            self._decide()
            self._untried = harmless(self._wish)
            if self._node.rank == 0:
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
        sizes = [size for key, size in self._node.sizes.items() if key < FIRST_KEY]
        own = int(self._wish.get("min_size", 0))
        distinct: dict[int, int] = {}  # by how many keys they compress
        for least in (self._least, *(max(least, own) for least in TRIED)):
            distinct.setdefault(sum(size >= least for size in sizes), least)
        plans = list(distinct.values())
        raw, compressed = self._curves
        seconds = [sum((compressed if n >= p else raw)(n) for n in sizes) for p in plans]
        near = [i == 0 or s <= NEAR * min(seconds) for i, s in enumerate(seconds)]
        mask = self._from_worker_0(sum(bit << i for i, bit in enumerate(near)))
        self._plans = [plan for i, plan in enumerate(plans) if mask >> i & 1]
        if len(self._plans) > 1:
            self._trial = Trial(len(self._plans))
            self._block = self._from_worker_0(block_of(seconds_of_step))
        self._use(self._least)
        self._next_stop = self._steps + (1 + self._block if self._trial else self._interval)

    def _end_block(self, trial: Trial, seconds: float) -> None:
        """Takes what all workers' last steps took, and goes on with the plan whose turn it is."""
        trial.add(float(self._sum(np.array([seconds]))[0]))
        self._use(self._plans[trial.plan])
        if trial.over:
            if self._node.rank == 0:
                _log.info(
                    "plan auto: at step %d, steps were tried: %s", self._steps,
                    f"{_brief(self.chosen)}, in {trial.ratio(trial.plan):.2f} of the plan's time"
                    if trial.plan > 0 else "the plan stays",
                )  # fmt: skip
            self._trial, self._block = None, BLOCK
        self._next_stop = self._steps + (self._interval if trial.over else 1 + self._block)

    def _variants(self) -> tuple[dict[str, object], dict[str, object]]:
        return {"type": "none", **_travel(self._wish)}, {**self._wish, "min_size": 0}

    def _use(self, least: int) -> None:
        """From ``least`` elements on, gradients are compressed."""
        self.chosen = self._variants()[0] if least == NEVER else {**self._wish, "min_size": least}
        self._compress(self.chosen)

    def _decide(self) -> None:
        wish = self._wish
        cases = [[Case(size, compressed) for compressed in (False, True)] for size in SIZES]
        self._times = np.array([self._timed(pair) for pair in cases]).T
        self._curves = [fit(SIZES, row).curve for row in self._times]
        least = 0
        if self._node.rank == 0:
            least = threshold(*self._curves) or NEVER
        least = self._from_worker_0(least)  # another machine's arithmetic may round otherwise
        if self._node.rank == 0 and least == NEVER:
            _log.warning(
                "plan auto: compression with %s gains nothing here: nothing is compressed",
                wish.get("type"),
            )
        elif self._node.rank == 0:
            _log.info("plan auto: %s pays from %d elements on", wish.get("type"), least)
        if self._cut is not None:
            self._choose_parts(compressed=least <= SIZES[-1])
        self._least = max(least, int(wish.get("min_size", 0)))
        self._use(self._least)

    def _choose_parts(self, compressed: bool) -> None:
        """Sets the elements of a part that is fastest, if it clearly is."""
        best = PARTITION_ELEMENTS
        if self._from_worker_0(self._times[int(compressed), -1] < PARTS_SECONDS):
            choices = (PARTITION_ELEMENTS, *PARTS)
            cases = [Case(self._parts_size, compressed, parts) for parts in choices]
            ratios = self._rounds(cases, PARTS_ROUNDS)
            ratios = np.log(ratios / ratios[:, :1])
            found = np.concatenate([np.median(ratios, axis=0), np.quantile(ratios, 0.75, axis=0)])
            usual, bad = np.exp(self._sum(found) / self._node.num_workers).reshape(2, -1)
            gains = np.where((usual <= CLEARLY) & (bad < 1), usual, 1.0)
            best = self._from_worker_0(choices[int(np.argmin(gains))])
        if self._node.rank == 0:
            _log.info("plan auto: gradients are cut into parts of about %d elements", best)
        self._cut(best)

    def _timed(self, cases: Sequence[Case]) -> np.ndarray:
        """The workers' geometric means of each case's least seconds."""
        least = np.min(self._rounds(cases, ROUNDS), axis=0)
        return np.exp(self._sum(np.log(least)) / self._node.num_workers)

    def _rounds(self, cases: Sequence[Case], rounds: int) -> np.ndarray:
        """This worker's seconds: a row a round, but for the first, a column a case.

        Cases take turns, so that what slows the machine down for a while slows all of them down.
        """
        found = [[self._seconds(case) for case in cases] for _ in range(rounds)]
        return np.array(found[1:], np.float64)

    def _seconds(self, case: Case) -> float:
        """Of one round, for each of the gradients."""
        node, size = self._node, case.size
        self._compress(self._variants()[case.compressed])
        if case not in self._groups:
            if self._cut is not None:
                self._cut(case.parts)
            count = max(AT_ONCE if size <= SIZES[-1] else 2, TOGETHER // size)
            keys = [self._new(size, f"{case}/{i}") for i in range(count)]
            outs = [self._out[i * size : (i + 1) * size] for i in range(count)]
            self._groups[case] = node.group(keys, [self._gradient[:size]] * count, outs)
        node.barrier()
        start = time.perf_counter()
        self._groups[case].pushpull().wait()
        return (time.perf_counter() - start) / len(self._groups[case].keys)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        """The sum over all workers: the same bits on each. Nothing is compressed from now on."""
        self._compress(self._variants()[0])
        array = np.zeros(2 * len(SIZES), np.float32)
        array[: values.size] = values
        self._node.pushpull(self._talk, array).wait()
        return array[: values.size]

    def _from_worker_0(self, number: int) -> int:
        """Worker 0's, on all: a small number, or a power of two times one; exact as float32."""
        return int(self._sum(np.array([number if self._node.rank == 0 else 0]))[0])


def _brief(params: Mapping[str, object]) -> str:
    if params.get("type") == "none":
        return "to compress nothing"
    return f"{params.get('type')} from {params['min_size']} elements on"


def _travel(params: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in params.items() if k in ("topology", "devices_per_host")}
