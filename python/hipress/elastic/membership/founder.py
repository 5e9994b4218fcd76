"""Start, or restart, of a job in which no process can know whether it is its slot's first.

The incarnations of such processes come from the clock (``view.UNCOUNTED``). They have no vote for
the first view, because an earlier process of the slot may have voted before it died. Slot 0's
process decides alone and needs all slots for that. It sends the list of the processes that are at
the slots now (*found*). Each process that knows no view with a living member answers (*consent*).
From then on it ignores messages of all earlier processes of every slot. With the consent of all,
the view of these processes is decided.

WHY THERE IS ONE. Suppose that another process at slot 0 decided on a view before. If a process that
works in that view lives, it is at a slot and does not consent. If none lives, the processes that
consented can never receive that view: each process that could send it has a successor at its slot,
and its messages are ignored.
"""

from __future__ import annotations

from hipress.elastic.membership.acceptor import Acceptor
from hipress.elastic.membership.messages import Consent, Found
from hipress.elastic.membership.successor import first_view
from hipress.elastic.membership.view import Member, View


class Founder:
    """Slot 0's part in forming the first view.

    Args:
        core: the process's own state
    """

    def __init__(self, core: Acceptor) -> None:
        self._core = core
        self._number = 0
        self._members: tuple[Member, ...] = ()
        self._epochs: dict[str, int] = {}  # newest epoch of each that consented, by id
        self._next = core.now

    def progress(self) -> View | None:
        """Request consent, repeatedly where no answer came.

        Return the view when all have consented.
        """
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
        """Record an answer, if it belongs to the present request."""
        if message.ballot == (self._number, self._core.me.id):
            self._epochs[sender.id] = message.epoch

    def _candidates(self) -> tuple[Member, ...]:
        """Return the processes of all slots if all are uncounted and joining, otherwise ()."""
        core = self._core
        if core.me.slot != 0 or not core.may_be_founded():
            return ()
        joins = {member.slot: member for member in core.joins.values() if member.uncounted}
        processes = (core.me, *(joins[slot] for slot in sorted(joins) if slot != 0))
        return processes if len(processes) == len(core.addresses) else ()
