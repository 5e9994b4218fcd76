"""Type "auto" of training that synchronises weights every H steps (DiLoCo), in any framework.

The time of the first inner steps is taken. Then all ranks measure what a synchronisation takes by
each way, and choose as :mod:`hipress.secopa.rounds` says. While training goes on they watch how
long synchronisations are on their way. The rank that begins one last waits for nobody, so the
shortest time is the network's; where that becomes another one, they choose anew.
"""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from hipress.secopa.choice import Measured
from hipress.secopa.explanation import Explanation, Row, number
from hipress.secopa.network_watch import NetworkWatch
from hipress.secopa.rounds import (
    MAX_WAITING,
    Plan,
    choose_fragments,
    first_steps,
    gentlest_way,
    waiting,
)
from hipress.tuning.journal import Journal
from hipress.tuning.ways import Way

_log = logging.getLogger("hipress")


class Front(Protocol):
    """What a front end does for a :class:`RoundChoice`, on all ranks together."""

    rank: int
    """Of whose processes 0 logs."""
    elements: int
    """Of all weights."""
    alone: str
    """Why there is nothing to measure, as the end of a sentence; empty if there is."""
    raw: float
    """Bytes of an uncompressed synchronisation that this rank sends."""

    def measure(self) -> Sequence[Measured]:
        """What a synchronisation takes by each way, round trips counted once.

        :raises HipressError: if a rank dies or is silent meanwhile
        """

    def fragments(self, way: int, count: int) -> list[float]:
        """Seconds that each of so many fragments takes by the way of this number, alone.

        :raises HipressError: likewise
        """

    def begin_maxima(self, values: Sequence[float]) -> Any:
        """Begins to compare numbers; waits for nobody."""

    def end_maxima(self, begun: Any) -> list[float]:
        """The maxima over all ranks, with the same bits on each.

        :raises HipressError: if a rank dies or is silent meanwhile
        """

    def bytes_sent(self) -> int:
        """Bytes that this rank has sent so far."""


