"""``plan="auto"`` of a key-value store: which gradients to compress, and how to partition them.

All workers together push gradients of a few sizes over the job's topology, and time them
(:mod:`hipress.autotune.threshold`). They push them uncompressed and compressed, several at once as
in training. Smaller gradients than pay are not compressed; if compression pays at no size, none is.
In the same way the workers find the best size of the partitions of a large gradient, for keys that
are initialized later.

The plan predicts from the measured times. At intervals the workers time one size again, before a
step begins and after all earlier steps have ended. If the time differs by more than MAX_DRIFT they
measure all sizes again, and all use the new plan from this step on. The residual of a gradient that
is not compressed from then on is added to the next gradient.

After the first such check, and after each check that leads to another plan, the plan is tried:
steps of training take turns between the plan, everything compressed, and other choices that are not
predicted to be much slower. The fastest is kept. Codecs that would suffer from such turns are not
tried (:func:`is_harmless`).
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hipress.autotune.steps import FIRST_KEY, StepDetector, are_training_keys
from hipress.autotune.store import StoreReductions, StoreTuner, TunedNode, new_key
from hipress.autotune.threshold import (
    CONCURRENT_ELEMENTS,
    GAIN_RATIO,
    NEVER,
    SIZES,
    SizeFrontend,
    least_size,
    measure_sizes,
)
from hipress.autotune.trial import BLOCK_STEPS, block_steps
from hipress.compression.compressor import Compressor, codecs
from hipress.config import CompressionConfig
from hipress.topology.graph import PARTITION_ELEMENTS

MIN_CONCURRENT = 4
"""Minimum number of gradients of a size that travel together."""
PARTITION_CHOICES = (PARTITION_ELEMENTS, 1 << 16, 1 << 17, 1 << 19)
"""Elements of a partition that are measured, the topologies' default first."""
MAX_PARTITION_SECONDS = 0.125
"""Seconds of the largest gradient above which partitions are not measured. Links are then busy with
any partitions."""
MAX_PARTITIONED_ELEMENTS = 1 << 22
"""Maximum elements of the gradients that are partitioned. It is enough for two partitions for each
worker or server. Otherwise several choices would lead to the same partitions."""
PARTITION_REPETITIONS = 6
"""Repetitions for each choice of partitions, whose times differ less than those of sizes."""
PARTITION_GAIN_RATIO = 0.95
"""Time over the default's time in most repetitions that replaces the default, at most. It must also
be shorter in three repetitions out of four, so that chance does not decide."""
MAX_DRIFT = 1.5
"""Factor by which times may differ from those of the plan."""
PROBE = 2
"""Index of the size that is timed again."""
FIRST_CHECK_STEPS, MAX_CHECK_STEPS = 16, 1024
"""Steps until the first check. The interval doubles, up to the second number, if nothing
changed."""
TRIAL_MIN_SIZES = (0, 256, 4096, NEVER)
"""Values of ``min_size`` that steps of training try in addition to the plan's. They compress
everything, what the measured sizes describe, only gradients whose uncompressed tasks do not run
where they become ready, or nothing."""
MAX_PREDICTED_RATIO = 1.5
"""Predicted time over the fastest choice's above which a choice is not tried."""
MAX_BLOCKS = 8
"""Maximum blocks of each choice in a trial."""
MAX_LOSSES = 2
"""Blocks that a choice may lose against the plan: it must win three out of four."""

_log = logging.getLogger("hipress.autotune")


def is_harmless(codec: str, params: Mapping[str, object]) -> bool:
    """Return whether gradients may be compressed and uncompressed in turns.

    They may not if a codec sends a share of the elements. Such a codec has a ``ratio``, or its
    decoder is not one pass that writes all elements. Its residual holds tens to hundreds of
    gradients, and all of them would be sent with the next uncompressed one. They may not with
    momentum either, because compressed keys then learn several times as fast as uncompressed ones.
    """
    given = {param.name: param.default for param in codecs()[codec].typed_params()}
    given.update(params)
    made = Compressor(codec, **{k: v for k, v in given.items() if v is not None})
    return made.dense and "ratio" not in given and float(given.get("momentum") or 0) == 0


class PlanTrial:
    """A trial of several plans in turns, a block of steps each.

    The first plan is kept unless another is faster in three blocks out of four, and by 3% in the
    median block. A plan that cannot achieve that any more is left out. Every rank that receives the
    same seconds returns the same result.
    """

    def __init__(self, choices: int) -> None:
        self._rivals = list(range(1, choices))
        self._ratios: dict[int, list[float]] = {rival: [] for rival in self._rivals}
        self._blocks = 0
        self._turns = [0, *self._rivals]
        self._seconds: dict[int, float] = {}

    @property
    def over(self) -> bool:
        """Whether enough blocks were run."""
        return not self._rivals or self._blocks >= MAX_BLOCKS

    @property
    def choice(self) -> int:
        """Index of the plan of the next block; at the end, of the plan to keep."""
        if not self.over:
            return self._turns[0]
        fastest = min(self._rivals, key=self.ratio, default=0)
        return fastest if self.ratio(fastest) <= GAIN_RATIO else 0

    def ratio(self, choice: int) -> float:
        """Return a plan's time over the first one's, in the median block."""
        return statistics.median(self._ratios[choice]) if choice > 0 else 1.0

    def add(self, seconds: float) -> None:
        """Add the seconds of the block of :attr:`choice`."""
        self._seconds[self._turns.pop(0)] = seconds
        if self._turns:
            return
        for rival in self._rivals:
            self._ratios[rival].append(self._seconds[rival] / self._seconds[0])
        self._rivals = [
            rival
            for rival in self._rivals
            if sum(ratio >= 1 for ratio in self._ratios[rival]) <= MAX_LOSSES
        ]
        self._blocks += 1
        self._turns = [0, *self._rivals][:: -1 if self._blocks % 2 else 1]


