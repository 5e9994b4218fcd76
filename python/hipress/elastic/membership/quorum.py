"""Which answers are enough for a decision. membership.py says why."""

from __future__ import annotations

from collections.abc import Collection

from hipress.elastic.membership.view import View

MAJORITY, ALL_ALIVE = "majority", "all alive"


def is_majority(view: View, voters: Collection[str]) -> bool:
    """More than half of the view's members, or half of them, rank 0 among these."""
    count = sum(member.id in voters for member in view.members)
    twice, size = 2 * count, len(view.members)
    return twice > size or (twice == size and view.members[0].id in voters)


def reached(view: View, voters: Collection[str], dead: Collection[str]) -> str | None:
    """What kind of quorum the voters are; None: they are none.

    :param voters: ids of the members that answered
    :param dead: ids of members that are certainly dead
    """
    if is_majority(view, voters):
        return MAJORITY
    if all(member.id in voters or member.id in dead for member in view.members):
        return ALL_ALIVE
    return None
