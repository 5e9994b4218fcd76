"""State of one process of the membership protocol, and its answers to other processes.

It holds the ballot that the process promised, the view that it accepted, and what it knows about
other processes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hipress.elastic.membership.messages import (
    NO_BALLOT,
    Abandon,
    Accept,
    Accepted,
    Ballot,
    Collect,
    Consent,
    Expel,
    Found,
    Install,
    Installed,
    Leaving,
    Left,
    MemberEvicted,
    Message,
    Output,
    Promise,
    Refuse,
    Send,
    Verify,
    ViewEnding,
    Witness,
)
from hipress.elastic.membership.successor import LEAD
from hipress.elastic.membership.view import (
    NEVER_AGAIN,
    NO_STATE,
    Ended,
    Member,
    View,
    first_electorate,
    slot_name,
)


class Acceptor:
    """State and answers of one process.

    ``protocol.Membership`` adds the actions that it starts itself.
    """

    answer_timeout: float
    retry: float

    def __init__(
        self, me: Member, addresses: Sequence[tuple[str, int]], min_members: int, now: float
    ) -> None:
        self.me = me
        self.addresses = list(addresses)
        self.min_members = min_members
        self.now = now
        self.outputs: list[Output] = []
        self._first_name = None if me.incarnation else slot_name(me.slot)
        self.newest: View = first_electorate(self.addresses)
        self.previous: View = self.newest  # view in which members still work, before a boundary
        self.base_epoch = 0  # the newest view that began at once: older epochs have ended
        self.entered = 0  # the epoch in which the caller works
        self.joining = False
        self.step, self.clean = NO_STATE, False
        self.trouble = ""  # reason why another view must follow the newest one at once
        self.gate: int | None = None  # completed steps that the caller must not pass now
        self.gate_until: float | None = None
        self.known: dict[int, Member] = {}  # the latest incarnation seen, by slot
        self.dead: dict[str, str] = {}  # reasons why processes are certainly dead, by id
        self.ended_reports: dict[int, Ended] = {}  # by slot: the launcher's latest report
        # Slots of which it covers a process. A report about an unknown process proves nothing.
        self.ended_for_good: set[int] = set()
        self.vacant: frozenset[int] = frozenset()  # slots that have no process now
        self.doubtful: dict[int, set[str]] = {}  # by slot: ids that may follow the known one
        self.suspects: dict[str, str] = {}
        self.joins: dict[str, Member] = {}
        self.leaving: dict[str, bool] = {}  # whether at a boundary, by id
        self.expelled: dict[str, str] = {}  # reasons why members were asked to leave at once, by id
        self.promised: Ballot = NO_BALLOT
        self._accepted: tuple[Ballot, View | None] = (NO_BALLOT, None)

    @property
    def is_member(self) -> bool:
        """Whether this process is a member of the newest view."""
        return self.me.id in self.newest

    def is_current(self, epoch: int) -> bool:
        """Return whether this process works in this epoch, or is about to enter it."""
        return self.is_member and max(self.base_epoch, self.entered) <= epoch <= self.newest.epoch

    def send(self, slot: int, message: Message) -> None:
        """Request to send a message to the process at a slot's address."""
        self.outputs.append(Send(slot, message))

    def other_slots(self) -> set[int]:
        """Return all slots but that of this process."""
        return set(range(len(self.addresses))) - {self.me.slot}

    # State of other processes.

    def meet(self, member: Member) -> bool:
        """Record which process is at a slot. Return False if it is dead or may not be there now."""
        if member.id in self.dead:
            return False
        if self._is_ended(member):
            self._note_ended(member)
            return False
        known = self.known.get(member.slot)
        if member.slot == self.me.slot:
            known = self.me
        follows = known is None or member.follows(known)
        if follows is None and member.slot != self.me.slot:
            doubtful = self.doubtful.setdefault(member.slot, set())
            if member.id not in doubtful:  # its next messages must not end the connection attempt
                doubtful.add(member.id)
                self.outputs.append(Verify(member.slot))
            return False
        if follows:
            if known is not None:
                self.is_dead(known.id, "another process has its place")
            self.known[member.slot] = member
            if member.incarnation > 0:
                self.is_dead(slot_name(member.slot), "its first process is gone")
        elif known.id != member.id:
            self.is_dead(member.id, "another process has its place")
            return False
        return True

    def in_doubt(self, slot: int) -> frozenset[str]:
        """Return the ids of a slot's processes whose order is unknown."""
        known = {self.known[slot].id} if slot in self.known else set()
        return frozenset(self.doubtful.get(slot, set()) | known)

    def answered(self, member: Member, earlier: frozenset[str]) -> bool:
        """Record that a process answers at its slot's address.

        ``earlier`` is ``in_doubt`` of the slot before this process connected to the address.
        """
        known, doubtful = self.known.get(member.slot), self.doubtful.pop(member.slot, set())
        gone = doubtful & earlier
        if known is not None and member.follows(known) is None and known.id in earlier:
            gone.add(known.id)
            del self.known[member.slot]
        for member_id in gone - {member.id}:
            self.is_dead(member_id, "another process has its place")
        if doubtful - earlier - {member.id}:
            self.doubtful[member.slot] = doubtful - earlier - {member.id}
            self.outputs.append(Verify(member.slot))
        return self.meet(member)

    def is_dead(self, member_id: str, why: str) -> None:
        """Record that a process is certainly dead, or has given up its id for good."""
        if member_id in (self.me.id, self._first_name):
            return
        if self.dead.setdefault(member_id, why) == why:
            self.suspects.pop(member_id, None)
            self.joins.pop(member_id, None)
            for member in self.known.values():
                if member.id == member_id and not member.incarnation:
                    self.dead.setdefault(slot_name(member.slot), why)

    def all_ended(self, slot: int, report: Ended) -> None:
        """Record the launcher's report that processes of a slot have ended."""
        earlier = self.ended_reports.get(slot)
        if slot == self.me.slot or (earlier is not None and report.below <= earlier.below):
            return
        self.ended_reports[slot] = report
        known = [self.known[slot]] if slot in self.known else []
        for member in (*known, *self.newest.members, *self.previous.members):
            if member.slot == slot and self._is_ended(member):
                self._note_ended(member)

    def _is_ended(self, member: Member) -> bool:
        """Return whether the launcher's report covers a process."""
        report = self.ended_reports.get(member.slot)
        if report is None or member.incarnation >= report.below:
            return False
        return report.has_table_of(member.process)

    def _note_ended(self, member: Member) -> None:
        self.is_dead(member.id, "its process has ended")
        if not member.incarnation:
            self.is_dead(slot_name(member.slot), "its process has ended")
        if self.ended_reports[member.slot].below >= NEVER_AGAIN:
            self.ended_for_good.add(member.slot)

    @property
    def without_process(self) -> frozenset[int]:
        """Slots for which there is evidence that they have no process now."""
        return self.vacant | self.ended_for_good

    def dead_of(self, base: View) -> frozenset[str]:
        """Return the ids of the members of a view that are certainly dead."""
        return frozenset(member.id for member in base.members if member.id in self.dead)

    def voter(self, base: View) -> str | None:
        """Return this process's name as a member of the base, or None if it has no vote."""
        return self.voter_of(self.me, base)

    def voter_of(self, sender: Member, base: View) -> str | None:
        """Return another process's name as a member of the base, or None if it has no vote."""
        if base.epoch == 0:
            return None if sender.incarnation else slot_name(sender.slot)
        return sender.id if sender.id in base else None

    def stands_for(self, member: Member, process_id: str) -> bool:
        """Return whether a process votes as this member of a base."""
        known = self.known.get(member.slot)
        return member.id == process_id or (
            known is not None and known.id == process_id and member.id == slot_name(member.slot)
        )

    def is_awaited(self, member: Member) -> bool:
        """Return whether a member of a base is expected to answer."""
        if member.id == slot_name(member.slot):  # a slot, in epoch 0
            known = self.known.get(member.slot)
            return known is not None and not known.incarnation and known.id not in self.suspects
        return not (
            member.id in self.dead
            or member.id in self.suspects
            or self.leaving.get(member.id) is False
        )

    def may_propose(self, member: Member) -> bool:
        """Return whether a member of the newest view may propose the next one."""
        if member.id == slot_name(member.slot) and member.slot != self.me.slot:
            known = self.known.get(member.slot)
            if known is None or known.id not in self.joins:
                return False
        if member.id == self.me.id or member.id == self.voter(self.newest):
            return self.me.id not in self.leaving
        return self.is_awaited(member) and member.id not in self.leaving

    def candidates(self) -> list[Member]:
        """Return the members that may propose the next view. The first one has the first turn."""
        return [member for member in self.newest.members if self.may_propose(member)]

    def position(self) -> int:
        """Return how many members propose before this one, or -1 if it may not propose."""
        names = [member.id for member in self.candidates() or self.newest.members]
        name = self.voter(self.newest)
        return names.index(name) if name in names else -1

    def may_join(self, member: Member) -> bool:
        """Return whether a process may become a member of the next view."""
        if member.id in self.newest or member.id in self.dead or member.id in self.suspects:
            return False
        return member == self.me or self.known.get(member.slot) == member

    def why_gone(self) -> dict[str, str]:
        """Return the reasons why processes cannot be in the next view, by id."""
        left = {each: "it left" for each, at_boundary in self.leaving.items() if not at_boundary}
        return {**self.suspects, **self.dead, **left, **self.expelled}

    def on_leaving(self, sender: Member, message: Leaving) -> None:
        """Handle the message of a member that leaves, by itself or on request."""
        self.joins.pop(sender.id, None)
        if sender.id in self.newest and self.is_member:
            self.leaving[sender.id] = message.at_boundary
            if message.expelled:
                self.expelled[sender.id] = message.expelled
            if not message.at_boundary:
                self.in_trouble(f"rank {self.newest.rank(sender.id)} left")

    def on_expel(self, message: Expel) -> None:
        """Leave this epoch, because another process waits for this one.

        This process's worker cannot leave by itself. If an earlier message about leaving was lost,
        it is sent again.
        """
        if not self.is_current(message.epoch):
            return
        why = self.expelled.setdefault(self.me.id, message.why)
        self.leaving[self.me.id] = False
        for slot in self.other_slots():
            self.send(slot, Leaving(False, why))
        if not self.trouble:
            self.in_trouble(why)
            self.outputs.append(ViewEnding(self.newest, why))

    def in_trouble(self, why: str) -> None:
        """Record why the newest view has to end. The first reason stays."""
        self.trouble = self.trouble or why

    def look_for_failures(self) -> None:
        """End the newest view if a member that works in it has failed."""
        if not self.is_member or self.trouble:
            return
        gone = self.why_gone()
        ahead = self.newest.boundary is not None and self.entered < self.newest.epoch
        working = self.newest.members + (self.previous.members if ahead else ())
        for member in working:
            if member.id in gone and member.id != self.me.id:
                self.in_trouble(f"{member}: {gone[member.id]}")
                self.outputs.append(ViewEnding(self.newest, self.trouble))
                return

    def compare_steps(self) -> None:
        """Request another view if the newest one was decided for another step."""
        view = self.newest
        if self.me.id in view and self.me.id not in view.behind and self.step != view.step:
            rank = view.rank(self.me.id)
            self.in_trouble(f"rank {rank} has completed step {self.step}, not {view.step}")

    # Answers.

    def on_message(self, sender: Member, message: Message) -> None:
        """Handle a message of the decision about a view."""
        if isinstance(message, Install):
            self.install(message.view)
        elif isinstance(message, (Collect, Accept)):
            for member_id in message.dead:
                self.is_dead(member_id, "its process has ended")
            self.install(message.base)
            if self.newest.epoch > message.base.epoch:
                self.send(sender.slot, Install(self.newest))
            elif self.newest == message.base:
                self._on_ballot(sender, message)
        elif isinstance(message, Found):
            self._on_found(sender, message)
        elif isinstance(message, Abandon):
            if message.epoch == self.newest.epoch and message.ballot == self.promised:
                self.open_gate()
        elif message.epoch == self.newest.epoch:
            self.on_answer(sender, message)

    def _on_ballot(self, sender: Member, message: Collect | Accept) -> None:
        base, ballot = message.base, message.ballot
        if self.voter(base) is None:
            if isinstance(message, Collect):
                dead = tuple(sorted(self.dead_of(base)))
                vacant = tuple(sorted(self.without_process))
                self.send(sender.slot, Witness(base.epoch, ballot, dead, vacant))
            return
        if ballot < self.promised:
            self.send(sender.slot, Refuse(base.epoch, ballot, self.promised))
            return
        if ballot > self.promised:
            self.promised = ballot
            self.open_gate()
            self.outbid(ballot)
            self.new_ballot_seen()
        if isinstance(message, Accept):
            self._accepted = (ballot, message.view)
            self.send(sender.slot, Accepted(base.epoch, ballot))
        else:
            if message.planned:
                self._close_gate()
            self.send(sender.slot, self.own_promise(ballot))

    def may_be_founded(self) -> bool:
        """Return whether this process asks to join and knows no process that could admit it."""
        return (
            self.joining
            and self.me.uncounted
            and all(
                member.id in self.dead or member.id == slot_name(member.slot)
                for member in self.newest.members
            )
        )

    def _on_found(self, sender: Member, message: Found) -> None:
        newest = [self.meet(member) for member in message.members]  # earlier processes are dead
        if all(newest):
            if self.may_be_founded():
                self.send(sender.slot, Consent(self.newest.epoch, message.ballot))
            elif self.newest.epoch:
                self.send(sender.slot, Install(self.newest))

    def promise_myself(self, planned: bool) -> Ballot:
        """Return a ballot for this process's own proposal, higher than all ballots seen."""
        self.promised = (self.promised[0] + 1, self.me.id)
        self.open_gate()
        if planned:
            self._close_gate()
        return self.promised

    def own_promise(self, ballot: Ballot) -> Promise:
        """Return this process's promise to take part in no lower ballot."""
        view = self.newest
        return Promise(
            view.epoch,
            ballot,
            *self._accepted,
            self.step,
            self.clean,
            self.entered,
            self.trouble,
            tuple(sorted(self.suspects)),
            tuple(sorted(self.dead_of(view))),
            tuple(sorted(self.joins.values(), key=lambda member: member.slot)),
            tuple(sorted(each for each, at_boundary in self.leaving.items() if at_boundary)),
            self.expelled.get(self.me.id, ""),
            tuple(sorted(self.without_process)),
        )

    def accept_own(self, ballot: Ballot, view: View) -> None:
        """Accept the view that this process proposes."""
        self._accepted = (ballot, view)

    def _close_gate(self) -> None:
        if self.gate is None:
            self.gate = self.step + LEAD
            self.gate_until = self.now + self.answer_timeout

    def open_gate(self) -> None:
        """Let the caller complete any step, because no boundary is being decided."""
        self.gate = self.gate_until = None

    # Decided views.

    def install(self, view: View) -> None:
        """Adopt a decided view, if it is newer than the newest one."""
        if view.epoch <= self.newest.epoch:
            return
        was_member, former = self.is_member, self.newest
        is_next = view.epoch == former.epoch + 1
        if not was_member:
            self.previous = view
        elif self.entered == former.epoch:
            self.previous = former
        self.newest = view
        self.promised, self._accepted = NO_BALLOT, (NO_BALLOT, None)
        self.trouble = ""
        self.open_gate()
        for member in view.members:
            self.meet(member)
            self.joins.pop(member.id, None)
        if self.is_member:
            self.joining = False
            if view.boundary is None or not was_member or not is_next:
                self.base_epoch = view.epoch
            if view.source == self.me.id and view.boundary is None:
                self.clean = True  # its state is the reference that other members copy
                if self.step == NO_STATE:
                    self.step = view.step  # nothing is trained yet
            self.outputs.append(Installed(view))
            if view.boundary is None:
                self.compare_steps()
            elif was_member and self.step > view.boundary:
                self.in_trouble(f"rank {view.rank(self.me.id)} has passed the boundary")
        elif was_member:
            left = self.me.id in self.leaving and self.me.id not in self.expelled
            self.outputs.append((Left if left else MemberEvicted)(view))
        self.leaving = {each: how for each, how in self.leaving.items() if each in view}
        self.expelled = {each: why for each, why in self.expelled.items() if each in view}
        self.after_install()

    def forget_self(self, member_id: str) -> None:
        """Become a candidate for membership with a new id. The former id is given up for good."""
        former = self.me.id
        self.leaving.pop(former, None)
        self.expelled.pop(former, None)
        self.me = replace(self.me, id=member_id, incarnation=self.me.incarnation + 1)
        self.is_dead(former, "it has given up its place")
        self.joining = False
        self.step, self.clean, self.entered, self.base_epoch = NO_STATE, False, 0, 0
        self.open_gate()

    # Methods that protocol.Membership implements.

    def on_answer(self, sender: Member, message: Message) -> None:
        """Handle the answer of a process to this process as a proposer."""
        raise NotImplementedError

    def outbid(self, promised: Ballot) -> None:
        """Give up a ballot that is lower than one that another process has promised."""
        raise NotImplementedError

    def abandon(self, message: Abandon) -> None:
        """Give up a ballot that needs no view."""
        raise NotImplementedError

    def new_ballot_seen(self) -> None:
        """Handle the start of a ballot of another process."""
        raise NotImplementedError

    def after_install(self) -> None:
        """Handle a new view."""
        raise NotImplementedError