@dataclass(frozen=True)
class TimedGradients:
    """Gradients that are timed together."""

    size: int
    compressed: bool
    partition: int = PARTITION_ELEMENTS


class PlanController(StoreTuner, SizeFrontend):
    """Measures and tries plans between the steps of a node's training.

    ``partition`` sets the elements of a partition for keys that are initialized later. It is None
    if the user has set them.
    """

    option = "plan"

    def __init__(
        self,
        node: TunedNode,
        compress: Callable[[CompressionConfig], None],
        partition: Callable[[int], None] | None,
    ) -> None:
        self._node, self._compress, self._partition = node, compress, partition
        self.rank = node.rank
        self.reductions = StoreReductions(node)
        random = np.random.default_rng(node.rank)
        nodes = max(node.num_workers, node.num_servers)
        wanted = min(2 * nodes * PARTITION_ELEMENTS, MAX_PARTITIONED_ELEMENTS)
        self._large_size = max(SIZES[-1], wanted)
        self._gradient = 0.01 * random.standard_normal(self._large_size, dtype=np.float32)
        self._out = np.empty(max(MIN_CONCURRENT * SIZES[-1], 2 * self._large_size), np.float32)
        self._groups: dict[TimedGradients, Any] = {}
        self._times = np.empty(0)
        self._pushes = StepDetector()
        self._stale = False
        """Whether servers got an optimizer, so that other values are pulled than those measured."""
        self._trial: PlanTrial | None = None
        self._untried = False
        self._block = BLOCK_STEPS
        """Steps that are timed before the next stop."""
        self._began = 0.0
        self.chosen: CompressionConfig | None = None
        """The compression in use."""

    def _set_config(self, config: CompressionConfig) -> None:
        """Set the user's compression and its variants: nothing compressed, and everything."""
        self._config = config
        plain = replace(config, type="none", params={}, entropy=False, min_size=None, pull="auto")
        self._variants = plain, replace(config, min_size=0)

    def decide(self, config: CompressionConfig) -> CompressionConfig:
        """Measure, use the compression that pays, and check it from now on."""
        self._set_config(config)
        self._decide()
        self.watching, self._untried = True, is_harmless(config.type, config.params)
        self._pushes, self._steps, self._trial = StepDetector(), 1, None
        self._stale = False
        self._interval = self._next_stop = FIRST_CHECK_STEPS
        self._block = BLOCK_STEPS
        return self.chosen

    def values_change(self) -> None:
        """Record that servers got an optimizer.

        The weights that are pulled then have other sizes, and are not compressed. All workers
        decide again before their first push. Later the next check detects the difference. One
        worker's call suffices.
        """
        self._stale = True

    def stop(self) -> None:
        """Stop watching and trying."""
        super().stop()
        self._trial = None

    @property
    def trying(self) -> bool:
        """Whether plans are being tried, or will be."""
        return self.watching and (self._trial is not None or self._untried)

    def before_push(self, keys: Sequence[int], settle: Callable[[], None]) -> None:
        """Begin a step with its first push; it may change the choice."""
        if not self.watching or not are_training_keys(keys):
            return
        if not self._pushes.has_begun:
            settle()
            if self.reductions.max(float(self._stale))[0] > 0:  # any worker knows
                self._decide()
            else:
                self._compress(self.chosen)
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

    def _check(self, seconds: float) -> None:
        """Time PROBE again after steps of so many seconds, and decide again if it has changed."""
        now = measure_sizes(self, [SIZES[PROBE]])[:, 0]
        then = self._times[:, PROBE]
        drift = float(np.exp(np.abs(np.log(now / then)).max()))
        # The means have the same bits on all workers, but their logarithms may not.
        drifted = self._from_rank_0(drift > MAX_DRIFT)
        self._interval = FIRST_CHECK_STEPS if drifted else min(2 * self._interval, MAX_CHECK_STEPS)
        self._next_stop = self._steps + self._interval
        before = self.chosen
        if drifted:
            self._decide()
            self._untried = is_harmless(self._config.type, self._config.params)
            if self.rank == 0:
                result = "the plan stays"
                if self.chosen != before:
                    result = f"the plan is now {_brief(self.chosen)}"
                _log.warning(
                    "plan auto: at step %d, a gradient of %d elements takes %.4g s uncompressed "
                    "and %.4g s compressed, not %.4g s and %.4g s as planned with: %s",
                    self._steps,
                    SIZES[PROBE],
                    *now,
                    *then,
                    result,
                )
        else:
            self._compress(before)
        if self._untried:
            self._untried = False
            self._begin_trial(seconds)

    def _begin_trial(self, seconds_of_step: float) -> None:
        """Try all choices that compress other keys than the plan and may be as fast."""
        sizes = [key.size for number, key in self._node.known_keys.items() if number < FIRST_KEY]
        own = self._config.min_size or 0
        distinct: dict[int, int] = {}
        """Choices by the number of keys that they compress."""
        for least in (self._least, *(max(least, own) for least in TRIAL_MIN_SIZES)):
            distinct.setdefault(sum(size >= least for size in sizes), least)
        choices = list(distinct.values())
        raw, compressed = self._curves
        seconds = [sum((compressed if n >= least else raw)(n) for n in sizes) for least in choices]
        limit = MAX_PREDICTED_RATIO * min(seconds)
        near = [i == 0 or s <= limit for i, s in enumerate(seconds)]
        mask = self._from_rank_0(sum(bit << i for i, bit in enumerate(near)))
        self._choices = [least for i, least in enumerate(choices) if mask >> i & 1]
        if len(self._choices) > 1:
            self._trial = PlanTrial(len(self._choices))
            self._block = self._from_rank_0(block_steps(seconds_of_step))
        self._use(self._least)
        self._next_stop = self._steps + (1 + self._block if self._trial else self._interval)

    def _end_block(self, trial: PlanTrial, seconds: float) -> None:
        """Add the seconds of all workers' last steps, and use the next choice."""
        trial.add(float(self.reductions.mean(np.array([seconds]))[0]))
        self._use(self._choices[trial.choice])
        if trial.over:
            if self.rank == 0:
                result = "the plan stays"
                if trial.choice > 0:
                    ratio = trial.ratio(trial.choice)
                    result = f"{_brief(self.chosen)}, in {ratio:.2f} of the plan's time"
                _log.info("plan auto: at step %d, steps were tried: %s", self._steps, result)
            self._trial, self._block = None, BLOCK_STEPS
        self._next_stop = self._steps + (self._interval if trial.over else 1 + self._block)

    def _use(self, least: int) -> None:
        """Compress gradients of ``least`` elements and more."""
        plain = self._variants[0]
        self.chosen = plain if least == NEVER else replace(self._config, min_size=least)
        self._compress(self.chosen)

    def _decide(self) -> None:
        self._times = measure_sizes(self, SIZES)
        least, self._curves = least_size(self, self._times, self._config.type)
        if self._partition is not None:
            self._choose_partition(compressed=least <= SIZES[-1])
        self._least = max(least, self._config.min_size or 0)
        self._use(self._least)

    def _choose_partition(self, compressed: bool) -> None:
        """Set the elements of a partition that is the fastest by PARTITION_GAIN_RATIO."""
        best = PARTITION_ELEMENTS
        if self._from_rank_0(self._times[int(compressed), -1] < MAX_PARTITION_SECONDS):
            cases = [TimedGradients(self._large_size, compressed, c) for c in PARTITION_CHOICES]
            seconds = [
                [self._seconds(case) for case in cases] for _ in range(PARTITION_REPETITIONS)
            ]
            ratios = np.array(seconds[1:])
            ratios = np.log(ratios / ratios[:, :1])
            found = np.concatenate([np.median(ratios, axis=0), np.quantile(ratios, 0.75, axis=0)])
            usual, bad = np.exp(self.reductions.mean(found)).reshape(2, -1)
            gains = np.where((usual <= PARTITION_GAIN_RATIO) & (bad < 1), usual, 1.0)
            best = self._from_rank_0(PARTITION_CHOICES[int(np.argmin(gains))])
        if self.rank == 0:
            _log.info("plan auto: gradients are cut into parts of about %d elements", best)
        self._partition(best)

    def _from_rank_0(self, number: float) -> int:
        return self.reductions.from_rank_0(self.rank, int(number))

    def time_size(self, size: int, compressed: bool) -> float:
        """Return the seconds of gradients of one size."""
        return self._seconds(TimedGradients(size, compressed))

    def _seconds(self, case: TimedGradients) -> float:
        node, size = self._node, case.size
        self._compress(self._variants[case.compressed])
        if case not in self._groups:
            if self._partition is not None:
                self._partition(case.partition)
            least = MIN_CONCURRENT if size <= SIZES[-1] else 2
            count = max(least, CONCURRENT_ELEMENTS // size)
            keys = [new_key(node, np.float32, size, compress=True) for _ in range(count)]
            outs = [self._out[i * size : (i + 1) * size] for i in range(count)]
            self._groups[case] = node.group(keys, [self._gradient[:size]] * count, outs)
        node.barrier()
        start = time.perf_counter()
        self._groups[case].pushpull().wait()
        return (time.perf_counter() - start) / len(self._groups[case].keys)


def _brief(config: CompressionConfig) -> str:
    if config.type == "none":
        return "to compress nothing"
    return f"{config.type} from {config.min_size} elements on"
