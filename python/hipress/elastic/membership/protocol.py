"""Membership protocol: the members of a job agree on the processes of each epoch.

A pure state machine: messages, the time and suspicions go in, messages to send and installed views
come out. It has no clock, no threads, no sockets and no random numbers, so a test can replay every
schedule.

DECISION. The view of epoch e+1 is one decision (single-decree Paxos) of the members of view e::

    proposer                              members of view e
       │ ── collect (ballot, dead) ───────────► │  promise: take part in no lower ballot
       │ ◄────────────────────────── promise ── │  with the member's state and suspicions
       │    a quorum promised: choose a view    │
       │ ── accept (ballot, view) ────────────► │
       │ ◄───────────────────────── accepted ── │
       │    a quorum accepted: it is decided    │
       │ ── install (view) ───────────────────► │  also sent to all other processes

A ballot is a number and the proposer's id. A promise reports the member's last completed step, the
members it suspects, and the view that it accepted before. The proposer must choose the view that
was accepted in the highest ballot. If there is none, it makes a view from the promises.

QUORUM. There are two kinds.
 1. A majority of all members of view e, including dead ones; or exactly half of them, with rank 0.
 2. All members of view e that are not certainly dead. Then every slot must also be accounted for:
    either its present process answers that it has no newer view (*promise*, *witness*), or there
    is evidence that the slot has no process.
A majority of the members that are *not dead* would not suffice. Of five members, {3, 4, 5} may
decide, and then 4 and 5 die. Then {1, 2} are a majority of the three living members, while 3, cut
off, works in the decided view.

EVIDENCE. A member is certainly dead only if there is evidence of its end. Such evidence stays true.
There are three kinds.
 a. The kernel of the member's host shows that the process has ended (evidence.py). Each process can
    check the processes of the same host that it has seen running.
 b. The supervisor that started the process has seen its end, and the launcher reports that. The
    report counts only for a process of the supervisor's own process table: a command may be the
    client of a process elsewhere, such as ``docker run``.
 c. A later process of the same slot has the slot's address (``Member.follows``). If restarts are
    not counted, a new connection to the slot's address may be needed to find the later process:
    the process that answers there is later than all processes that answered before. A clock does
    not decide which one is later, because it may have been set back.
There are two kinds of evidence that a slot has no process. Its host's kernel shows that no process
listens at its address. A process of that host reports this in its answer to the same ballot, if it
has seen the slot's last known processes running. Or the launcher has reported that it will start no
other process there, and the report counts for a process of that slot. Evidence is sent with
Collect, Accept and every answer. So one living process of a host suffices to report the dead
processes that it has seen running there. Silence is not evidence, and neither is a refused
connection: when a tunnel goes down, gateways refuse connections to processes that still run. Both
make a process *suspected*. A majority continues without suspected members; a quorum of kind 2 does
not.

WHY TWO QUORUMS MEET. A proposer is in its own quorum. Two quorums of kind 1 have a member in
common, as in Paxos. A quorum of kind 2 contains all living members, so it meets every other quorum
unless all members of that are dead.

Suppose that those are dead when a proposer P begins its ballot. P sends its list of dead processes
with its messages. Each receiver then ignores messages of the dead, even if these arrive later. So
no living process that answered P can still receive the decision of the dead. None has received it
before either: such a member or witness would have reported it. If a slot had no process after the
ballot began, a process that starts there later does not have the decision either. It could receive
it only from a living process, and all of these have answered P. Therefore P's decision is the only
one among the living processes.

Suppose instead that the dead had collected promises for a higher ballot before P's lower one was
accepted. Then their requests to accept are ignored for the same reason. So no two processes ever
live in two different views of one epoch.

WITHOUT EVIDENCE. When a host loses its power or its network, no kernel, supervisor or later process
gives evidence about its workers. Suppose that these are more than half of the members, or exactly
half including rank 0. Then the other members wait, perhaps forever, and report which ones they wait
for. Evidence becomes available when the workers are started again, or when the network is back.

LIMITS. Members that are cut off, and too few for kind 1, may not know that the job continued
without them. Then all other members may die, including all joiners. If evidence of all these deaths
reaches the members that were cut off, they form a quorum of kind 2. They continue from their own
older step, and the steps of the dead members are lost. A ``min_members`` of more than half of the
slots makes that rare, but not impossible, because restarted processes count. If all processes die,
the job ends: a restarted process has no state and can only ask to join.

FIRST VIEW. The slots decide it in the same way, as members of epoch 0. The first process of a slot
votes for it (incarnation 0). All slots must take part, or after ``start_timeout`` a quorum. A
restarted process has no vote, and joins. If restarts are not counted, founder.py forms the view.

STEPS. A failure ends an epoch at once. A step needs all members of an epoch, so their completed
steps differ by one at most. A member with the lower step copies the state of one with the higher
step. A member that completes a step after its promise requests another view. If members only join
or leave, the view has a boundary, two steps after the highest completed step. Until such a decision
has ended, no member passes two steps beyond the step in its promise (``gate``). So all members pass
the boundary together.

HANGING. A member whose worker hangs still answers. A member that waits for it too long asks it to
leave (*expel*). It leaves at once, votes for the view without it, and may join again.

COST. With n members, a view needs 5 messages to or from each of them, and 2.5 round trips. Without
changes, each pair exchanges only a sign of life five times per heartbeat timeout. The proposer is
the lowest rank that is not suspected. Others take over after a delay that grows with their rank and
with each try.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hipress.elastic.membership.acceptor import Acceptor
from hipress.elastic.membership.founder import Founder
from hipress.elastic.membership.messages import (
    Abandon,
    Accepted,
    Ballot,
    Beat,
    Consent,
    Expel,
    Install,
    Installed,
    Leaving,
    Left,
    MemberEvicted,
    Message,
    Output,
    Promise,
    Refuse,
    Request,
    Send,
    ViewEnding,
    Witness,
)
from hipress.elastic.membership.proposer import Attempt, announce
from hipress.elastic.membership.view import NO_STATE, Ended, Member, new_member


class Membership(Acceptor):
    """One process's part in the protocol.

    Each input may append to ``outputs``; the caller removes and executes them.

    Args:
        me: this process
        addresses: the (host, port) of each slot
        min_members: a view has that many members or more
        now: seconds, of a clock that only this process reads
        heartbeat_timeout: seconds; the delays below are parts of it
        start_timeout: seconds after which the first view is formed without the slots that are
            missing
    """

    def __init__(
        self,
        me: Member,
        addresses: Sequence[tuple[str, int]],
        min_members: int,
        now: float,
        heartbeat_timeout: float = 5.0,
        start_timeout: float = 60.0,
    ) -> None:
        super().__init__(me, addresses, min_members, now)
        self.answer_timeout = heartbeat_timeout
        self.beat_interval = heartbeat_timeout / 5
        self.retry = heartbeat_timeout / 25
        self.start_timeout = start_timeout
        self.attempt: Attempt | None = None
        self._founder = Founder(self)
        self._next_beat = now
        self._joining_since = now
        self._wish_since: float | None = None
        self._next_try = now
        self._next_request = now
        self._failures = 0

    # Inputs: what this process itself wants.

    def join(self, now: float) -> None:
        """Ask to become a member, and repeat that until this process is one."""
        self.now = now
        if not self.joining and not self.is_member:
            self.joining = True
            self._joining_since = self._next_beat = now
        self._advance()

    def rejoin(self, now: float, member_id: str) -> None:
        """Ask to join with a new id. Promises of the former id are void."""
        self.now = now
        self.forget_self(member_id)
        self.attempt = None
        self.join(now)

    def request_change(self, now: float, reason: str, epoch: int) -> None:
        """End this epoch because its communicator failed.

        Do nothing if the epoch has ended already.
        """
        self.now = now
        if self.is_current(epoch):
            self.in_trouble(f"rank {self.newest.rank(self.me.id)}: {reason}")
        self._advance()

    def leave(self, now: float, at_boundary: bool) -> None:
        """Leave on purpose: at once, or after a common step that is decided soon."""
        self.now = now
        self.joining = False
        if self.is_member:
            self.leaving[self.me.id] = at_boundary
            for slot in self.other_slots():
                self.send(slot, Leaving(at_boundary))
        self._advance()

    def expel(self, now: float, member_id: str, epoch: int, why: str) -> None:
        """Ask a member that this process waits for to leave at once.

        The caller repeats this until there is another view. The member's agent must be alive:
        silent members are excluded anyway. A process without state sends no request, because it
        must not separate from members that have the state.
        """
        self.now = now
        for member in self.newest.members:
            if member.id == member_id and self.is_current(epoch) and self.step > NO_STATE:
                self.send(member.slot, Expel(epoch, why))
        self._advance()

    def enter(self, now: float, epoch: int) -> None:
        """Record that the caller begins to work in this epoch, that of its newest view.

        Do nothing if the view's boundary is ahead. Planned views wait until all members have
        entered, so no member misses a view with a boundary.
        """
        self.now = now
        view = self.newest
        ahead = view.boundary is not None and self.me.id not in view.joined
        if self.is_member and epoch == view.epoch and self.entered < epoch:
            if not ahead or self.step >= view.boundary:
                self.entered = epoch
                if self.me.id in view.behind:
                    self.clean = False  # it is overwritten from now on
        self._advance()

    def completed(self, now: float, step: int, clean: bool, epoch: int) -> None:
        """Record that the caller's state is the one after ``step``, completed in this epoch."""
        self.now = now
        self.step, self.clean = step, clean
        view = self.newest
        if not self.is_member or epoch >= view.epoch:
            return
        if view.boundary is None or epoch < self.base_epoch:
            self.compare_steps()
        elif step > view.boundary:
            self.in_trouble(f"rank {view.rank(self.me.id)} has passed the boundary")
        if self.trouble:
            self._advance()

    # Inputs: observations of other processes.

    def receive(
        self,
        now: float,
        sender: Member,
        message: Message,
        vacant: frozenset[int] = frozenset(),
    ) -> None:
        """Handle a message of another process. Messages of dead processes are ignored.

        ``vacant`` are slots of this host at whose addresses no process listens now, according to
        the host's kernel.
        """
        self.now, self.vacant = now, vacant
        if sender.slot != self.me.slot and self.meet(sender):
            if isinstance(message, Beat):
                self._on_beat(sender, message)
            elif isinstance(message, Request):
                self._on_request(sender, message)
            elif isinstance(message, Leaving):
                self.on_leaving(sender, message)
            elif isinstance(message, Expel):
                self.on_expel(message)
            elif isinstance(message, Consent):
                self._founder.on_consent(sender, message)
            else:
                self.on_message(sender, message)
        self.vacant = frozenset()
        self._advance()

    def met(self, now: float, member: Member) -> None:
        """Handle a new connection with this process."""
        self.now = now
        if member.slot != self.me.slot and self.meet(member):
            self._beat(member.slot)
        self._advance()

    def answers(self, now: float, member: Member, earlier: frozenset[str]) -> None:
        """Handle a new connection from this process to the process at a slot's address.

        ``earlier`` is ``in_doubt`` of the slot before the attempt to connect began.
        """
        self.now = now
        if member.slot != self.me.slot and self.answered(member, earlier):
            self._trust(member.id)
        self._advance()

    def suspect(self, now: float, member_id: str, certain: bool, why: str) -> None:
        """Record that a process is dead (certain) or only silent."""
        self.now = now
        if certain:
            self.is_dead(member_id, why)
        elif member_id not in self.dead:
            self.suspects[member_id] = why
            self.joins.pop(member_id, None)
        self._advance()

    def trust(self, now: float, member_id: str) -> None:
        """Record a sign of life of a process that was silent."""
        self.now = now
        self._trust(member_id)
        self._advance()

    def _trust(self, member_id: str) -> None:
        now = self.now
        if self.suspects.pop(member_id, None) is not None and self.attempt is not None:
            for member in self.attempt.base.members:
                if self.stands_for(member, member_id):
                    self.attempt.asked[member.id] = now

    def refused(
        self,
        now: float,
        slot: int,
        before: Member | None,
        ended: bool,
        vacant: bool,
        ballots: Collection[Ballot] = (),
    ) -> None:
        """Handle a refused connection to a slot's address.

        The refusal alone proves nothing, because a gateway may have refused the connection. The
        process that was known to be there (``before``) is suspected. This host's kernel may show
        that it has ended, or that no process listens at the address (``vacant``). ``ballots`` are
        those whose Collect was to be sent over the connection.
        """
        self.now = now
        if vacant and self.attempt is not None and self.attempt.ballot in ballots:
            self.attempt.heard_slots.add(slot)
        if before is not None:
            why = "its process has ended" if ended else "its address refuses connections"
            self.suspect(now, before.id, ended, why)
        self._advance()

    def ended(self, now: float, slot: int, report: Ended) -> None:
        """Handle a supervisor's report that processes of a slot have ended."""
        self.now = now
        self.all_ended(slot, report)
        self._advance()

    def tick(self, now: float) -> None:
        """Handle the passing of time.

        Call this once per twentieth of the heartbeat timeout or more often.
        """
        self.now = now
        if now >= self._next_beat:
            self._next_beat = now + self.beat_interval
            for slot in sorted(self.other_slots()):
                self._beat(slot)
        if self.gate_until is not None and now >= self.gate_until:
            self.open_gate()
        self._advance()

    # Actions.

    def _beat(self, slot: int) -> None:
        self.send(slot, Beat(self.newest.epoch, self.joining))

    def _on_beat(self, sender: Member, beat: Beat) -> None:
        if beat.joining and sender.id not in self.newest and sender.id not in self.suspects:
            self.joins[sender.id] = sender
        elif not beat.joining:
            self.joins.pop(sender.id, None)
        if beat.epoch < self.newest.epoch:
            self.send(sender.slot, Install(self.newest))

    def _on_request(self, sender: Member, request: Request) -> None:
        if request.epoch < self.newest.epoch:
            self.send(sender.slot, Install(self.newest))
        elif request.epoch == self.newest.epoch and sender.id in self.newest:
            if request.trouble:
                self.in_trouble(request.trouble)
            for member in request.joins:
                if self.meet(member) and self.may_join(member):
                    self.joins[member.id] = member

    def on_answer(self, sender: Member, message: Message) -> None:
        """Handle the answer of a process to this process as a proposer."""
        attempt = self.attempt
        if attempt is None or message.ballot != attempt.ballot:
            return
        if isinstance(message, Refuse):
            self.promised = max(self.promised, message.promised)
            self.outbid(message.promised)
            return
        attempt.heard_slots.add(sender.slot)
        name = self.voter_of(sender, attempt.base)
        if isinstance(message, (Promise, Witness)):
            for member_id in message.dead:
                self.is_dead(member_id, "its process has ended")
            attempt.heard_slots.update(message.vacant)
        if isinstance(message, Promise) and name is not None:
            attempt.promises[name] = message
        elif isinstance(message, Accepted) and name is not None:
            attempt.accepted.add(name)

    def abandon(self, message: Abandon) -> None:
        """Give up the present ballot. Try again after a delay if a reason remains."""
        self.attempt = None
        self._next_try = self.now + self.retry
        self.open_gate()
        for slot in self.other_slots():
            self.send(slot, message)

    def outbid(self, promised: tuple) -> None:
        """Give up the present ballot for a higher one.

        Retry after a delay that grows with each failure.
        """
        if self.attempt is not None:
            self.attempt = None
            self._failures += 1
            position = max(self.position(), 0)
            self._next_try = self.now + self.retry * (position + 1) * min(2**self._failures, 16)

    def new_ballot_seen(self) -> None:
        """Handle the start of a ballot of another process."""
        self._wish_since = self.now

    def after_install(self) -> None:
        """Handle a new view."""
        self.attempt = None
        self._failures = 0
        self._wish_since = None
        self._next_try = self._next_request = self.now

    def _wish(self) -> bool | None:
        """Return whether a next view is needed.

        True: a planned view suffices. False: at once. None: no view is needed.
        """
        view = self.newest
        if self.voter(view) is None:
            return None
        if view.epoch == 0:
            everybody = {member.slot for member in self.joins.values()} | {self.me.slot}
            late = self.now >= self._joining_since + self.start_timeout
            enough = len(everybody) == len(self.addresses) or (
                late and len(everybody) >= self.min_members
            )
            return False if self.joining and enough else None
        if self.trouble:
            return False
        changes = bool(self.joins) or any(self.leaving.values())
        return True if changes and self.entered >= view.epoch else None

    def _advance(self) -> None:
        self.look_for_failures()
        attempt = self.attempt
        if attempt is not None:
            if attempt.dead != self.dead_of(attempt.base):
                self.attempt = attempt = None  # a new ballot reports the dead to all members
                self._next_try = self.now
            else:
                attempt.resend()
                view = attempt.progress()
                if view is not None:
                    self.install(view)
                    announce(self, view)
                    self._advance()
                return
        founded = self._founder.progress()
        if founded is not None:
            self.install(founded)
            announce(self, founded)
        wish = self._wish()
        if wish is None:
            self._wish_since = None
            return
        if self._wish_since is None:
            self._wish_since = self.now
        position = self.position()
        patience = position * self.answer_timeout / 2 * min(1.5**self._failures, 4)
        overdue = not wish and self.now >= self._wish_since + patience
        turn = position == 0 or (position > 0 and overdue)
        if turn and self.now >= self._next_try:
            self.attempt = Attempt(self, self.promise_myself(bool(wish)), bool(wish))
            self.attempt.begin()
            self._advance()
        elif position > 0 and self.now >= self._next_request:
            self._next_request = self.now + self.retry
            for first in self.candidates()[:1]:
                joins = tuple(sorted(self.joins.values(), key=lambda member: member.slot))
                self.send(first.slot, Request(self.newest.epoch, self.trouble, joins))


__all__ = [
    "Installed",
    "Left",
    "MemberEvicted",
    "Membership",
    "Output",
    "Send",
    "ViewEnding",
    "new_member",
]
