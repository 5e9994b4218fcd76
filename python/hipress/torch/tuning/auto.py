"""``plan="auto"`` of a process group: the ranks find out from which size on compression pays.

Before the first step, all ranks together synchronise gradients of a few sizes, uncompressed and
compressed, several in a bucket (:mod:`hipress.secopa.tuner`). What these take does not say what all
of a model's gradients take together. So the ranks then synchronise gradients of the model's sizes,
in buckets like DDP's, compressed as was planned and uncompressed, in turns; where uncompressed ones
are faster after all, nothing is compressed. The slowest rank's seconds count, as in training. Their
maximum has the same bits on all ranks of a group (with hybrid sharding: those that share a shard).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist

from hipress.checked import typed
from hipress.secopa.steps import MEASURING
from hipress.secopa.trial import preview
from hipress.secopa.tuner import CONCURRENT_ELEMENTS, NEVER, SIZES, least_size, measure
from hipress.torch import exchange
from hipress.torch.dtypes import FLAGS, floats
from hipress.torch.executors.collectives import ReduceScatter
from hipress.torch.executors.engine import Engine
from hipress.torch.gradient import Gradient, chunk_of, packed, scattered
from hipress.torch.settings import AUTO, Settings
from hipress.torch.synchronizer import Synchronizer
from hipress.torch.tuning.numbers import GroupNumbers, Numbers, maxima

MIN_CONCURRENT = 2
"""Gradients in a bucket, at least."""
BUCKET_ELEMENTS = 25 << 18
"""Elements of a bucket, about: DDP's 25 MiB of float32."""
MAX_ELEMENTS = 1 << 23
"""Elements in all, about: of a larger model every second (third, ...) gradient in order of size is
synchronised, and one larger than this as if it had this many."""

_log = logging.getLogger("hipress")
Shape = tuple[int, ...]


