"""Type "auto" of a process group: its ranks measure what a model's gradients take by each way.

Before the first step all ranks synchronise gradients of the model's sizes by each of the ways that
are safe with the optimizer (:mod:`hipress.tuning.ways`), as :func:`hipress.secopa.choice.compare`
says. PyTorch's own ways go over the process group, as in a job without HiPress; where one of them
is the choice, that is what runs.
"""

from __future__ import annotations

import contextlib
import logging
import math
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist

from hipress.config import AUTO
from hipress.secopa.choice import FIRST_ELEMENTS, ROUNDS, Measured, compare
from hipress.secopa.explanation import number
from hipress.secopa.plan import Decision
from hipress.torch.executors.engine import Engine, HipressError
from hipress.torch.executors.gloo_threads import awaited
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings
from hipress.torch.tuning.auto import MAX_ELEMENTS, Ranks, Shape, Step, buckets_of, most_of, named
from hipress.torch.tuning.hosts import ranks_per_host
from hipress.torch.tuning.numbers import Numbers, failing
from hipress.tuning.choice import Choice
from hipress.tuning.choice import choose as first_choice
from hipress.tuning.ways import BF16_HOOK, MAXMIN8, UNCOMPRESSED, Way, apart, vectors, ways_for

SHARED_HOSTS = ("ps", "hierarchical")
"""The topologies that are tried where ranks share hosts."""
_log = logging.getLogger("hipress")


class Flat:
    """What PyTorch's own hooks ask a bucket of DDP's for."""

    def __init__(self, flat: torch.Tensor) -> None:
        self._flat = flat

    def buffer(self) -> torch.Tensor:
        """The gradients."""
        return self._flat


Hook = Callable[[dist.ProcessGroup, Flat], torch.futures.Future]


def sum_hook(group: dist.ProcessGroup, bucket: Flat) -> torch.futures.Future:
    """Sums gradients, uncompressed."""
    work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
    return work.get_future().then(awaited(lambda done: done.value()[0]))


def mean_hook(group: dist.ProcessGroup, bucket: Flat) -> torch.futures.Future:
    """Averages gradients, uncompressed: what PyTorch's allreduce_hook does, bit for bit, but for
    what a process waits for at its end."""
    bucket.buffer().div_(group.size())
    return sum_hook(group, bucket)


def bf16_hook(group: dist.ProcessGroup, bucket: Flat) -> torch.futures.Future:
    """Averages gradients in bfloat16: what PyTorch's bf16_compress_hook does, likewise."""
    flat = bucket.buffer()
    narrow = flat.to(torch.bfloat16).div_(group.size())
    work = dist.all_reduce(narrow, group=group, async_op=True)
    return work.get_future().then(awaited(lambda done: flat.copy_(done.value()[0])))


