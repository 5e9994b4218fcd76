"""How a job begins, or begins again, where no process can say whether it is its slot's first.

Such processes count from the clock (``view.UNCOUNTED``) and have no vote for the first view: one
that died may have given it before. Slot 0's process decides alone, and needs all slots for that. It
sends the processes that are at them now (*found*). Each that knows no view with a living member
answers (*consent*), and from then on ignores what any earlier process of any slot has sent. With
the consent of all, the view of these processes is decided.

WHY THERE IS ONE. Let another process at slot 0 have decided on a view before. If anybody who works
in it lives, it is at a slot, and does not consent. If nobody does, those who consented cannot learn
of that view any more: whoever could tell them has been followed by another process at its slot, and
is ignored.
"""

from __future__ import annotations

from hipress.elastic.membership.acceptor import Acceptor
from hipress.elastic.membership.messages import Consent, Found
from hipress.elastic.membership.successor import first_view
from hipress.elastic.membership.view import Member, View


class Founder:
    """Slot 0's part in it.

    :param core: the process's own state
    """

    def __init__(self, core: Acceptor) -> None:
        self._core = core
        self._number = 0
        self._members: tuple[Member, ...] = ()
        self._epochs: dict[str, int] = {}  # that those who consented know of, by id
        self._next = core.now

    def progress(self) -> View | None:
        """Asks for consent, again where there is no answer; the view, once all have given it."""
        core = self._core
        members = self._candidates()
        if members != self._members:
            self._members, self._epochs = members, {}
            self._number += 1
            self._next = core.now
        if not members:
            return None
        if core.now >= self._next:
            self._next = core.now + core.retry
            for member in members[1:]:
                if member.id not in self._epochs:
                    core.send(member.slot, Found((self._number, core.me.id), members))
        if any(member.id not in self._epochs for member in members[1:]):
            return None
        return first_view(members, max(core.newest.epoch, *self._epochs.values()) + 1)

    def on_consent(self, sender: Member, message: Consent) -> None:
        """Notes an answer, if it is to what is asked now."""
        if message.ballot == (self._number, self._core.me.id):
            self._epochs[sender.id] = message.epoch

    def _candidates(self) -> tuple[Member, ...]:
        """The processes of all slots, all of them uncounted and joining; none if one is missing."""
        core = self._core
        if core.me.slot != 0 or not core.may_be_founded():
            return ()
        joins = {member.slot: member for member in core.joins.values() if member.uncounted}
        found = (core.me, *(joins[slot] for slot in sorted(joins) if slot != 0))
        return found if len(found) == len(core.addresses) else ()
