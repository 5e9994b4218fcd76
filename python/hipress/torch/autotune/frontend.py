"""Gradients of a process group, which the autotuner measures and tunes.

Samples have gradients of the model's sizes, in buckets like DDP's. With hybrid sharding the group
has the ranks that share a shard.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist

from hipress.autotune.choice import MethodChoice
from hipress.autotune.frontend import MAX_ELEMENTS, RankReductions, StepFrontend
from hipress.autotune.measurement import FIRST_ELEMENTS, REPETITIONS
from hipress.autotune.methods import Method, vectors
from hipress.autotune.outer_steps import OuterFrontend
from hipress.autotune.quality_guard import BUCKET, GradientStatistics
from hipress.autotune.steps import MEASURING
from hipress.autotune.threshold import CONCURRENT_ELEMENTS, NEVER, SizeFrontend
from hipress.planning.plan import Decision
from hipress.torch.autotune.hooks import SCATTERS, FlatBucket, Hook
from hipress.torch.autotune.optimizers import TunedOptimizers
from hipress.torch.autotune.reductions import GroupReductions, raising_hipress_errors
from hipress.torch.dtypes import FLAGS, floats
from hipress.torch.executors.collectives import ReduceScatter
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.staging import current, device_of
from hipress.torch.gradient import Gradient, chunk_of, packed, scattered
from hipress.torch.settings import Settings
from hipress.torch.synchronizer import Synchronizer

MIN_CONCURRENT = 2
"""Minimum number of gradients in a bucket of one size."""
BUCKET_ELEMENTS = 25 << 18
"""Approximate elements of a bucket: DDP's 25 MiB of float32."""

Shape = tuple[int, ...]
Named = Sequence[tuple[str, torch.nn.Parameter]]