class Ranks:
    """The ranks of a group, which synchronise gradients together; a tuner's Meter.

    :param device, dtype: of the gradients
    :param scatters: whether they reduce-scatter them, as FSDP2 does
    :param numbers: compares numbers; default: the group, where the gradients are
    """

    def __init__(
        self, settings: Settings, engine: Engine, group: dist.ProcessGroup, device: torch.device,
        dtype: torch.dtype, scatters: bool = False, numbers: Numbers | None = None,
    ) -> None:  # fmt: skip
        self.scatters = scatters
        self.numbers = numbers or GroupNumbers(engine, group, device)
        self.engine, self.group, self.device, self.dtype = engine, group, device, dtype
        self.rank = engine.rank
        self.kinds = replace(settings, min_size=NEVER), settings
        """Settings that compress nothing, and all."""
        self._steps: dict[tuple[int, bool], Step] = {}

    def seconds(self, size: int, compressed: bool) -> float:
        """Seconds of one of several gradients in a bucket."""
        count = max(MIN_CONCURRENT, CONCURRENT_ELEMENTS // size)
        if (size, compressed) not in self._steps:
            self._steps = {  # of one size at a time, for memory's sake
                (size, kind): Step(self.kinds[kind], [[(size,)] * count], self)
                for kind in (False, True)
            }
        return self._steps[size, compressed].seconds() / count

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over all ranks, with the same bits on each."""
        return self.numbers.mean(values)

    def slowest(self, seconds: float) -> float:
        """The maximum over all ranks."""
        return maxima(self.numbers, seconds)[0]

    def from_worker_0(self, number: int) -> int:
        """The first rank's number, on all."""
        return exchange.broadcast(
            self.group, int(number), "numbers", lambda found: typed(found, int, "number")
        )


def named(bucket: int, shapes: Sequence[Shape]) -> dict[str, Shape]:
    """Shapes of a bucket's gradients, by the names that they have while they are measured."""
    return {f"{MEASURING}{bucket}/{i}": shape for i, shape in enumerate(shapes)}


class Step:
    """A step's gradients, which are synchronised again and again.

    :param buckets: shapes of the gradients in each
    """

    def __init__(
        self, settings: Settings, buckets: Sequence[Sequence[Shape]], ranks: Ranks
    ) -> None:
        self.settings, self._ranks = settings, ranks
        self.elements = sum(math.prod(shape) for bucket in buckets for shape in bucket)
        self._gradients: list[list[Gradient]] = []
        self._values: list[torch.Tensor] = []
        every = []
        generator = torch.Generator("cpu").manual_seed(ranks.rank)
        for b, shapes in enumerate(buckets):
            shaped = named(b, shapes)
            gradients, size = self._laid_out(shaped)
            self._gradients.append(gradients)
            values = 0.01 * floats(size).normal_(generator=generator)
            self._values.append(values.to(ranks.device, ranks.dtype))
            every += [(name, torch.empty(s, device="meta")) for name, s in shaped.items()]
        engine, collective = ranks.engine, None
        if ranks.scatters:
            names = [name for name, _ in every]
            collective = ReduceScatter(settings, ranks.group, engine.world_size, names)
        self._synchronizer = Synchronizer(
            settings, engine, ranks.group, every, collective=collective
        )

    def _laid_out(self, shapes: Mapping[str, Shape]) -> tuple[list[Gradient], int]:
        """The gradients of a bucket in a flat tensor, and the elements of that."""
        if not self._ranks.scatters:
            gradients = packed((name, math.prod(shape)) for name, shape in shapes.items())
            return gradients, sum(g.count for g in gradients)
        peers = self._ranks.engine.world_size
        return scattered(shapes, peers), peers * sum(chunk_of(s, peers) for s in shapes.values())

    def seconds(self) -> float:
        """Seconds of one step on this rank, from when all ranks begin.

        :raises HipressError: if a rank dies or is silent meanwhile
        """
        flats = [values.clone() for values in self._values]
        maxima(self._ranks.numbers, 0.0)  # a barrier
        began = time.perf_counter()
        futures = [self.start(*bucket) for bucket in zip(flats, self._gradients)]
        for future in futures:
            future.wait()
        if self._ranks.device.type == "cuda":
            torch.cuda.synchronize(self._ranks.device)
        return time.perf_counter() - began

    def start(self, flat: torch.Tensor, gradients: list[Gradient]) -> torch.futures.Future:
        """Starts to synchronise a bucket."""
        return self._synchronizer.synchronize(flat, gradients, "plan auto")

    def slowest(self) -> float:
        """Seconds of one step on the slowest rank."""
        return self._ranks.slowest(self.seconds())


def choose(
    settings: Settings,
    engine: Engine,
    group: dist.ProcessGroup,
    device: torch.device,
    sizes: Mapping[str, int],
    dtypes: Mapping[str, torch.dtype],
) -> Settings:
    """With plan AUTO, the settings with ``min_size`` raised to where compression pays.

    It must save 3% of the time of an uncompressed all-reduce, and then, tried with gradients of the
    model's sizes, must not be slower than none. What is measured has the dtype that most elements
    of the model's gradients have. All ranks of the group call it together; it takes seconds.

    :param device: where the gradients are
    :param sizes: of the model's gradients by name, in elements, in the model's order
    :param dtypes: theirs
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    if settings.plan != AUTO:
        return settings
    measured = replace(
        settings, params=settings.params_after_warm_up, plan=None, min_size=0, warmup_steps=0
    )
    ranks = Ranks(measured, engine, group, device, most_of(sizes, dtypes))
    least, _ = least_size(ranks, measure(ranks, SIZES), settings.type)
    least = max(least, settings.min_size)
    if any(size >= least for size in sizes.values()):
        buckets = buckets_of({name: (size,) for name, size in sizes.items()})
        kinds = replace(measured, min_size=least), ranks.kinds[False]
        ratio = preview(*(Step(kind, buckets, ranks).slowest for kind in kinds))
        if engine.rank == 0:
            _log.log(
                logging.WARNING if ratio > 1 else logging.INFO,
                "plan auto: %sthis model's gradients took %.2f times as long compressed as not",
                "nothing is compressed, for " if ratio > 1 else "", ratio,
            )  # fmt: skip
        least = NEVER if ratio > 1 else least
    return replace(settings, min_size=least)


def most_of(sizes: Mapping[str, int], dtypes: Mapping[str, torch.dtype]) -> torch.dtype:
    """The dtype of most elements of a model's gradients, of those that can be compressed."""
    elements = dict.fromkeys([torch.float32, *FLAGS], 0)
    for name, size in sizes.items():
        if dtypes[name] in elements:
            elements[dtypes[name]] += size
    return max(elements, key=elements.get)


def buckets_of(shapes: Mapping[str, Shape], most: int = MAX_ELEMENTS) -> list[list[Shape]]:
    """Shapes of a model's gradients, or of some of a large one's, from its last one on.

    :param most: elements in all, about
    """
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    every = max(1, math.ceil(sum(sizes.values()) / most))
    some = set(sorted(sizes, key=lambda name: -sizes[name])[::every])
    buckets: list[list[Shape]] = []
    filled = 0
    for name in reversed(sizes):
        if name in some and sizes[name]:
            if not buckets or filled >= BUCKET_ELEMENTS:
                buckets.append([])
                filled = 0
            buckets[-1].append(_cut(tuple(shapes[name]), most))
            filled += math.prod(buckets[-1][-1])
    return buckets


def _cut(shape: Shape, most: int) -> Shape:
    """The shape of the first rows that have about so many elements."""
    if not shape:
        return shape
    row = math.prod(shape[1:])
    return (most,) if row > most else (min(shape[0], max(1, most // row)), *shape[1:])
