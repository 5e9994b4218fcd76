"""Rules for which answers suffice for a decision. The reasons are in protocol.py."""

from __future__ import annotations

from collections.abc import Collection

from hipress.elastic.membership.view import View

MAJORITY, ALL_ALIVE = "majority", "all alive"


def is_majority(view: View, voters: Collection[str]) -> bool:
    """Return whether most members vote, or exactly half of them including rank 0."""
    count = sum(member.id in voters for member in view.members)
    twice, size = 2 * count, len(view.members)
    return twice > size or (twice == size and view.members[0].id in voters)


def reached(view: View, voters: Collection[str], dead: Collection[str]) -> str | None:
    """Return the kind of quorum that the voters form, or None if they do not form one.

    Args:
        voters: ids of the members that answered
        dead: ids of members that are certainly dead
    """
    if is_majority(view, voters):
        return MAJORITY
    if all(member.id in voters or member.id in dead for member in view.members):
        return ALL_ALIVE
    return None