class TensorStatistics(GradientStatistics):
    """Statistics of tensors for the guards, on the tensors' device."""

    @staticmethod
    def squares(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the sums of squares that the rounding guard compares."""
        found = parts[0].new_zeros(2, dtype=torch.float32)
        for part in parts:
            values = part.float()
            whole = values.numel() // BUCKET * BUCKET
            for rows in (values[:whole].view(-1, BUCKET), values[whole:].view(1, -1)):
                if rows.numel():
                    low, high = rows.aminmax(dim=1)
                    found[0] += (high - low).square().sum() * rows.shape[1]
            found[1] += values.square().sum()
        return found

    @staticmethod
    def square(part: torch.Tensor) -> float:
        """Return the sum of squares of a part."""
        return part.float().square().sum().item()

    @staticmethod
    def sample(part: torch.Tensor, stride: int) -> np.ndarray:
        """Return every ``stride``-th element of a part."""
        return part[::stride].float().cpu().numpy()


class GroupFrontend(StepFrontend, SizeFrontend):
    """The gradients of a process group, most of them of one ``dtype``.

    ``hooks`` are PyTorch's own methods by name; :data:`~hooks.SCATTERS` measures reduce-scatters.
    """

    keeps_error_feedback = False  # PyTorch's own methods do not send residuals
    compares_results = True
    statistics = TensorStatistics

    def __init__(
        self,
        settings: Settings,
        engine: ProcessGroupEngine,
        group: dist.ProcessGroup,
        device: torch.device,
        dtype: torch.dtype,
        shapes: Mapping[str, Shape],
        hooks: Mapping[str, Hook] | None = None,
        reductions: RankReductions | None = None,
    ) -> None:
        self.auto_settings, self.engine, self.group = settings, engine, group
        self.device, self.dtype, self.hooks = device, dtype, hooks or {}
        self.scatters = hooks is SCATTERS
        self.rank, self.num_ranks = engine.rank, engine.world_size
        self.reductions = reductions or GroupReductions(engine, group, device)
        self.elements = sum(map(math.prod, shapes.values()))
        self.first_elements = max(FIRST_ELEMENTS, settings.min_size)
        self.all_shapes = shapes
        """Shapes of all gradients, including those that are not measured."""
        self.other_bytes_sent: Callable[[], int] = lambda: 0
        """Function that returns the bytes that the engine has sent for other uses."""
        self.choice: MethodChoice | None = None
        self._shapes = shapes
        self._samples: dict[tuple[str, int], Sample] = {}
        self._synchronizer: Synchronizer | None = None
        self._optimizers: TunedOptimizers | None = None

    def attach(
        self,
        synchronizer: Synchronizer,
        optimizers: TunedOptimizers | None = None,
        compares_results: bool = True,
    ) -> None:
        """Set the synchronizer that :meth:`use` changes. Later errors end all steps."""
        self._synchronizer, self._optimizers = synchronizer, optimizers
        self.compares_results = compares_results

    @property
    def log_rank(self) -> int:
        """Rank that decides whether this process writes the log."""
        # Shard groups choose independently, and each group has its own rank 0.
        return self.rank if self._synchronizer is None else self._synchronizer.rank

    def settings_for(self, method: Method | None = None) -> Settings:
        """Return the settings of the model's gradients with a method; default: the choice."""
        method = method or self.choice.method
        return settings_for(method, self.auto_settings, self.all_shapes)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Enclose the measurement; free its memory at the end."""
        try:
            with raising_hipress_errors(self.engine, self._synchronizer is not None):
                yield
        finally:
            self._samples = {}

    def time_gradients(self, method: Method, size: int) -> tuple[float, int]:
        """Return the slowest rank's seconds of a sample, and its elements."""

        def make() -> Sample:
            buckets = sample_buckets(self._shapes, size)
            shapes = {n: s for b, of in enumerate(buckets) for n, s in names_of(b, of).items()}
            # A gradient that is cut to the sample's size is compressed nevertheless.
            min_size = min(self.auto_settings.min_size, size)
            settings = settings_for(method, replace(self.auto_settings, min_size=min_size), shapes)
            return Sample(settings, buckets, self, method, self.hooks.get(method.name))

        sample = self._sample(method.name + method.topology, size, make)
        return sample.slowest(), sample.elements

    def time_size(self, size: int, compressed: bool) -> float:
        """Return the seconds of gradients of one size."""
        count = max(MIN_CONCURRENT, CONCURRENT_ELEMENTS // size)
        settings = replace(self.auto_settings, min_size=0 if compressed else NEVER)
        name = "compressed" if compressed else "uncompressed"
        sample = self._sample(name, size, lambda: Sample(settings, [[(size,)] * count], self))
        return sample.seconds() / count

    def _sample(self, name: str, size: int, make: Callable[[], Sample]) -> Sample:
        if (name, size) not in self._samples:
            # Samples of one size only are in memory.
            self._samples = {key: s for key, s in self._samples.items() if key[1] == size}
            self._samples[name, size] = make()
        return self._samples[name, size]

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return self._synchronizer.step

    def use(self, method: Method) -> None:
        """Synchronize all later gradients by a method."""
        settings = self.settings_for(method)
        if settings.config != self._synchronizer.settings.config:
            self._synchronizer.replace_codec(settings)

    def residual_norm(self) -> float:
        """Return the 2-norm of all residuals of this rank."""
        total = 0.0
        for state in self._synchronizer.error_feedback.states.values():
            residual = state.state_dict()["states"].get("residual")
            if residual is not None:
                flat = np.asarray(residual).reshape(-1)
                total += float(np.dot(flat, flat))
        return math.sqrt(total)

    def allows_feedback(self) -> bool | None:
        """Return whether the optimizers support error feedback, or None."""
        return self._optimizers.allow_feedback

    def bytes_sent(self) -> int:
        """Return the bytes of gradients that this rank has sent so far."""
        return self.engine.member.stats()["bytes_sent"] - self.other_bytes_sent()


class OuterGroupFrontend(GroupFrontend, OuterFrontend):
    """The pseudo-gradients of a process group, in fragments as ``cut`` returns them.

    If parameters are sharded, several groups make the same choice. They then measure the same
    ``shapes``, by ``reductions`` over all of them, and the rank with ``log_rank`` 0 writes the log.
    """

    def __init__(
        self,
        settings: Settings,
        synchronizer: Synchronizer,
        named: Named,
        device: torch.device | str | None,
        cut: Callable[[int], Sequence[Named]],
        reductions: RankReductions | None = None,
        shapes: Mapping[str, Shape] | None = None,
        log_rank: int | None = None,
    ) -> None:
        engine, group = synchronizer.engine, synchronizer.collective.group
        self._weights_device = device_of([p for _, p in named])
        if reductions is None:
            reductions = GroupReductions(engine, group, self._weights_device)
        where, shapes = torch.device(device or "cpu"), shapes or shapes_of(named)
        super().__init__(
            settings, engine, group, where, torch.float32, shapes, reductions=reductions
        )
        self._cut, self._log_rank = cut, log_rank
        self.attach(synchronizer)
        self.compresses_any = any(
            settings.compresses(name, math.prod(shape))
            for name, shape in shapes.items()
            if len(shape) > 1
        )

    @property
    def log_rank(self) -> int:
        """Rank that decides whether this process writes the log."""
        return super().log_rank if self._log_rank is None else self._log_rank

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Enclose the measurement; free its memory at the end."""
        with current(self._weights_device), super().measuring():
            yield

    def time_fragments(self, method: Method, count: int) -> list[float]:
        """Return the seconds of each fragment of a model in ``count`` parts."""
        every = self.all_shapes
        fragments = [{name: every[name] for name, _ in part} for part in self._cut(count)]
        sizes = [sum(map(math.prod, shapes.values())) for shapes in fragments]
        largest = sizes.index(max(sizes))
        elements = sizes[largest]
        all_shapes, self._shapes = self._shapes, fragments[largest]
        try:
            with self.measuring():
                size = min(elements, MAX_ELEMENTS)
                found = [self.time_gradients(method, size) for _ in range(1 + REPETITIONS)]
        finally:
            self._shapes = all_shapes
        seconds = statistics.median(s for s, _ in found[1:]) * elements / found[0][1]
        return [seconds * each / elements for each in sizes]


class Sample:
    """Gradients of a step, which are synchronized repeatedly, by ``hook`` if given."""

    def __init__(
        self,
        settings: Settings,
        buckets: Sequence[Sequence[Shape]],
        frontend: GroupFrontend,
        method: Method | None = None,
        hook: Hook | None = None,
    ) -> None:
        self.settings, self.method = settings, method
        self._frontend, self._hook = frontend, hook
        self.elements = sum(math.prod(shape) for bucket in buckets for shape in bucket)
        self._gradients: list[list[Gradient]] = []
        self._values: list[torch.Tensor] = []
        named = []
        generator = torch.Generator("cpu").manual_seed(frontend.rank)
        for b, shapes in enumerate(buckets):
            shaped = names_of(b, shapes)
            gradients, size = self._laid_out(shaped)
            self._gradients.append(gradients)
            values = 0.01 * floats(size).normal_(generator=generator)
            self._values.append(values.to(frontend.device, frontend.dtype))
            named += [(name, torch.empty(s, device="meta")) for name, s in shaped.items()]
        engine, group, collective = frontend.engine, frontend.group, None
        if frontend.scatters:
            names = [name for name, _ in named]
            collective = ReduceScatter(settings, group, engine.world_size, names)
        self._synchronizer = Synchronizer(settings, engine, group, named, collective=collective)

    def _laid_out(self, shapes: Mapping[str, Shape]) -> tuple[list[Gradient], int]:
        """Return the gradients of a bucket in a flat tensor, and the tensor's elements."""
        if not self._frontend.scatters:
            gradients = packed((name, math.prod(shape)) for name, shape in shapes.items())
            return gradients, sum(g.count for g in gradients)
        peers = self._frontend.num_ranks
        return scattered(shapes, peers), peers * sum(chunk_of(s, peers) for s in shapes.values())

    def seconds(self) -> float:
        """Synchronize the gradients, and return this rank's seconds after all ranks have begun."""
        flats = [values.clone() for values in self._values]
        self._frontend.reductions.max(0.0)  # a barrier
        began = time.perf_counter()
        futures = [self._start(*bucket) for bucket in zip(flats, self._gradients)]
        for future in futures:
            future.wait()
        if self._frontend.device.type == "cuda":
            torch.cuda.synchronize(self._frontend.device)
        return time.perf_counter() - began

    def _start(self, flat: torch.Tensor, gradients: list[Gradient]) -> torch.futures.Future:
        if self._hook:
            return self._hook(self._frontend.group, FlatBucket(flat))
        return self._synchronizer.synchronize(flat, gradients, "plan auto")

    def slowest(self) -> float:
        """Synchronize the gradients, and return the slowest rank's seconds."""
        return self._frontend.reductions.max(self.seconds())[0]


def settings_for(method: Method, settings: Settings, shapes: Mapping[str, Shape]) -> Settings:
    """Return the settings with which gradients of these shapes use one of HiPress's methods."""
    uncompressed = {name: Decision(False, 1) for name in vectors(shapes)}
    topology = method.topology or settings.topology
    return replace(
        settings, type=method.type, params=method.params, plan=uncompressed, topology=topology
    )


def shapes_of(named: Named) -> dict[str, Shape]:
    """Return the shapes of parameters by name."""
    return {name: tuple(p.shape) for name, p in named}


def names_of(bucket: int, shapes: Sequence[Shape]) -> dict[str, Shape]:
    """Return the shapes of a sample's bucket, by the gradients' names."""
    return {f"{MEASURING}{bucket}/{i}": shape for i, shape in enumerate(shapes)}


def most_frequent_dtype(sizes: Mapping[str, int], dtypes: Mapping[str, torch.dtype]) -> torch.dtype:
    """Return the dtype of most elements of a model's gradients that can be compressed."""
    elements = dict.fromkeys([torch.float32, *FLAGS], 0)
    for name, size in sizes.items():
        if dtypes[name] in elements:
            elements[dtypes[name]] += size
    return max(elements, key=elements.get)


def sample_buckets(shapes: Mapping[str, Shape], most: int = MAX_ELEMENTS) -> list[list[Shape]]:
    """Return the shapes of about ``most`` elements of a model's gradients, in buckets."""
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
    """Return the shape of the first rows, with about so many elements."""
    if not shape:
        return shape
    row = math.prod(shape[1:])
    return (most,) if row > most else (min(shape[0], max(1, most // row)), *shape[1:])
