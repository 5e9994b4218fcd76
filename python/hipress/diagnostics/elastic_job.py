"""State of an elastic job from its agents' dumps: the newest view, and the waiting members.

A process of such a job may have nodes of the present view, and dumps of older views may be in the
same folder. A process writes all its dumps together, the agent's first. A node's dump that is older
than the agent's is therefore of an earlier view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hipress.diagnostics.debug import MAX_SECONDS_BETWEEN_JOBS, AgentCall, AgentDump, Dump, Seat
from hipress.diagnostics.wait_graph import listed

STALE_SECONDS = 3.0
"""Age of an agent's last description from which Python's interpreter counts as blocked."""
NOTABLE_SECONDS = 1.0
"""Shortest wait of a member for another that is reported. Shorter ones occur in every step."""


@dataclass(frozen=True)
class WorkerRow:
    """Worker of the job, as a table shows it."""

    slot: int
    rank: int
    """Rank in the newest view, or -1 if the worker is not in it."""
    process: str
    view: int
    """View in which the worker trains, or 0."""
    completed: int
    """Last step of the worker, or -1 if it has no state yet."""
    waits_for: str


class ElasticJob:
    """One elastic job, by the newest dumps of its agents, by slot, and dumps of its nodes."""

    def __init__(self, agents: dict[int, AgentDump], nodes: Iterable[Dump]) -> None:
        self.newest = max(agents.values(), key=lambda agent: (agent.epoch, agent.time))
        # Processes that have ended have also left dumps.
        living = {s: a for s, a in sorted(agents.items()) if a.id not in self.newest.dead}
        self.agents: dict[int, AgentDump] = living
        self.epoch, self.members = self.newest.epoch, self.newest.members
        by_process = {agent.process: agent for agent in self.agents.values()}
        present, self.older = [], 0
        for node in nodes:
            agent = by_process.get((node.host, node.pid))
            if agent is not None and node.time >= agent.time:
                present.append(node)
            else:
                self.older += 1
        last = max((node.view for node in present), default=0)
        self.older += sum(1 for node in present if node.view < last)
        self.nodes = [node for node in present if node.view == last]
        """Dumps of the native job of the view in which the members train."""
        self.view_of_nodes = last

    @property
    def slots(self) -> int:
        """Number of slots of the job."""
        return len(self.newest.agents)

    def _agent_of(self, seat: Seat) -> AgentDump | None:
        agent = self.agents.get(seat.slot)
        return agent if agent is not None and agent.id == seat.id else None

    def rows(self) -> list[WorkerRow]:
        """Return the members by rank, and then all other workers by slot."""
        found = []
        for rank, seat in enumerate(self.members):
            agent = self._agent_of(seat)
            if agent is None:
                found.append(
                    WorkerRow(seat.slot, rank, f"? ({seat.address})", 0, -1, "it has no dump")
                )
            else:
                found.append(self._row(agent, rank))
        ids = {seat.id for seat in self.members}
        return found + [self._row(a, -1) for a in self.agents.values() if a.id not in ids]

    def _row(self, agent: AgentDump, rank: int) -> WorkerRow:
        waits = [_call(call) for call in agent.calls]
        if agent.waits_for:
            waits.append(agent.waits_for.removeprefix("it waits for "))
        process = f"{agent.pid} on {agent.host}"
        about = "\n".join(waits)
        return WorkerRow(agent.slot, rank, process, agent.entered, agent.completed, about)

    # Sentences.

    def headline(self, now: float) -> str:
        """Return a summary of the job and of the dumps."""
        times = [agent.time for agent in self.agents.values()]
        count = len(self.members)
        view = f"view {self.epoch}, {count} worker{'' if count == 1 else 's'}"
        dumps = f"{len(times)} dump{'' if len(times) == 1 else 's'}"
        return (
            f"elastic job of {self.slots} slots (at least {self.newest.min_members} workers), the "
            f"first at {self.newest.agents[0]}: {view if self.epoch else 'no view yet'}; {dumps}, "
            f"{now - max(times):.0f} s old"
        )

    def sentences(self) -> list[str]:
        """Return a sentence for each deviation from normal training."""
        found = [*self._departures(), *self._suspicions(), *self._joiners(), *self._views()]
        found += [*self._calls(), *self._waits(), *self._silent_agents(), *self._absent()]
        return found or [f"all workers are in view {self.epoch}, and none waits for another view"]

    def _departures(self) -> list[str]:
        present = {*self.agents, *(seat.slot for seat in self.members)}
        return [
            f"slot {slot} is not in view {self.epoch}: {why}"
            for slot, why in sorted(self.newest.departed.items())
            if slot not in present
        ]

    def _suspicions(self) -> list[str]:
        by: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
        for agent in self.agents.values():
            for each in agent.suspects:
                by[each.id, each.slot].append((agent.slot, each.silent))
        return [
            f"slot {slot} is suspected by {_slots(who for who, _ in rows)}"
            f"{': they have' if len(rows) > 1 else ', which has'} not heard it for "
            f"{max(seconds for _, seconds in rows):.1f} s"
            for (_, slot), rows in sorted(by.items(), key=lambda item: item[0][1])
        ]

    def _joiners(self) -> list[str]:
        found = []
        inside = {seat.id for seat in self.members}
        at_work = [self._agent_of(seat) for seat in self.members]
        old = [a for a in at_work if a is not None and a.id not in self.newest.joined]
        ahead = self.newest.boundary >= 0 and any(agent.entered < self.epoch for agent in old)
        asks: dict[int, str] = {}
        for agent in self.agents.values():
            asks.update({slot: each for each, slot in agent.joins.items() if each not in inside})
            if agent.joining and agent.id not in inside:
                asks[agent.slot] = agent.id
        if self.epoch:  # other workers describe their waits themselves
            silent = {slot for slot, agent in self.agents.items() if not agent.waits_for}
            silent |= asks.keys() - self.agents.keys()
            found += [f"slot {slot} asks to join" for slot in sorted(silent & asks.keys())]
        if ahead:
            for seat in self.members:
                if seat.id in self.newest.joined:
                    found.append(
                        f"slot {seat.slot} waits to join: step {self.newest.boundary} is the "
                        f"boundary, and {max(agent.completed for agent in old)} is completed"
                    )
        return found

    def _views(self) -> list[str]:
        """Yield sentences about members that are not yet in the newest view."""
        late: dict[str, list[int]] = defaultdict(list)
        for seat in self.members:
            agent = self._agent_of(seat)
            if agent is None:
                continue
            if agent.epoch < self.epoch:
                late[f"not heard of view {self.epoch}"].append(agent.slot)
            elif agent.entered < self.epoch and self.newest.boundary < 0:
                late[f"not begun view {self.epoch}"].append(agent.slot)
        return [f"{_slots(who, 'has', 'have')} {what}" for what, who in late.items()]

    def _calls(self) -> list[str]:
        """Yield sentences about the members that wait in an exchange."""
        by: dict[tuple[int, int, str], list[tuple[int, float]]] = defaultdict(list)
        for agent in self.agents.values():
            for call in agent.calls:
                if call.rank >= 0 and call.seconds >= NOTABLE_SECONDS:
                    about = call.about.removesuffix(f"/{call.rank}")
                    by[call.epoch, call.rank, about].append((agent.slot, call.seconds))
        found = []
        for (epoch, rank, about), rows in by.items():
            waiting = [slot for slot, _ in rows]
            whom = f"rank {rank} of view {epoch}"
            if epoch == self.epoch and rank < len(self.members):
                whom = f"slot {self.members[rank].slot}"
            seconds = max(seconds for _, seconds in rows)
            who = _slots(waiting, "waits", "wait")
            found.append(f"{who} for {whom} to come to '{about}', for {seconds:.1f} s")
        return found

    def _waits(self) -> list[str]:
        by: dict[str, list[int]] = defaultdict(list)
        for agent in self.agents.values():
            if agent.waits_for:
                by[agent.waits_for].append(agent.slot)
        found = []
        for what, who in by.items():
            prefix = "it waits for "
            if what.startswith(prefix):
                found.append(f"{_slots(who, 'waits', 'wait')} for {what[len(prefix) :]}")
            else:
                found.append(f"{_slots(who)}: {what}")
        return found

    def _silent_agents(self) -> list[str]:
        return [
            f"the agent of slot {agent.slot} has not run for {agent.age:.1f} s: something holds "
            f"Python's interpreter in process {agent.pid} on {agent.host}"
            for agent in self.agents.values()
            if agent.age > STALE_SECONDS
        ]

    def _absent(self) -> list[str]:
        absent = [seat.slot for seat in self.members if self._agent_of(seat) is None]
        verb = "is" if len(absent) == 1 else "are"
        return [f"of {_slots(absent)} there {verb} no dump"] if absent else []


def _slots(slots: Iterable[int], verb: str = "", verbs: str = "") -> str:
    """Return "slot 1" or "slots 1 and 2", with the verb that fits."""
    names = [str(slot) for slot in sorted(slots)]
    noun, verb = ("slot", verb) if len(names) == 1 else ("slots", verbs)
    return f"{noun} {listed(names)} {verb}".rstrip()


def _call(call: AgentCall) -> str:
    whom = f"rank {call.rank}: " if call.rank >= 0 else ""
    return f"{whom}{call.about} ({call.seconds:.1f} s)"


def gather(dumps: Iterable[Dump | AgentDump], newest: float) -> tuple[list[ElasticJob], list[Dump]]:
    """Return the elastic jobs with recent dumps, and the nodes of all other jobs."""
    dumps = list(dumps)
    by_job: dict[tuple[str, ...], list[AgentDump]] = defaultdict(list)
    for dump in sorted(dumps, key=lambda dump: dump.time):
        if isinstance(dump, AgentDump):
            by_job[dump.agents].append(dump)
    processes = {dump.process: dump.agents for found in by_job.values() for dump in found}
    nodes: dict[tuple[str, ...], list[Dump]] = defaultdict(list)
    others = []
    for dump in dumps:
        if isinstance(dump, Dump):
            job = processes.get((dump.host, dump.pid))
            (others if job is None else nodes[job]).append(dump)
    jobs = []
    for job, found in by_job.items():
        last = found[-1].time
        if last <= newest - MAX_SECONDS_BETWEEN_JOBS:
            continue
        recent = {dump.slot: dump for dump in found if dump.time > last - MAX_SECONDS_BETWEEN_JOBS}
        jobs.append(ElasticJob(recent, nodes[job]))
    return jobs, others
