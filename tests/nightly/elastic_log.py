"""Logs of an elastic job's workers, and what they say about a fault.

Each worker appends to ``worker-SLOT.jsonl`` one line for each event: ``time`` (unix seconds),
``pid``, ``slot``, ``event`` (start, view, step, round, rollback, copied, end), ``epoch``, ``step``,
``size``, ``rank``, ``digest`` (of the weights after the step or round), ``loss``,
``residual_written_off``.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

Event = dict[str, object]
ALL_STAY = ("pause", "supervisor")
"""Kinds of faults after which no worker leaves."""


class Logs:
    """Events of all slots, in the order written; `read` brings them up to date."""

    def __init__(self, folder: Path, slots: int) -> None:
        self._files = [folder / f"worker-{slot}.jsonl" for slot in range(slots)]
        self._read = [0] * slots
        self.events: list[list[Event]] = [[] for _ in range(slots)]
        self.torn = 0
        """Lines that a kill has cut off."""

    def read(self) -> None:
        """Read what was written since the last call."""
        for slot, path in enumerate(self._files):
            try:
                with open(path, "rb") as file:
                    file.seek(self._read[slot])
                    text = file.read()
            except FileNotFoundError:
                continue
            whole = text[: text.rfind(b"\n") + 1]
            self._read[slot] += len(whole)
            for line in whole.splitlines():
                # After a torn line the slot's next process has continued in the same line.
                start = line.rfind(b'{"time"')
                self.torn += start > 0
                try:
                    self.events[slot].append(json.loads(line[max(start, 0) :]))
                except ValueError:
                    self.torn += 1

    def pid(self, slot: int) -> int | None:
        """Return the process id of the slot's last process, or None if it has none yet."""
        return self.events[slot][-1]["pid"] if self.events[slot] else None

    def last_step(self, slot: int) -> Event | None:
        """Return the last completed step of the slot's last process."""
        pid = self.pid(slot)
        for event in reversed(self.events[slot]):
            if event["pid"] != pid:
                return None
            if event["event"] == "step":
                return event
        return None

    def steps(self, slot: int, since: float = 0.0) -> list[Event]:
        """Return the slot's completed steps from a time on."""
        return [e for e in self.events[slot] if e["event"] == "step" and e["time"] > since]


@dataclass
class Fault:
    """Fault and its consequences. Times are unix seconds."""

    kind: str
    victims: list[int]
    time: float
    struck: float = 0.0
    """Time when the fault was complete: the second signal of a double fault, the end of a pause."""
    pids: dict[int, int] = field(default_factory=dict)
    """Process ids of all slots at that time."""
    epochs: dict[int, int] = field(default_factory=dict)
    """Epoch of each survivor's last step before `struck`."""
    step: int = 0
    """Last completed step before the fault."""
    recovered: float | None = None
    """Seconds from the fault until each survivor has completed a step without its victims; where
    all stay, with them."""
    lost: int = 0
    """Steps that a survivor had completed and had to do again."""
    rejoin: list[float] = field(default_factory=list)
    """Seconds from a restarted process's start to its first completed step, for each victim."""
    whole: float | None = None
    """Seconds from the fault until all workers trained again."""
    written_off: float | None = None
    """Largest part of the residual that was discarded until then."""
    wrong: list[str] = field(default_factory=list)

    def survivors(self) -> list[int]:
        """Return the slots that were not hit."""
        return [slot for slot in self.pids if slot not in self.victims]

    def row(self) -> dict[str, object]:
        """Return a row for the results' file."""
        row = asdict(self)
        del row["pids"], row["epochs"]
        return row


def first_step_after(logs: Logs, fault: Fault, slot: int) -> Event | None:
    """Return the first step that shows that a survivor trains: in a view that came after the fault,
    or, where all stay, in any view."""
    for event in logs.steps(slot, fault.time):
        if event["epoch"] > fault.epochs[slot]:
            return event
        if fault.kind in ALL_STAY and event["time"] > fault.struck:
            return event
    return None


