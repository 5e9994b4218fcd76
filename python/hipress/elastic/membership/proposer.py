"""The proposer's part of a decision: one ballot, from its first message to its end."""

from __future__ import annotations

from collections.abc import Collection

from hipress.elastic.membership.acceptor import Acceptor
from hipress.elastic.membership.messages import (
    NO_BALLOT,
    Abandon,
    Accept,
    Ballot,
    Collect,
    Install,
    Promise,
)
from hipress.elastic.membership.successor import Findings, NothingToDo, NotYet, successor
from hipress.elastic.membership.view import View

MAJORITY, ALL_ALIVE = "majority", "all alive"


def is_majority(view: View, voters: Collection[str]) -> bool:
    """Return whether most members vote, or exactly half of them including rank 0."""
    count = sum(member.id in voters for member in view.members)
    twice, size = 2 * count, len(view.members)
    return twice > size or (twice == size and view.members[0].id in voters)


def quorum_of(view: View, voters: Collection[str], dead: Collection[str]) -> str | None:
    """Return the kind of quorum that the voters form, or None. protocol.py has the reasons."""
    if is_majority(view, voters):
        return MAJORITY
    if all(member.id in voters or member.id in dead for member in view.members):
        return ALL_ALIVE
    return None


class Attempt:
    """Proposer's state of one ballot.

    The set of certainly dead members is fixed when the ballot begins, because it is sent to all
    members that answer. If another member dies, the proposer begins a new ballot.

    Args:
        core: the proposer's own state; it has promised this ballot to itself
    """

    def __init__(self, core: Acceptor, ballot: Ballot, planned: bool) -> None:
        self._core = core
        self.base: View = core.newest
        self.ballot = ballot
        self.planned = planned
        self.dead = core.dead_of(self.base)
        self.promises: dict[str, Promise] = {}
        self.heard_slots = {core.me.slot}  # slots whose process is accounted for, or its lack
        self.asked = {member.id: core.now for member in self.base.members}
        self.accepted: set[str] = set()
        self.view: View | None = None  # phase 2 has begun
        self.waits_for = ""
        self._sent = core.now
        self._inconclusive = False

    def begin(self) -> None:
        """Send the request for promises."""
        core = self._core
        self.promises[core.voter(self.base)] = core.own_promise(self.ballot)
        message = Collect(self.base, self.ballot, self.planned, tuple(sorted(self.dead)))
        for slot in core.other_slots():
            core.send(slot, message)

    def resend(self) -> None:
        """Send the request again to members without an answer, or to all if they allow no view."""
        core = self._core
        if core.now - self._sent < core.retry:
            return
        self._sent = core.now
        dead = tuple(sorted(self.dead))
        if self.view is None:
            for slot in core.other_slots() - (set() if self._inconclusive else self.heard_slots):
                core.send(slot, Collect(self.base, self.ballot, self.planned, dead))
        else:
            accept = Accept(self.base, self.ballot, self.view, dead)
            for member in self.base.members:
                if member.id not in self.accepted | self.dead:
                    core.send(member.slot, accept)

    def progress(self) -> View | None:
        """Advance as far as the answers allow. Return the view when it is decided."""
        if self.view is None:
            self._choose()
        if self.view is not None:
            if quorum_of(self.base, self.accepted, self.dead):
                return self.view
            self.waits_for = "a majority to accept the next view"
        return None

    def _choose(self) -> None:
        core, base = self._core, self.base
        waiting = [
            member
            for member in base.members
            if member.id not in self.promises
            and core.is_awaited(member)
            and core.now < self.asked[member.id] + core.answer_timeout
        ]
        if waiting:
            self.waits_for = "the answers of " + ", ".join(map(str, waiting))
            return
        kind = quorum_of(base, self.promises, self.dead)
        self._inconclusive = True  # a process that has answered may have more evidence later
        if kind is None:
            silent = [
                str(member)
                for member in base.members
                if member.id not in self.promises and member.id not in self.dead
            ]
            self.waits_for = (
                f"a majority of view {base.epoch}'s workers, or proof that the rest are dead: "
                f"nothing is heard of {', '.join(silent)}"
            )
            return
        unknown = set(range(len(core.addresses))) - self.heard_slots - core.without_process
        if kind == ALL_ALIVE and unknown:
            self.waits_for = (
                f"an answer from slots {sorted(unknown)}, or proof that no process is there"
            )
            return
        earlier = max(self.promises.values(), key=lambda promise: promise.accepted_ballot)
        if earlier.accepted_ballot > NO_BALLOT:
            self._propose(earlier.accepted_view)
            return
        self.promises[core.voter(base)] = core.own_promise(self.ballot)
        try:
            self._propose(successor(base, self._findings(), core.min_members))
        except NothingToDo:
            core.abandon(Abandon(base.epoch, self.ballot))
        except NotYet as reason:
            self.waits_for = str(reason)
            if self.planned:
                core.abandon(Abandon(base.epoch, self.ballot))

    def _findings(self) -> Findings:
        core = self._core
        joiners = dict(core.joins)
        leaving = {member_id for member_id, at_boundary in core.leaving.items() if at_boundary}
        expelled = {each: p.expelled for each, p in self.promises.items() if p.expelled}
        for promise in self.promises.values():
            leaving.update(promise.leaving)
            joiners.update((member.id, member) for member in promise.joins)
        if core.joining:
            joiners[core.me.id] = core.me
        troubles = [promise.trouble for promise in self.promises.values() if promise.trouble]
        return Findings(
            self.promises,
            [member for member in joiners.values() if core.may_join(member)],
            {**core.why_gone(), **expelled},
            frozenset(leaving),
            core.trouble or (troubles[0] if troubles else ""),
        )

    def _propose(self, view: View | None) -> None:
        assert view is not None
        core = self._core
        self.view = view
        core.accept_own(self.ballot, view)
        self.accepted.add(core.voter(self.base))
        message = Accept(self.base, self.ballot, view, tuple(sorted(self.dead)))
        for member in self.base.members:
            if member.id not in self.dead and member.slot != core.me.slot:
                core.send(member.slot, message)


def announce(core: Acceptor, view: View) -> None:
    """Send the decision to every process of the job."""
    for slot in core.other_slots():
        core.send(slot, Install(view))
