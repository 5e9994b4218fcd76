"""Type "auto": the ranks of a DDP model choose how its gradients are synchronised.

The ways that they choose from are safe for any optimizer without another setting: DDP's own
all-reduce, 16 bits, and ``maxmin``, which rounds at random, so that its mean is right, and leaves
no residual. Before the first step all ranks synchronise gradients of the model's sizes by each way
(:func:`hipress.secopa.choice.compare`). DDP's own ways go over the process group, as in a job
without HiPress; where one of them is the choice, that is what runs. If another one is,
:class:`StepTimer` tries it in the first steps of training against DDP's own.

All numbers that decide are maxima over the ranks, which have the same bits on all of them.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from hipress.secopa.choice import FIRST_ELEMENTS, StepTrial, compare, gentlest
from hipress.torch.executors.engine import Engine, HipressError
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings
from hipress.torch.tuning.auto import MAX_ELEMENTS, Ranks, Step, buckets_of, most_of
from hipress.torch.tuning.guard import MAX_ERROR, error_of

Hook = Callable[[dist.ProcessGroup, dist.GradBucket], torch.futures.Future]

_log = logging.getLogger("hipress")


class Way(NamedTuple):
    """A way to synchronise gradients.

    Ours compresses by a codec; DDP's own is a communication hook over the process group.
    """

    name: str
    type: str
    params: Mapping[str, object] = {}
    hook: Hook | None = None
    """DDP's own."""
    narrows: bool = False
    """Whether it gains nothing with gradients of 16 bits, as it sends 16 bits."""


UNCOMPRESSED = Way("uncompressed", "none", hook=default_hooks.allreduce_hook)
WAYS = (
    UNCOMPRESSED,
    Way("bf16", "bf16", narrows=True),
    Way("DDP's bf16_compress_hook", "bf16", hook=default_hooks.bf16_compress_hook, narrows=True),
    Way("maxmin bits=8", "maxmin", {"bits": 8}),
    Way("maxmin bits=6", "maxmin", {"bits": 6}),
    Way("maxmin bits=5", "maxmin", {"bits": 5}),
)
"""From gentle to lossy: what has kept the loss of uncompressed training with SGD and with Adam, by
`python -m benchmarks convergence`."""


@dataclass
class Row:
    """What was measured of one way."""

    way: str
    gradients_ms: float
    """Milliseconds of a step's gradients alone, on the slowest rank."""
    sample: float
    """The share of the model's gradients that was measured; the rest by their number."""
    step_ms: float | None = None
    """Milliseconds of a whole step of training, if any were timed."""
    chosen: bool = False


@dataclass
class Explanation:
    """Why a model's gradients are synchronised as they are, with what was measured."""

    sentence: str
    rows: list[Row] = field(default_factory=list)
    """By way, from gentle to lossy; none if nothing was measured."""

    def __str__(self) -> str:
        lines = [["", "gradients, ms", "measured", "step, ms"]]
        for row in self.rows:
            step = "" if row.step_ms is None else _number(row.step_ms)
            share = f"{100 * row.sample:.3g}%"
            name = f"{'>' if row.chosen else ' '} {row.way}"
            lines.append([name, _number(row.gradients_ms), share, step])
        widths = [max(map(len, column)) for column in zip(*lines)]
        table = [
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.sentence, *(table if self.rows else [])])


def _number(ms: float) -> str:
    """Three digits, or all before the point."""
    return f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


class _Bucket:
    """What DDP's own hooks ask a bucket for."""

    def __init__(self, flat: torch.Tensor) -> None:
        self._flat = flat

    def buffer(self) -> torch.Tensor:
        return self._flat


class _WayStep(Step):
    """A step's gradients, synchronised by one way."""

    def __init__(self, way: Way, *args: object) -> None:
        super().__init__(*args)
        self.way = way

    def start(self, flat: torch.Tensor, gradients: list[Gradient]) -> torch.futures.Future:
        if self.way.hook:
            return self.way.hook(self._ranks.group, _Bucket(flat))
        return super().start(flat, gradients)


class Choice:
    """A way that was chosen, and why.

    :param settings: of type "auto"
    :param ways: from gentle to lossy
    :param number: of the one that was chosen
    """

    def __init__(
        self, settings: Settings, ways: list[Way], number: int, explanation: Explanation
    ) -> None:
        self.ways, self.number, self.explanation = ways, number, explanation
        self._settings = settings

    @property
    def settings(self) -> Settings:
        """With the way's type in place of "auto"."""
        return replace(self._settings, type=self.way.type, params=self.way.params)

    @property
    def way(self) -> Way:
        """The one that was chosen."""
        return self.ways[self.number]

    @property
    def is_plain(self) -> bool:
        """Whether DDP does by itself what was chosen."""
        return self.way is UNCOMPRESSED


    def soften(self, spread: float, step: int) -> str:
        """Takes a gentler way if this one's rounding error is too large; returns the sentence that
        says so, empty if it is not.

        :param spread: see :meth:`hipress.torch.tuning.guard.Guard.spread`; the largest of all ranks
        """
        before, error = self.way, error_of(self.way.params, spread)
        if error <= MAX_ERROR:
            return ""
        rows, ways = self.explanation.rows, self.ways[: self.number]
        gentler = [i for i, way in enumerate(ways) if error_of(way.params, spread) <= MAX_ERROR]
        rows[self.number].chosen = False
        self.number = min(gentler, key=lambda i: rows[i].gradients_ms)
        rows[self.number].chosen = True
        self.explanation.sentence = (
            f"auto: {self.way.name} from step {step} on, for {before.name} rounds a gradient too "
            f"coarsely: the norm of its error is {error:.2f} times the gradient's (at most "
            f"{MAX_ERROR:g})"
        )
        return self.explanation.sentence


