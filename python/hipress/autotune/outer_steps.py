"""Type "auto" of training that synchronizes weights every H steps (DiLoCo), in any framework.

After some inner steps were timed, all ranks measure a synchronization by each method, and choose
method, fragments and delay. A synchronization costs the time for which workers wait for it: all of
it, or with a delay of d inner steps the part that these do not hide. The selection prefers quality.
Nothing is compressed if ranks wait at most :data:`MAX_WAITING` of the time. Otherwise a codec is
used, because these codecs kept the loss. Only if ranks wait longer with all codecs, there is a
delay. It is as short as possible, because late results cost quality (Douillard et al., Streaming
DiLoCo, arXiv:2501.18512, figure 9). A model in several fragments needs a shorter delay. Every rank
that receives the same times makes the same choice.

In training the ranks monitor how long synchronizations travel. The rank that begins one last waits
for no other, so the shortest time is the network's. If it changes, the ranks choose again.
"""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hipress.autotune.explanation import Explanation, Row, number
from hipress.autotune.frontend import MAX_ELEMENTS, TuningFrontend
from hipress.autotune.journal import TuningJournal
from hipress.autotune.measurement import Measurement, least_lossy, measure_alone
from hipress.autotune.methods import OUTER_METHODS, UNCOMPRESSED, Method
from hipress.autotune.network_watch import NetworkWatch

MAX_WAITING = 0.01
"""Share of the time that ranks may wait before a more lossy method or a delay is used."""
WHILE_COMPUTING = 1.25
"""Time of a fragment while inner steps run, over its time alone: both need the processors."""
MAX_FRAGMENTS = 8
"""Maximum number of fragments of a model, because each needs separate round trips."""
FIRST_STEPS = 5
"""Maximum inner steps before the choice. If there are several, the first is not timed."""


class OuterSchedule(NamedTuple):
    """Method, fragments and delay of outer steps."""

    method: int
    """Index of the method."""
    fragments: int
    delay: int
    """Inner steps for which a fragment may travel."""
    waiting: float
    """Predicted share of the time that ranks wait."""


