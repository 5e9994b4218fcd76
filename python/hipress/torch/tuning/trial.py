"""Whether compressing pays for a model, tried before its first step.

What gradients of a few sizes take does not say what all of a model's take together. So all ranks
synchronise gradients of the model's sizes, in buckets like DDP's, compressed as was planned and
uncompressed, in turns. The slowest rank's seconds count, as in training. Their maximum has the same
bits on all ranks of a group (with hybrid sharding: those that share a shard), so all of these come
to the same answer; rounds end after a number or a time.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Mapping, Sequence

import torch
import torch.distributed as dist

from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.engine import Engine
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings
from hipress.torch.synchronizer import Synchronizer

BUCKET = 25 << 18
"""Elements of a bucket, about: DDP's 25 MiB of float32."""
MOST = 1 << 23
"""Elements in all, about: of a larger model every second (third, ...) gradient in order of size is
tried, and one larger than this as if it had this many."""
ROUNDS = 5
"""That count, at most; one comes before them, in which memory is allocated."""
SECONDS = 4.0
"""After which no round begins, but for the first that counts."""


class Step:
    """A step's gradients, which are synchronised again and again.

    :param buckets: elements of the gradients in each
    :param device: where they are
    :param dtype: theirs
    """

    def __init__(
        self,
        settings: Settings,
        buckets: Sequence[Sequence[int]],
        engine: Engine,
        group: dist.ProcessGroup,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.settings, self._group, self._device = settings, group, device
        self._entries: list[tuple[Gradient, ...]] = []
        self._values: list[torch.Tensor] = []
        shapes = []
        generator = torch.Generator().manual_seed(engine.rank)
        for b, sizes in enumerate(buckets):
            names = [f"{b}/{i}" for i in range(len(sizes))]
            ends = list(itertools.accumulate(sizes))
            offsets = (end - size for end, size in zip(ends, sizes))
            self._entries.append(tuple(map(Gradient, names, offsets, sizes)))
            values = 0.01 * torch.randn(ends[-1], generator=generator)
            self._values.append(values.to(device, dtype))
            shapes += [(n, torch.empty(s, device="meta")) for n, s in zip(names, sizes)]
        self._synchronizer = Synchronizer(settings, engine, group, shapes)

    def seconds(self) -> float:
        """That it takes this rank, from when all ranks begin.

        :raises HipressError: if a rank dies or is silent meanwhile
        """
        flats = [values.clone() for values in self._values]
        dist.barrier(self._group)
        began = time.perf_counter()
        futures = [
            self._synchronizer.synchronize(flat, entries, "plan auto")
            for flat, entries in zip(flats, self._entries)
        ]
        for future in futures:
            future.wait()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter() - began


def most_of(sizes: Mapping[str, int], dtypes: Mapping[str, torch.dtype]) -> torch.dtype:
    """That which most elements of a model's gradients have, of those that can be compressed."""
    elements = dict.fromkeys([torch.float32, *FLAGS], 0)
    for name, size in sizes.items():
        if dtypes[name] in elements:
            elements[dtypes[name]] += size
    return max(elements, key=elements.get)


def buckets_of(sizes: Mapping[str, int]) -> list[list[int]]:
    """Elements of a model's gradients, or of some of a large one's, from its last one on."""
    every = max(1, math.ceil(sum(sizes.values()) / MOST))
    some = set(sorted(sizes, key=lambda name: -sizes[name])[::every])
    buckets: list[list[int]] = []
    for name in reversed(sizes):
        if name in some and sizes[name]:
            if not buckets or sum(buckets[-1]) >= BUCKET:
                buckets.append([])
            buckets[-1].append(min(sizes[name], MOST))
    return buckets


def ratio(
    compressed: Settings,
    plain: Settings,
    sizes: Mapping[str, int],
    engine: Engine,
    group: dist.ProcessGroup,
    device: torch.device,
    dtype: torch.dtype,
) -> float:
    """Compressed gradients' time over uncompressed ones', in the median round; the same on all
    ranks, which call this together.

    :param sizes: of the model's gradients by name, in elements, in the model's order
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    buckets = buckets_of(sizes)
    steps = [
        Step(settings, buckets, engine, group, device, dtype) for settings in (compressed, plain)
    ]
    ratios: list[float] = []
    spent = 0.0
    while len(ratios) < 2 or (len(ratios) <= ROUNDS and spent < SECONDS):
        seconds = [0.0, 0.0]
        for turn in (0, 1) if len(ratios) % 2 else (1, 0):  # what drifts, drifts for both
            seconds[turn] = _slowest(steps[turn].seconds(), group, device)
        spent += sum(seconds)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios[1:])


def _slowest(seconds: float, group: dist.ProcessGroup, device: torch.device) -> float:
    found = torch.tensor([seconds], dtype=torch.float64, device=device)
    dist.all_reduce(found, dist.ReduceOp.MAX, group)
    return found.item()