def scatter_hook(group: dist.ProcessGroup, bucket: Flat) -> torch.futures.Future:
    """Reduce-scatters rows, uncompressed, and waits, as FSDP2 does; gives a rank's own row."""
    flat = bucket.buffer()
    row = flat.new_empty(flat.numel() // group.size())
    dist.reduce_scatter_tensor(row, flat, group=group)  # whose work has no future with Gloo
    done: torch.futures.Future = torch.futures.Future()
    done.set_result(row)
    return done


MEANS: Mapping[str, Hook] = {
    UNCOMPRESSED.name: mean_hook,
    BF16_HOOK.name: bf16_hook,
}
"""PyTorch's own ways to average gradients, by their names."""
SUMS: Mapping[str, Hook] = {UNCOMPRESSED.name: sum_hook}
"""Those to sum them."""
SCATTERS: Mapping[str, Hook] = {UNCOMPRESSED.name: scatter_hook}
"""Those to measure reduce-scatters by; FSDP2's run where it calls them."""


class _WayStep(Step):
    """A step's gradients, synchronised by one way."""

    def __init__(self, way: Way, hook: Hook | None, *args: object) -> None:
        super().__init__(*args)
        self.way, self._hook = way, hook

    def start(self, flat: torch.Tensor, gradients: list[Gradient]) -> torch.futures.Future:
        if self._hook:
            return self._hook(self._ranks.group, Flat(flat))
        return super().start(flat, gradients)


class Meter:
    """Measures what a model's gradients take by ways, on all ranks together.

    :param settings: of type "auto"
    :param shapes: of the model's gradients by name, in the model's order
    :param hooks: of PyTorch's own ways
    :param compare: compares the ways, see :func:`hipress.secopa.choice.compare`
    """

    def __init__(
        self, settings: Settings, ranks: Ranks, shapes: Mapping[str, Shape], ways: Sequence[Way],
        hooks: Mapping[str, Hook], compare: Callable[..., list[Measured]] = compare,
    ) -> None:  # fmt: skip
        self._settings, self._ranks, self._shapes, self._ways = settings, ranks, shapes, ways
        self._hooks, self._compare = hooks, compare
        self.elements = sum(map(math.prod, shapes.values()))
        """Of all gradients."""
        self._size, self._steps = 0, {}

    def measure(self) -> list[Measured]:
        """Seconds of all gradients by each way.

        :raises HipressError: if a rank dies or is silent meanwhile
        """
        first = max(FIRST_ELEMENTS, self._settings.min_size)
        with self._measuring():
            return self._compare(
                self.sample, len(self._ways), self.elements, MAX_ELEMENTS, first, apart(self._ways)
            )

    @contextlib.contextmanager
    def _measuring(self) -> Iterator[None]:
        try:
            yield
        except HipressError:
            raise
        except RuntimeError as error:  # of the process group
            raise HipressError(self._ranks.engine.lost(error, "auto")) from error
        finally:
            self._size, self._steps = 0, {}

    def measure_again(self) -> list[Measured]:
        """The same while a model trains.

        :raises HipressError: if a rank dies or is silent; all later steps raise it, too
        """
        with failing(self._ranks.engine):
            return self.measure()

    def seconds_of(self, way: int) -> float:
        """Seconds of all gradients by the way of this number, while a model trains: the median of
        some rounds.

        :raises HipressError: as :meth:`measure_again`
        """
        with failing(self._ranks.engine), self._measuring():
            size = min(self.elements, MAX_ELEMENTS)
            found = [self.sample(way, size) for _ in range(1 + ROUNDS)]
        return statistics.median(s for s, _ in found[1:]) * self.elements / found[0][1]

    def sample(self, way: int, size: int) -> tuple[float, int]:
        """Seconds of a sample of about ``size`` elements by a way on the slowest rank, and the
        sample's elements."""
        if size != self._size:
            self._size, self._steps = size, {}  # of one size at a time, for memory's sake
        if way not in self._steps:
            buckets = buckets_of(self._shapes, size)
            shapes = {n: s for b, of in enumerate(buckets) for n, s in named(b, of).items()}
            # What is larger than the sample is cut to its size, and compressed all the same.
            cut = replace(self._settings, min_size=min(self._settings.min_size, size))
            settings = settings_of(self._ways[way], cut, shapes)
            hook = self._hooks.get(self._ways[way].name)
            self._steps[way] = _WayStep(self._ways[way], hook, settings, buckets, self._ranks)
        step = self._steps[way]
        return step.slowest(), step.elements


def settings_of(way: Way, settings: Settings, shapes: Mapping[str, Shape]) -> Settings:
    """The settings by which gradients of these shapes go by a way of ours.

    :param settings: of type "auto"
    """
    as_they_are = {name: Decision(False, 1) for name in vectors(shapes)}
    return replace(
        settings, type=way.type, params=way.params, plan=as_they_are,
        topology=way.topology or settings.topology,
    )  # fmt: skip


class Chosen:
    """A choice, and what carries it out on a process group.

    :param settings: of type "auto"
    :param shapes: of the model's gradients by name
    :param hooks: of PyTorch's own ways
    :param gradient_bytes: of a step, uncompressed
    :param numbers: compares them while it is followed
    """

    def __init__(
        self, choice: Choice, settings: Settings, shapes: Mapping[str, Shape],
        hooks: Mapping[str, Hook], gradient_bytes: int, numbers: Numbers,
    ) -> None:  # fmt: skip
        self.choice, self.hooks, self.gradient_bytes = choice, hooks, gradient_bytes
        self.numbers = numbers
        self._auto, self._shapes = settings, shapes

    def settings(self, way: Way | None = None) -> Settings:
        """Those of the model's gradients by a way; default: the one that was chosen."""
        return settings_of(way or self.choice.way, self._auto, self._shapes)


def choose(
    settings: Settings,
    engine: Engine,
    group: dist.ProcessGroup,
    device: torch.device,
    shapes: Mapping[str, Shape],
    dtypes: Mapping[str, torch.dtype],
    feedback: bool | None = None,
    hooks: Mapping[str, Hook] = MEANS,
    without: Collection[Way] = (),
    numbers: Numbers | None = None,
    known: Mapping[str, Any] | None = None,
    later: Mapping[str, Shape] | None = None,
) -> Chosen:
    """Chooses by what the model's gradients take by each way, on all ranks together.

    Where ranks share hosts and the settings leave the topology to them, that is chosen first, for
    good.

    :param settings: of type "auto"
    :param device: where the gradients are
    :param shapes: of the model's gradients by name, in the model's order
    :param dtypes: theirs
    :param feedback: whether the optimizer bears error feedback, if that is known
    :param hooks: of PyTorch's own ways; :data:`SCATTERS` measures reduce-scatters
    :param without: ways that the front end does not have
    :param numbers: compares numbers; default: the group
    :param known: of an earlier choice, its ``state_dict()``, the same on all ranks; nothing is
        measured then
    :param later: shapes of gradients that may come later and are not measured, as of frozen
        parameters
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    dtype = most_of(sizes, dtypes)
    without = [*without, *(way for way in (BF16_HOOK,) if way.name not in hooks)]
    ways = ways_for(dtype != torch.float32, feedback is not False, without)
    ranks = Ranks(settings, engine, group, device, dtype, hooks is SCATTERS, numbers)
    matrices = sizes.keys() - vectors(shapes)
    largest = max(map(sizes.get, matrices), default=0)
    said = ""
    if settings.chooses_topology and largest >= settings.min_size:
        settings, said = _with_topology(settings, ranks, shapes)
    meter = Meter(settings, ranks, shapes, ways, hooks)
    choice = first_choice(
        ways, feedback, meter, (engine.world_size, "rank"), largest, settings.min_size,
        logs=engine.rank == 0, known=known,
    )  # fmt: skip
    if said:
        choice.explanation.history.append(said)
    every = {**shapes, **(later or {})}
    return Chosen(choice, settings, every, hooks, meter.elements * dtype.itemsize, ranks.numbers)


def with_topology(
    settings: Settings,
    engine: Engine,
    group: dist.ProcessGroup,
    device: torch.device,
    shapes: Mapping[str, Shape],
    dtypes: Mapping[str, torch.dtype],
) -> Settings:
    """The settings, whose type is not "auto", with the topology that is the fastest, if they leave
    it to the ranks; all of them call this together.

    :param device, shapes, dtypes: as those of :func:`choose`
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    if not settings.chooses_topology:
        return settings
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    ranks = Ranks(settings, engine, group, device, most_of(sizes, dtypes))
    return _with_topology(settings, ranks, shapes)[0]


def _with_topology(
    settings: Settings, ranks: Ranks, shapes: Mapping[str, Shape]
) -> tuple[Settings, str]:
    """The settings with the topology that is the fastest between hosts that several ranks share,
    and the sentence that says so; as they are, and none, where each rank has a host of its own.
    """
    count = settings.devices_per_host
    if count == 1:
        count = ranks_per_host(ranks.group)
    # What is encoded in a host's sum gets no momentum.
    if not 1 < count < ranks.engine.world_size or settings.momentum:
        return settings, ""
    params = settings.params_after_warm_up
    shared = replace(settings, params=params, devices_per_host=count, warmup_steps=0)
    probe = MAXMIN8 if settings.type == AUTO else Way(settings.type, settings.type, params)
    ways = [probe._replace(topology=name) for name in SHARED_HOSTS]
    found = Meter(shared, ranks, shapes, ways, {}).measure()
    times = {way.topology: each.seconds for way, each in zip(ways, found)}
    best, *others = sorted(times, key=times.get)
    sentence = (
        f"auto: topology {best}, for hosts have {count} ranks each: a step's gradients take "
        f"{number(1e3 * times[best])} ms by {probe.name} ("
        + "; ".join(f"{other} {number(1e3 * times[other])} ms" for other in others) + ")"
    )  # fmt: skip
    if ranks.rank == 0:
        _log.warning("%s", sentence)
    hosts = settings.devices_per_host if best == "ps" else count
    return replace(settings, topology=best, devices_per_host=hosts), sentence
