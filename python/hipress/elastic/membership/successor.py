"""Choice of the next view from the members' promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hipress.elastic.membership.messages import Promise
from hipress.elastic.membership.view import NO_STATE, Member, View

LEAD = 2  # steps between the highest one completed and the boundary


class NotYet(Exception):
    """Error: no view can follow now. The text states what is missing."""


class NothingToDo(Exception):
    """Error: no change is needed, and the present view can stay."""


@dataclass(frozen=True)
class Findings:
    """Knowledge of the proposer from its promises.

    Args:
        promises: by id of the member of the base
        joiners: processes that ask to join
        gone: reasons why members are excluded, by id: dead, silent or leaving at once
        leaving: ids of members that leave at the next boundary
        trouble: why the epoch has to end at once; empty: it has not
    """

    promises: Mapping[str, Promise]
    joiners: Sequence[Member]
    gone: Mapping[str, str]
    leaving: frozenset[str]
    trouble: str


def successor(base: View, findings: Findings, min_members: int) -> View:
    """Return the view after ``base``.

    Raises:
        NotYet: too few members, no member has the job's state, or a planned change has to wait
        NothingToDo: no member fails, joins or leaves
    """
    if base.epoch == 0:
        return _first(findings, min_members)
    present = [
        member
        for member in base.members
        if member.id in findings.promises and member.id not in findings.gone
    ]
    survivors = _connected(present, findings.promises)
    failed = len(survivors) < len(base.members) or bool(findings.trouble)
    stay = [member for member in survivors if member.id not in findings.leaving]
    joiners = _joiners(findings, stay)
    if not failed and not joiners and len(stay) == len(base.members):
        raise NothingToDo
    if not failed and any(findings.promises[each.id].entered < base.epoch for each in base.members):
        raise NotYet("all members to begin with the present view")
    members = (*stay, *joiners)
    _enough(len(members), min_members)
    states = {member.id: findings.promises[member.id] for member in stay}
    has_state = [member for member in stay if states[member.id].step > NO_STATE]
    if not has_state:
        if base.step > 0 or not stay:
            raise NotYet("a member with the job's state: nobody alive has it, so the job is over")
        has_state = stay  # nothing has been trained yet, so any member's beginning will do
    source = max(  # of equals, max takes the first: the lowest rank
        has_state, key=lambda member: (states[member.id].step, states[member.id].clean)
    )
    joined = tuple(member.id for member in joiners)
    reasons = _reasons(base, findings, {member.id for member in members}, survivors)
    epoch = base.epoch + 1
    if not failed:
        boundary = max(promise.step for promise in findings.promises.values()) + LEAD
        return View(epoch, members, boundary, source.id, joined, boundary, reasons, joined)
    step = max(states[source.id].step, 0)
    behind = tuple(
        member.id
        for member in stay
        if member != source and (states[member.id].step != step or not states[member.id].clean)
    )
    return View(epoch, members, step, source.id, behind + joined, None, reasons, joined)


def _first(findings: Findings, min_members: int) -> View:
    members = tuple(_joiners(findings, []))
    _enough(len(members), min_members)
    return first_view(members, 1)


def first_view(members: tuple[Member, ...], epoch: int) -> View:
    """Return a view with which training begins: all members copy the first member's weights."""
    ids = tuple(member.id for member in members)
    return View(epoch, members, 0, ids[0], ids[1:], None, (), ids)


def _enough(count: int, min_members: int) -> None:
    if count < min_members:
        raise NotYet(f"{min_members} members or more: there are {count}")


def _joiners(findings: Findings, stay: Sequence[Member]) -> list[Member]:
    """Return the processes that can be admitted: not suspected, and at a free slot."""
    suspected = {each for promise in findings.promises.values() for each in promise.suspects}
    taken = {member.slot for member in stay}
    return sorted(
        (
            member
            for member in findings.joiners
            if member.id not in findings.gone
            and member.id not in suspected
            and member.slot not in taken
        ),
        key=lambda member: member.slot,
    )


def _connected(present: Sequence[Member], promises: Mapping[str, Promise]) -> list[Member]:
    """Return members that all reach each other, by removing those with most broken links."""
    kept = list(present)
    while True:
        broken = {member.id: 0 for member in kept}
        for member in kept:
            for suspect in promises[member.id].suspects:
                if suspect in broken:
                    broken[member.id] += 1
                    broken[suspect] += 1
        worst = max(reversed(kept), key=lambda member: broken[member.id], default=None)
        if worst is None or not broken[worst.id]:
            return kept
        kept.remove(worst)


def _reasons(
    base: View, findings: Findings, chosen: set[str], survivors: Sequence[Member]
) -> tuple[tuple[Member, str], ...]:
    kept = {member.id for member in survivors}

    def why(member: Member) -> str:
        if member.id in findings.gone:
            return findings.gone[member.id]
        if member.id in kept:
            return "it left"
        if member.id in findings.promises:
            return "it and another member could not reach each other"
        return "it did not answer"

    return tuple((member, why(member)) for member in base.members if member.id not in chosen)