def first_steps(sync_every: int) -> int:
    """Return the inner step after which the choice is made. Before it nothing is compressed."""
    return max(1, min(FIRST_STEPS, sync_every // 4))


def waiting(fragments: Sequence[float], step: float, sync_every: int, delay: int) -> float:
    """Return the share of the time that ranks wait.

    ``fragments`` are the seconds of each fragment's synchronization alone, and ``step`` those of an
    inner step.
    """
    if not delay:
        waited = sum(fragments)
    else:
        travel = [WHILE_COMPUTING * each for each in fragments]
        late = sum(max(each - delay * step, 0.0) for each in travel)
        waited = max(late, sum(travel) - sync_every * step)
    return waited / (sync_every * step + waited)


def least_lossy_method(shares: Sequence[float], seconds: Sequence[float]) -> int:
    """Return the index of the first method with a small share, otherwise of a fast one."""
    few = [index for index, share in enumerate(shares) if share <= MAX_WAITING]
    return few[0] if few else least_lossy(seconds)


def shortest_delay(fragments: Sequence[float], step: float, sync_every: int) -> int:
    """Return the fewest inner steps of delay with which ranks hardly wait, or not longer."""
    least = waiting(fragments, step, sync_every, sync_every - 1)
    enough = max(MAX_WAITING, least + MAX_WAITING)
    return next(
        delay
        for delay in range(sync_every)
        if waiting(fragments, step, sync_every, delay) <= enough
    )


def fragment_counts(sync_every: int) -> list[int]:
    """Return the numbers of fragments, none of which is synchronized before the choice."""
    most = min(MAX_FRAGMENTS, sync_every // first_steps(sync_every))
    return [number for number in (1, 2, 4, 8) if number <= most]


def choose_fragments(
    seconds: Callable[[int], Sequence[float]],
    numbers: Sequence[int],
    delay: int | None,
    step: float,
    sync_every: int,
) -> tuple[int, int, float]:
    """Choose the number of fragments with the shortest delay, or for which a given delay suffices.

    ``seconds`` measures the synchronization of each of so many fragments alone, and its results are
    equal on all ranks. Return fragments, delay, and the share of the time that ranks wait.
    """
    found = []
    for count in numbers:
        each = seconds(count)
        steps = shortest_delay(each, step, sync_every) if delay is None else delay
        found.append((count, steps, waiting(each, step, sync_every, steps)))
        if steps <= 1 and found[-1][2] <= MAX_WAITING:
            break  # no delay is shorter
    if delay is None:
        return min(found, key=lambda each: (each[1], each[0]))
    return next((each for each in found if each[2] <= MAX_WAITING), min(found, key=lambda e: e[2]))


_log = logging.getLogger("hipress")


class OuterFrontend(TuningFrontend):
    """Pseudo-gradients of outer steps, for an :class:`OuterStepController`."""

    compresses_any: bool
    """Whether any pseudo-gradient may be compressed."""

    def measure(self, methods: Sequence[Method]) -> list[Measurement]:
        """Measure the pseudo-gradients by each method, the least lossy first."""
        with self.measuring():
            return [
                measure_alone(
                    lambda size, method=method: self.time_gradients(method, size),
                    self.elements,
                    MAX_ELEMENTS,
                    self.first_elements,
                )
                for method in methods
            ]

    def time_fragments(self, method: Method, count: int) -> list[float]:
        """Return the seconds of each of so many fragments alone, if that may be chosen."""
        raise NotImplementedError

    @property
    def outer_methods(self) -> Sequence[Method]:
        """Methods for the pseudo-gradients, the least lossy first."""
        return OUTER_METHODS if self.compresses_any else (UNCOMPRESSED,)


class OuterStepController:
    """Tuner of the outer steps of one rank, each after ``sync_every`` inner steps.

    It may choose among the numbers of ``fragments``, in ascending order, and the ``delay`` if that
    is None.
    """

    def __init__(
        self,
        frontend: OuterFrontend,
        sync_every: int,
        fragments: Sequence[int] = (1,),
        delay: int | None = 0,
    ) -> None:
        self._frontend, self._methods = frontend, frontend.outer_methods
        self._sync_every, self._numbers, self._delay = sync_every, fragments, delay
        self._alone = ""
        if frontend.num_ranks == 1:
            self._alone = f"there is one {frontend.rank_noun}"
        self._first = first_steps(sync_every)
        self._count, self._steps = 0, deque(maxlen=max(1, self._first - 1))
        self._resumed = self._step_began = time.perf_counter()
        self._network = NetworkWatch()
        self._travel: dict[int, float] = {}
        """Seconds of each fragment's last synchronization."""
        self._reduction: Any = None
        self.schedule: OuterSchedule | None = None
        """The choice."""
        self.explanation = Explanation(f"auto: nothing is measured before step {self._first}")
        peers = frontend.num_ranks
        raw = 4 * frontend.elements * 2 * (peers - 1) / peers / sync_every
        self._journal = TuningJournal(frontend.log_rank, raw, frontend.bytes_sent)

    @property
    def method(self) -> Method:
        """The chosen method."""
        return self._methods[self.schedule.method]

    def after_step(self, step: int) -> OuterSchedule | None:
        """End inner step ``step``, from 1, and return a new schedule if there is one."""
        self._steps.append(time.perf_counter() - self._resumed)
        self._count += 1
        before = self.schedule
        if before is None:
            if self._count >= self._first:
                self._choose("auto: ")
        elif step % self._sync_every == 0:
            self._watch(step, self._sync_every)
        self._write(step, before)
        return self.schedule if self._is_new(before) else None

    def before_outer_step(
        self, step: int, steps: int, seconds: float, known: Mapping[str, Any] | None = None
    ) -> None:
        """Begin an outer step in which all weights travel at once, by the choice.

        This replaces :meth:`after_step`. There were ``step`` inner steps so far, of them ``steps``
        since the last outer step, in ``seconds`` each. ``known`` is the :meth:`view_state` of the
        last view.
        """
        if self.schedule is None and known and self.load_state_dict(known):
            self._frontend.use(self.method)
        before = self.schedule
        self._steps.append(seconds)
        if before is None:
            self._choose("auto: ")
        else:
            self._watch(step, steps)
        self._write(step, before)
        if self._is_new(before):
            self._frontend.use(self.method)

    def _is_new(self, before: OuterSchedule | None) -> bool:
        return self.schedule is not None and (before is None or self.schedule[:3] != before[:3])

    def _write(self, step: int, before: OuterSchedule | None) -> None:
        if self.explanation.rows:
            if self.schedule is not before:  # the measurement has sent bytes
                self._journal.count_from(step)
            self._journal.write(self.explanation, step, counts=True, figures={})

    def resume(self) -> None:
        """Begin the time of the next inner step."""
        self._resumed = time.perf_counter()

    def begin_schedule(self) -> None:
        """Begin to use the schedule. Earlier synchronizations do not count."""
        self._travel = {}

    def record_travel(self, fragment: int, seconds: float) -> None:
        """Record the seconds of a fragment's synchronization."""
        self._travel[fragment] = seconds

    def _watch(self, step: int, steps: int) -> None:
        now = time.perf_counter()
        reduction, self._reduction = self._reduction, None
        ratio = None
        reductions = self._frontend.reductions
        if reduction is not None:
            longest, seconds = reductions.end_max(reduction)
            ratio = self._network.end_block(-longest)
            if self.explanation.rows:
                self._chosen_row().step_ms = 1e3 * seconds
        if ratio is not None:
            before = self.schedule
            self._choose(
                f"auto: a synchronization takes {ratio:.2g} times as long as it did; from step "
                f"{step} on "
            )
            self._network.begin(changed=self._is_new(before))
            return
        if not self._alone and len(self._travel) == self.schedule.fragments:
            mean = (now - self._step_began) / steps
            self._reduction = reductions.begin_max([-sum(self._travel.values()), mean])
        self._step_began = now

    def _step_seconds(self) -> float:
        return statistics.median(self._steps)

    def _chosen_row(self) -> Row:
        return self.explanation.rows[self.schedule.method]

    def _choose(self, begin: str) -> None:
        """Choose on all ranks together. The explanation's sentence begins with ``begin``."""
        frontend, count, delay = self._frontend, self._numbers[0], self._delay or 0
        if self.schedule is None:
            self.explanation.sentence = ""  # that nothing was measured
        if self._alone:
            self.schedule = OuterSchedule(0, count, delay, 0.0)
            self._explain(f"{begin}{self.method.name}, for {self._alone}")
            return
        (step,) = frontend.reductions.max(self._step_seconds())
        found = frontend.measure(self._methods)
        every = self._sync_every
        shares = [waiting([m.seconds / count] * count, step, every, delay) for m in found]
        index = least_lossy_method(shares, [m.seconds for m in found])
        self.schedule = OuterSchedule(index, count, delay, shares[index])
        is_free = self._delay is None or (self._delay and len(self._numbers) > 1)
        if shares[index] > MAX_WAITING and is_free:
            self.schedule = OuterSchedule(
                index,
                *choose_fragments(
                    lambda number: frontend.time_fragments(self._methods[index], number),
                    self._numbers,
                    self._delay,
                    step,
                    every,
                ),
            )
        _, count, delay, _ = self.schedule
        self._travel = {}
        rows = []
        for method, m in zip(self._methods, found):
            row = Row(method.name, 1e3 * m.seconds, min(1.0, m.elements / frontend.elements))
            share = waiting([m.seconds / count] * count, step, every, delay)
            row.predicted_ms = 1e3 * step / (1 - share)
            rows.append(row)
        rows[index].chosen = True
        self.explanation.rows, self.explanation.next_steps = rows, [self._advice()]
        self._explain(begin + self._reason(step))
        self._step_began = time.perf_counter()  # without the measurement

    def _explain(self, sentence: str) -> None:
        self.explanation.say(sentence)
        if self._frontend.log_rank == 0:
            _log.warning("%s", sentence)

    def _reason(self, step: float) -> str:
        rows, (_, fragments, delay, share) = self.explanation.rows, self.schedule
        how = ""
        if fragments > 1 or delay:
            parts = f"{fragments} fragments" if fragments > 1 else "one fragment"
            how = f" in {parts} with a delay of {delay} step{'s' * (delay != 1)}"
        rest = "; ".join(f"{r.method} {number(r.gradients_ms)} ms" for r in rows if not r.chosen)
        return (
            f"{self.method.name}{how}: of {self._sync_every} steps of {number(1e3 * step)} ms "
            f"ranks wait {100 * share:.2g}% of the time; a synchronization takes "
            f"{number(self._chosen_row().gradients_ms)} ms ({rest})"
        )

    def _advice(self) -> str:
        """Return what would make training faster."""
        share = self.schedule.waiting
        if share <= MAX_WAITING:
            return "a faster network would not pay"
        gain = 1 / (1 - share)
        times = gain if self.schedule.delay else (gain - 1) / MAX_WAITING
        return (
            f"a faster network: training up to {gain:.2f} times as fast; with "
            f"sync_every={math.ceil(times * self._sync_every)}, too"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the choice; empty if there is none yet, or there was nothing to choose."""
        if self.schedule is None or self._alone:
            return {}
        _, fragments, delay, share = self.schedule
        return {"way": self.method.name, "fragments": fragments, "delay": delay, "waiting": share}

    def view_state(self) -> dict[str, Any]:
        """Return the choice, its explanation and the network's usual times, for the next view."""
        found = self.state_dict()
        if found:
            found["explanation"] = msgspec.to_builtins(self.explanation)
            found["network"] = self._network.state_dict()
        return found

    def load_state_dict(self, saved: Mapping[str, Any]) -> OuterSchedule | None:
        """Restore :meth:`state_dict` or :meth:`view_state`, and return the schedule.

        Fragments and a delay that cannot be chosen in this job are those of this job.
        """
        names = [method.name for method in self._methods]
        if saved and saved["way"] in names:
            index = names.index(saved["way"])
            count, delay = saved["fragments"], saved["delay"]
            is_allowed = self._delay in (None, delay) and delay < self._sync_every
            if count not in self._numbers or not is_allowed:
                count, delay = self._numbers[0], self._delay or 0
            self.schedule = OuterSchedule(index, count, delay, saved["waiting"])
            self.explanation.sentence = f"auto: {self.method.name}, as in the state that was loaded"
            if "network" in saved:
                self._network.load_state_dict(saved["network"])
                self.explanation.load(saved["explanation"])
        return self.schedule