def choose(
    settings: Settings,
    engine: Engine,
    group: dist.ProcessGroup,
    device: torch.device,
    sizes: Mapping[str, int],
    dtypes: Mapping[str, torch.dtype],
) -> Choice:
    """Chooses by what the model's gradients take by each way, on all ranks together.

    :param settings: of type "auto"
    :param device: where the gradients are
    :param sizes: of the model's gradients by name, in elements, in the model's order
    :param dtypes: theirs
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    dtype = most_of(sizes, dtypes)
    ways = [way for way in WAYS if dtype == torch.float32 or not way.narrows]
    if engine.world_size == 1 or max(sizes.values(), default=0) < settings.min_size:
        why = "there is one rank" if engine.world_size == 1 else (
            f"no gradient has {settings.min_size} elements (min_size)"
        )  # fmt: skip
        choice = Choice(settings, ways, 0, Explanation(f"auto: uncompressed, for {why}"))
    else:
        try:
            choice = _measured(settings, engine, group, device, sizes, dtype, ways)
        except HipressError:
            raise
        except RuntimeError as error:  # of the process group
            raise HipressError(engine.lost(error, "auto")) from error
    if engine.rank == 0:
        _log.warning("%s", choice.explanation.sentence)
    return choice


def _measured(
    settings: Settings, engine: Engine, group: dist.ProcessGroup, device: torch.device,
    sizes: Mapping[str, int], dtype: torch.dtype, ways: list[Way],
) -> Choice:  # fmt: skip
    meter = _Meter(settings, Ranks(settings, engine, group, device, dtype), sizes, ways)
    total = sum(sizes.values())
    found = compare(
        meter.measure, len(ways), total, MAX_ELEMENTS, max(FIRST_ELEMENTS, settings.min_size)
    )
    number = gentlest([each.seconds for each in found])
    rows = [
        Row(way.name, 1e3 * each.seconds, min(1.0, each.elements / total), chosen=i == number)
        for i, (way, each) in enumerate(zip(ways, found))
    ]
    fastest = min(range(len(rows)), key=lambda i: rows[i].gradients_ms)
    why = (
        "the fastest" if fastest == number
        else f"about as fast as the fastest, {rows[fastest].way}, and gentler"
    )  # fmt: skip
    others = [f"{row.way} {_number(row.gradients_ms)} ms" for row in rows if not row.chosen]
    sentence = (
        f"auto: {rows[number].way}, {why}: a step's gradients take "
        f"{_number(rows[number].gradients_ms)} ms ({'; '.join(others)})"
    )
    return Choice(settings, ways, number, Explanation(sentence, rows))


class _Meter:
    """Measures samples of a model's gradients by ways, with the dtype that most of them have."""

    def __init__(
        self, settings: Settings, ranks: Ranks, sizes: Mapping[str, int], ways: list[Way]
    ) -> None:
        self._settings, self._ranks, self._sizes, self._ways = settings, ranks, sizes, ways
        self._size, self._steps = 0, {}

    def measure(self, number: int, size: int) -> tuple[float, int]:
        """Seconds of a sample of about ``size`` elements by a way, and the sample's elements."""
        if size != self._size:
            self._size, self._steps = size, {}  # of one size at a time, for memory's sake
        if number not in self._steps:
            way = self._ways[number]
            settings = replace(self._settings, type=way.type, params=way.params)
            buckets = buckets_of(self._sizes, size)
            self._steps[number] = _WayStep(way, settings, buckets, self._ranks)
        step = self._steps[number]
        return step.slowest(), step.elements


class StepTimer:
    """Tries a choice in the first steps of training against DDP's own ways.

    A step's time is that from when its first bucket is ready until the next step's is.

    :param speaks: whether this rank logs what comes of it
    """

    def __init__(self, choice: Choice, speaks: bool) -> None:
        self._choice, self._speaks = choice, speaks
        rows = zip(choice.ways, choice.explanation.rows)
        seconds = [row.gradients_ms / 1e3 if way.hook else math.inf for way, row in rows]
        self._trial = StepTrial(seconds, choice.number)
        self._began: float | None = None

    @property
    def way(self) -> Way:
        """The way of the step that has begun."""
        return self._choice.way if self.over else self._choice.ways[self._trial.way]

    @property
    def over(self) -> bool:
        """Whether all steps go by :attr:`way` from now on."""
        return self._trial.over

    def begin_step(self) -> float | None:
        """To be called when a step begins.

        :returns: perhaps seconds, of which the maximum over all ranks is then to be given to
            :meth:`end_block`
        """
        if self.over:
            return None
        began, self._began = self._began, time.perf_counter()
        return None if began is None else self._trial.add(self._began - began)

    def end_block(self, slowest: float) -> None:
        """Takes the maximum over all ranks."""
        self._trial.end_block(slowest)
        self._began = time.perf_counter()
        if self.over:
            self._report()

    def _report(self) -> None:
        choice, rows = self._choice, self._choice.explanation.rows
        before, choice.number = choice.number, self._trial.way
        for number, seconds in self._trial.seconds.items():
            rows[number].step_ms = 1e3 * seconds
        for number, row in enumerate(rows):
            row.chosen = number == choice.number
        tried = "; ".join(f"{r.way} {_number(r.step_ms)} ms" for r in rows if r.step_ms)
        if choice.number == before:
            level, sentence = logging.INFO, f"auto: {choice.way.name} stays: a step takes {tried}"
        else:
            level = logging.WARNING
            sentence = choice.explanation.sentence = (
                f"auto: {choice.way.name}, for in training it is as fast as "
                f"{choice.ways[before].name}, or faster: a step takes {tried}"
            )
        if self._speaks:
            _log.log(level, "%s", sentence)

