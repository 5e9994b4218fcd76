"""Type "auto": the ranks of a DDP model choose how its gradients are synchronised.

Before the first step all ranks synchronise gradients of the model's sizes by each of the ways that
are safe with the optimizer (:mod:`hipress.torch.tuning.ways`), as
:func:`hipress.secopa.choice.compare` says. DDP's own ways go over the process group, as in a job
without HiPress; where one of them is the choice, that is what runs. If another one is,
:class:`StepTimer` tries it in the first steps of training against DDP's own.

All numbers that decide are maxima over the ranks, which have the same bits on all of them.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
import torch.distributed as dist

from hipress.secopa.choice import FIRST_ELEMENTS, Measured, StepTrial, compare, gentlest
from hipress.secopa.explanation import Explanation, Row, number
from hipress.secopa.plan import Decision
from hipress.torch.executors.engine import Engine, HipressError
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings
from hipress.torch.tuning.auto import MAX_ELEMENTS, Ranks, Shape, Step, buckets_of, most_of
from hipress.torch.tuning.guard import MAX_ERROR, error_of
from hipress.torch.tuning.ways import UNCOMPRESSED, Way, vectors, ways_for

NEEDS_SGD = "with SGD only"
_log = logging.getLogger("hipress")


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


class Meter:
    """Measures what a model's gradients take by ways, on all ranks together.

    :param settings: of type "auto"
    :param shapes: of the model's gradients by name, in the model's order
    :param dtype: that most of them have
    """

    def __init__(
        self, settings: Settings, ranks: Ranks, shapes: Mapping[str, Shape], ways: Sequence[Way]
    ) -> None:
        self._settings, self._ranks, self.shapes, self._ways = settings, ranks, shapes, ways
        self.elements = sum(map(math.prod, shapes.values()))
        """Of all gradients."""
        self.dtype = ranks.dtype
        self._size, self._steps = 0, {}

    def measure(self) -> list[Measured]:
        """Seconds of all gradients by each way.

        :raises HipressError: if a rank dies or is silent meanwhile
        """
        first = max(FIRST_ELEMENTS, self._settings.min_size)
        try:
            return compare(self._sample, len(self._ways), self.elements, MAX_ELEMENTS, first)
        except HipressError:
            raise
        except RuntimeError as error:  # of the process group
            raise HipressError(self._ranks.engine.lost(error, "auto")) from error
        finally:
            self._size, self._steps = 0, {}

    def _sample(self, way: int, size: int) -> tuple[float, int]:
        """Seconds of a sample of about ``size`` elements by a way, and the sample's elements."""
        if size != self._size:
            self._size, self._steps = size, {}  # of one size at a time, for memory's sake
        if way not in self._steps:
            buckets = buckets_of(self.shapes, size)
            named = {f"{b}/{i}": each for b, of in enumerate(buckets) for i, each in enumerate(of)}
            settings = settings_of(self._ways[way], self._settings, named)
            self._steps[way] = _WayStep(self._ways[way], settings, buckets, self._ranks)
        step = self._steps[way]
        return step.slowest(), step.elements


def settings_of(way: Way, settings: Settings, shapes: Mapping[str, Shape]) -> Settings:
    """The settings by which gradients of these shapes go by a way of ours.

    :param settings: of type "auto"
    """
    as_they_are = {name: Decision(False, 1) for name in vectors(shapes)}
    return replace(settings, type=way.type, params=way.params, plan=as_they_are)