class RoundChoice:
    """How one rank's weights are synchronised.

    :param ways: from gentle to lossy
    :param sync_every: H
    :param fragments: their numbers that may be chosen, from few to many; one if it is given
    :param delay: in inner steps; None: it is to be chosen
    """

    def __init__(
        self, front: Front, ways: Sequence[Way], sync_every: int, fragments: Sequence[int] = (1,),
        delay: int | None = 0,
    ) -> None:  # fmt: skip
        self._front, self._ways, self._sync_every = front, ways, sync_every
        self._numbers, self._delay = fragments, delay
        self._first = first_steps(sync_every)
        self._count, self._steps = 0, deque(maxlen=max(1, self._first - 1))
        self._resumed = self._round_began = time.perf_counter()
        self._network, self._travel, self._asked = NetworkWatch(), {}, None
        self.plan: Plan | None = None
        """What was chosen."""
        self.explanation = Explanation(f"auto: nothing is measured before step {self._first}")
        self._journal = Journal(front.rank, front.raw / sync_every, front.bytes_sent())

    @property
    def way(self) -> Way:
        """The one that was chosen."""
        return self._ways[self.plan.way]

    # Every inner step.

    def after_step(self, step: int) -> Plan | None:
        """To be called when an inner step is made, before anything is sent after it.

        :param step: its number, from 1
        :returns: a plan that is new, if there is one: on all ranks at the same step
        :raises HipressError: if a rank dies or is silent meanwhile
        """
        self._steps.append(time.perf_counter() - self._resumed)
        self._count += 1
        before = self.plan
        if before is None:
            if self._count >= self._first:
                self._choose("auto: ")
        elif step % self._sync_every == 0:
            self._watch(step, self._sync_every)
        self._write(step, before)
        return self.plan if self._is_new(before) else None

    def _is_new(self, before: Plan | None) -> bool:
        return self.plan is not None and (before is None or self.plan[:3] != before[:3])

    def _write(self, step: int, before: Plan | None) -> None:
        if self.explanation.rows:
            sent = self._front.bytes_sent
            if self.plan is not before:  # measuring has sent something, too
                self._journal.count_from(step, sent())
            self._journal.write(self.explanation, step, sent, counts=True, figures={})

    def before_round(self, step: int, steps: int, seconds: float) -> bool:
        """To be called before each synchronisation where all weights travel at once, in the place
        of :meth:`after_step`.

        :param step: after which it is, from 1
        :param steps: since the last one
        :param seconds: of an inner step, in the mean
        :returns: whether there is a new choice, likewise
        :raises HipressError: likewise
        """
        before = self.plan
        self._steps.append(seconds)
        if before is None:
            self._choose("auto: ")
        else:
            self._watch(step, steps)
        self._write(step, before)
        return self._is_new(before)

    def resume(self) -> None:
        """To be called when the next inner step may begin, and its time does."""
        self._resumed = time.perf_counter()

    def begin_plan(self) -> None:
        """To be called when the plan is in use: what was on its way before does not count."""
        self._travel = {}

    def took(self, fragment: int, seconds: float) -> None:
        """Takes how long a fragment was on its way."""
        self._travel[fragment] = seconds

    def _watch(self, step: int, steps: int) -> None:
        now = time.perf_counter()
        asked, self._asked = self._asked, None
        ratio = None
        if asked is not None:
            longest, seconds = self._front.end_maxima(asked)
            ratio = self._network.end_block(-longest)
            if self.explanation.rows:
                self._chosen_row().step_ms = 1e3 * seconds
        if ratio is not None:
            before = self.plan
            self._choose(
                f"auto: a synchronisation takes {ratio:.2g} times as long as it did; from step "
                f"{step} on "
            )
            self._network.begin(changed=self._is_new(before))
            return
        if not self._front.alone and len(self._travel) == self.plan.fragments:
            mean = (now - self._round_began) / steps
            self._asked = self._front.begin_maxima([-sum(self._travel.values()), mean])
        self._round_began = now

    def _step_seconds(self) -> float:
        return statistics.median(self._steps)

    def _chosen_row(self) -> Row:
        return self.explanation.rows[self.plan.way]

    # Choosing.

    def _choose(self, begin: str) -> None:
        """Chooses, on all ranks together, and says why after these words."""
        front, count, delay = self._front, self._numbers[0], self._delay or 0
        if self.plan is None:
            self.explanation.sentence = ""  # that nothing is chosen yet
        if front.alone:
            self.plan = Plan(0, count, delay, 0.0)
            self._say(f"{begin}{self.way.name}, for {front.alone}")
            return
        (step,) = front.end_maxima(front.begin_maxima([self._step_seconds()]))
        found = front.measure()
        every = self._sync_every
        shares = [waiting([m.seconds / count] * count, step, every, delay) for m in found]
        way = gentlest_way(shares, [m.seconds for m in found])
        self.plan = Plan(way, count, delay, shares[way])
        free = self._delay is None or (self._delay and len(self._numbers) > 1)
        if shares[way] > MAX_WAITING and free:
            chosen = choose_fragments(
                lambda number: front.fragments(way, number), self._numbers, self._delay, step, every
            )
            self.plan = Plan(way, *chosen)
        _, count, delay, _ = self.plan
        self._travel = {}
        rows = []
        for each, m in zip(self._ways, found):
            row = Row(each.name, 1e3 * m.seconds, min(1.0, m.elements / front.elements))
            share = waiting([m.seconds / count] * count, step, every, delay)
            row.predicted_ms = 1e3 * step / (1 - share)
            rows.append(row)
        rows[way].chosen = True
        self.explanation.rows, self.explanation.next_steps = rows, [self._advice()]
        self._say(begin + self._reason(step))
        self._round_began = time.perf_counter()  # not with what was measured

    def _say(self, sentence: str) -> None:
        self.explanation.say(sentence)
        if self._front.rank == 0:
            _log.warning("%s", sentence)

    def _reason(self, step: float) -> str:
        rows, (_, fragments, delay, share) = self.explanation.rows, self.plan
        how = ""
        if fragments > 1 or delay:
            parts = f"{fragments} fragments" if fragments > 1 else "one fragment"
            how = f" in {parts} with a delay of {delay} step{'s' * (delay != 1)}"
        others = "; ".join(f"{r.way} {number(r.gradients_ms)} ms" for r in rows if not r.chosen)
        return (
            f"{self.way.name}{how}: of {self._sync_every} steps of {number(1e3 * step)} ms ranks "
            f"wait {100 * share:.2g}% of the time; a synchronisation takes "
            f"{number(self._chosen_row().gradients_ms)} ms ({others})"
        )

    def _advice(self) -> str:
        """What would make training faster."""
        share = self.plan.waiting
        if share <= MAX_WAITING:
            return "a faster network would not pay"
        gain = 1 / (1 - share)
        times = gain if self.plan.delay else (gain - 1) / MAX_WAITING
        return (
            f"a faster network: training up to {gain:.2f} times as fast; with "
            f"sync_every={math.ceil(times * self._sync_every)}, too"
        )

    # Checkpoints.

    def state_dict(self) -> dict[str, Any]:
        """What was chosen; empty if nothing was yet, or there was nothing to choose."""
        if self.plan is None or self._front.alone:
            return {}
        _, fragments, delay, share = self.plan
        return {"way": self.way.name, "fragments": fragments, "delay": delay, "waiting": share}

    def to_carry(self) -> dict[str, Any]:
        """That, and what explains it and is usual on this network, for another job at once."""
        about = {"explanation": asdict(self.explanation), "network": self._network.state_dict()}
        found = self.state_dict()
        return {**found, **about} if found else {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> Plan | None:
        """Goes on with what :meth:`state_dict` or :meth:`to_carry` returned; returns the plan.
        Fragments and a delay that are not this job's to choose are those of this job."""
        names = [way.name for way in self._ways]
        if saved and saved["way"] in names:
            way = names.index(saved["way"])
            cut, delay = saved["fragments"], saved["delay"]
            if cut not in self._numbers or delay >= self._sync_every or (
                self._delay not in (None, delay)
            ):
                cut, delay = self._numbers[0], self._delay or 0
            self.plan = Plan(way, cut, delay, saved["waiting"])
            self.explanation.sentence = f"auto: {self.way.name}, as in the state that was loaded"
            if "network" in saved:
                self._network.load_state_dict(saved["network"])
                self.explanation.load(saved["explanation"])
        return self.plan