def steps_done_again(logs: Logs, fault: Fault, slot: int) -> int:
    """Count the steps that a survivor had completed and completed again in a later view."""
    before = [e["step"] for e in logs.steps(slot) if e["epoch"] <= fault.epochs[slot]]
    after = first_step_after(logs, fault, slot)
    if not before or after is None or after["epoch"] <= fault.epochs[slot]:
        return 0
    return max(0, max(before) - after["step"] + 1)


def rejoining(logs: Logs, slot: int, old: int) -> float | None:
    """Return the seconds from the start of the slot's process to its first step, if it is a new
    one."""
    pid = logs.pid(slot)
    events = [event for event in logs.events[slot] if event["pid"] == pid]
    steps = [event["time"] for event in events if event["event"] == "step"]
    return steps[0] - events[0]["time"] if pid != old and steps else None


def trains_whole(logs: Logs, since: float) -> bool:
    """Return whether all slots have completed a step of one view, with all of them in it."""
    last = [logs.last_step(slot) for slot in range(len(logs.events))]
    if any(event is None or event["time"] <= since for event in last):
        return False
    return {(e["epoch"], e["size"]) for e in last} == {(last[0]["epoch"], len(last))}


def different_weights(events: Iterable[list[Event]]) -> tuple[int, list[str]]:
    """Compare the weights among the members of a view, after each step that has digests of them.

    Returns:
        how many steps could be compared between two members or more, and what was different.
    """
    digests: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    wrong = []
    for slot, of_slot in enumerate(events):
        for event in of_slot:
            if event.get("digest") is not None:
                seen = digests[event["epoch"], event["step"]]
                if seen.setdefault(slot, event["digest"]) != event["digest"]:
                    wrong.append(
                        f"worker {slot} has done step {event['step']} of epoch "
                        f"{event['epoch']} twice, with different weights"
                    )
    for (epoch, step), seen in sorted(digests.items()):
        if len(set(seen.values())) > 1:
            wrong.append(f"after step {step} of epoch {epoch} the weights are different: {seen}")
    return sum(len(seen) > 1 for seen in digests.values()), wrong


def two_lineages(events: Iterable[list[Event]]) -> list[str]:
    """Find workers that trained on in two lineages, as both halves of a cut network would.

    In one lineage each rank of a view has one worker, and after a view has completed a step no
    worker continues in an earlier view. A worker that was stopped may still complete the step that
    it had begun. Only steps with a digest count, because DiLoCo's inner steps are not synchronized.

    Returns:
        Sentences that describe the evidence of a second lineage.
    """
    ranks: dict[tuple[int, int], set[int]] = defaultdict(set)
    times: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for slot, of_slot in enumerate(events):
        for event in of_slot:
            if event.get("digest") is not None:
                times[event["epoch"]][slot].append(event["time"])
                if "rank" in event:
                    ranks[event["epoch"], event["rank"]].add(slot)
    wrong = [
        f"workers {sorted(slots)} have both been rank {rank} of epoch {epoch}"
        for (epoch, rank), slots in sorted(ranks.items())
        if len(slots) > 1
    ]
    begun = {
        epoch: min(min(each) for each in of_epoch.values()) for epoch, of_epoch in times.items()
    }
    for epoch, of_epoch in sorted(times.items()):
        later = min((at for each, at in begun.items() if each > epoch), default=math.inf)
        for slot, completed in sorted(of_epoch.items()):
            late = sum(time > later for time in completed)
            if late > 1:
                wrong.append(
                    f"worker {slot} has completed {late} steps of epoch {epoch} after "
                    "others had trained in a later one"
                )
    return wrong


def spread(values: list[float]) -> dict[str, float | None]:
    """Return the median and the worst value."""
    if not values:
        return {"median": None, "worst": None}
    return {"median": statistics.median(values), "worst": max(values)}


def costs(faults: list[Fault]) -> dict[str, dict[str, float | None]]:
    """Return what faults cost, as the columns of the table."""
    return {
        "next_step_s": spread([f.recovered for f in faults if f.recovered is not None]),
        "rejoin_s": spread([seconds for fault in faults for seconds in fault.rejoin]),
        "whole_s": spread([fault.whole for fault in faults if fault.whole is not None]),
        "steps_lost": spread([fault.lost for fault in faults if fault.recovered is not None]),
    }