class Choice:
    """A way that was chosen, and why.

    :param settings: of type "auto"
    :param ways: from gentle to lossy
    :param feedback: whether the optimizer bears error feedback; None: it is not known yet
    :param found: what was measured of each way; none if there was nothing to measure
    """

    def __init__(
        self, settings: Settings, ways: list[Way], feedback: bool | None, meter: Meter,
        found: Sequence[Measured] = (),
    ) -> None:  # fmt: skip
        self.ways, self.feedback = ways, feedback
        self._auto, self._meter = settings, meter
        self._too_coarse: set[int] = set()
        self.number = 0
        """Of the way that was chosen."""
        self.explanation = Explanation("")
        if found:
            self._take(found)
            self.explanation.sentence = f"auto: {self._reason()}"

    @property
    def way(self) -> Way:
        """The one that was chosen."""
        return self.ways[self.number]

    def settings(self, way: Way) -> Settings:
        """Those of the model's gradients by this way."""
        return settings_of(way, self._auto, self._meter.shapes)

    @property
    def any_feedback(self) -> bool:
        """Whether one of the ways has error feedback."""
        return any(way.feedback for way in self.ways)

    @property
    def is_measured(self) -> bool:
        """Whether there is anything to choose from."""
        return bool(self.explanation.rows)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of a step's gradients, uncompressed."""
        return self._meter.elements * self._meter.dtype.itemsize

    def time(self, seconds: float) -> None:
        """Takes what a step takes now, on the slowest rank."""
        self.explanation.rows[self.number].step_ms = 1e3 * seconds
        self.explanation.predict()

    def _take(self, found: Sequence[Measured]) -> None:
        """Takes what was measured, and chooses."""
        total = self._meter.elements
        self.explanation.rows = [
            Row(way.name, 1e3 * each.seconds, min(1.0, each.elements / total))
            for way, each in zip(self.ways, found)
        ]
        self.choose(self._pick())

    def choose(self, number: int) -> None:
        """Chooses the way with this number."""
        self.number = number
        for i, row in enumerate(self.explanation.rows):
            row.chosen = i == number
            row.note = NEEDS_SGD if self.ways[i].feedback and not self.feedback else ""
            row.note = "too coarse" if i in self._too_coarse else row.note

    def _pick(self) -> int:
        """The gentlest of the usable ways that are about as fast as the fastest of them."""
        rows = self.explanation.rows
        usable = [
            i for i, way in enumerate(self.ways)
            if i not in self._too_coarse and (self.feedback or not way.feedback)
        ]  # fmt: skip
        return usable[gentlest([rows[i].gradients_ms for i in usable])]

    def _reason(self) -> str:
        rows = self.explanation.rows
        usable = [i for i, row in enumerate(rows) if not row.note]
        fastest = min(usable, key=lambda i: rows[i].gradients_ms)
        why = (
            "the fastest" if fastest == self.number
            else f"about as fast as the fastest, {rows[fastest].way}, and gentler"
        )  # fmt: skip
        others = [
            f"{row.way} {number(row.gradients_ms)} ms{f' ({row.note})' if row.note else ''}"
            for row in rows if not row.chosen
        ]  # fmt: skip
        return (
            f"{self.way.name}, {why}: a step's gradients take "
            f"{number(rows[self.number].gradients_ms)} ms ({'; '.join(others)})"
        )

    def learn(self, feedback: bool, step: int) -> str:
        """Takes what the ranks have found out about the optimizer.

        :returns: the sentence that says what changes; empty if nothing does
        """
        before, self.feedback = self.way, feedback
        self.choose(self._pick() if feedback or before.feedback else self.number)
        if self.way is before:
            return ""
        return self.explanation.say(
            f"auto: from step {step} on, as the optimizer is {'' if feedback else 'not '}SGD, "
            f"{self._reason()}"
        )

    def measure_again(self, step: int, ratio: float) -> str:
        """Measures all ways anew, on all ranks together, and chooses.

        :param ratio: the times as long as before that gradients take
        :returns: the sentence that says what was found
        :raises HipressError: if a rank dies or is silent meanwhile
        """
        self._take(self._meter.measure())
        return self.explanation.say(
            f"auto: gradients take {ratio:.2g} times as long as they did; from step {step} on "
            f"{self._reason()}"
        )

    def soften(self, problem: str, spread: float, step: int) -> str:
        """Takes a gentler way, as this one is too coarse for these gradients; returns the sentence
        that says so.

        :param problem: what is wrong, as the end of a sentence
        :param spread: see :meth:`hipress.torch.tuning.guard.Guard.spread`; 0 if it is not known
        """
        before, rows = self.way, self.explanation.rows
        self._too_coarse.add(self.number)
        gentler = [
            i for i, way in enumerate(self.ways[: self.number])
            if i not in self._too_coarse and error_of(way.params, spread) <= MAX_ERROR
        ]  # fmt: skip
        self.choose(min(gentler, key=lambda i: rows[i].gradients_ms))
        return self.explanation.say(
            f"auto: {self.way.name} from step {step} on, for {before.name} {problem}"
        )


def choose(
    settings: Settings,
    engine: Engine,
    group: dist.ProcessGroup,
    device: torch.device,
    shapes: Mapping[str, Shape],
    dtypes: Mapping[str, torch.dtype],
    feedback: bool | None = None,
) -> Choice:
    """Chooses by what the model's gradients take by each way, on all ranks together.

    :param settings: of type "auto"
    :param device: where the gradients are
    :param shapes: of the model's gradients by name, in the model's order
    :param dtypes: theirs
    :param feedback: whether the optimizer bears error feedback, if that is known
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    dtype = most_of(sizes, dtypes)
    ways = ways_for(dtype, feedback is not False)
    ranks = Ranks(settings, engine, group, device, dtype)
    meter = Meter(settings, ranks, shapes, ways)
    matrices = sizes.keys() - vectors(shapes)
    if engine.world_size == 1 or max(map(sizes.get, matrices), default=0) < settings.min_size:
        why = "there is one rank" if engine.world_size == 1 else (
            f"no gradient has {settings.min_size} elements (min_size)"
        )  # fmt: skip
        choice = Choice(settings, ways, feedback, meter)
        choice.explanation.sentence = f"auto: uncompressed, for {why}"
    else:
        choice = Choice(settings, ways, feedback, meter, meter.measure())
    if engine.rank == 0:
        _log.warning("%s", choice.explanation.sentence)
    return choice


class StepTimer:
    """Tries a choice in the first steps of training against DDP's own ways.

    A step's time is that from when its first bucket is ready until the next step's is.
    """

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        rows = zip(choice.ways, choice.explanation.rows)
        seconds = [row.gradients_ms / 1e3 if way.hook else math.inf for way, row in rows]
        self._trial = StepTrial(seconds, choice.number)
        self._began: float | None = None
        self.over = choice.way is UNCOMPRESSED
        """Whether all steps go by :attr:`way` from now on."""

    @property
    def way(self) -> Way:
        """The way of the step that has begun."""
        return self._choice.way if self.over else self._choice.ways[self._trial.way]

    def begin_step(self) -> float | None:
        """To be called when a step begins.

        :returns: perhaps seconds, of which the maximum over all ranks is then to be given to
            :meth:`end_block`
        """
        if self.over:
            return None
        began, self._began = self._began, time.perf_counter()
        return None if began is None else self._trial.add(self._began - began)

    def end_block(self, slowest: float) -> tuple[int, str]:
        """Takes the maximum over all ranks.

        :returns: the level and the sentence for the log, which is empty until the trial is over
        """
        self._trial.end_block(slowest)
        self._began = time.perf_counter()
        self.over = self._trial.over
        return self._report() if self.over else (logging.INFO, "")

    def _report(self) -> tuple[int, str]:
        choice, rows = self._choice, self._choice.explanation.rows
        before = choice.way
        for i, seconds in self._trial.seconds.items():
            rows[i].step_ms = 1e3 * seconds
        choice.choose(self._trial.way)
        choice.explanation.predict()
        tried = "; ".join(f"{r.way} {number(r.step_ms)} ms" for r in rows if r.step_ms)
        if choice.way is before:
            return logging.INFO, f"auto: {before.name} stays: a step takes {tried}"
        sentence = choice.explanation.say(
            f"auto: {choice.way.name}, for in training it is as fast as {before.name}, or faster: "
            f"a step takes {tried}"
        )
        return logging.WARNING, sentence
