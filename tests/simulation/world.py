"""Processes of a job, their network and their clocks, all of one random number generator."""

from __future__ import annotations

import heapq
import json
import random
from typing import Any, Callable

from hipress.elastic.membership import messages, proposer
from hipress.elastic.membership.detector import Detector
from hipress.elastic.membership.protocol import Membership, new_member
from hipress.elastic.membership.view import NO_PROCESS, NO_STATE, Ended, View, slot_name, uncounted
from hipress.elastic.membership.view import Process as KernelProcess

HEARTBEAT = 1.0
START_TIMEOUT = 1.5
TICK = 0.1


class Violation(AssertionError):
    """Violation of one of the protocol's promises."""


class Disagreement(Violation):
    """Failure of the processes to reach agreement although no fault was left."""


class Watched(Membership):
    """Protocol that reports its decisions to the world."""

    world: World

    def install(self, view: View) -> None:
        attempt, before = self.attempt, self.newest
        if attempt is not None and attempt.view == view:
            self.world.decided(self, attempt)
        super().install(view)
        if self.newest is not before:
            self.world.learned(self, self.newest)


class Process:
    """Process at a slot: the protocol, and a worker that trains when it is allowed to.

    Its state is (step, lineage): all processes that begin a step of an epoch must have the same.
    """

    def __init__(self, world: World, slot: int, restart: int) -> None:
        self.world, self.slot, self.restart = world, slot, restart
        rng = world.rng
        self.rate, self.offset = rng.uniform(0.9, 1.1), rng.uniform(0, 1000)
        self.alive, self.frozen = True, False
        self.inbox: list[Callable[[], None]] = []
        self.born, self.died = world.now, float("inf")
        count = uncounted(world.now + rng.uniform(-10, 0) + 1e9) if world.uncounted else restart
        member_id = world.fresh_id(slot)
        self.machine = Watched(
            new_member(slot, world.addresses, member_id, count, world.kernel_process(slot)),
            world.addresses,
            world.min_members,
            self.clock(),
            HEARTBEAT,
            START_TIMEOUT,
        )
        self.machine.world = world
        self.machine.beat_interval = HEARTBEAT / 3
        self.detector = Detector(HEARTBEAT, self.clock())
        self.state: tuple[int, int] | None = None
        self.view: View | None = None  # that its worker works in
        self.evicted = self.hangs = False
        self.in_step = self.must_copy = False
        self.epoch_seen = 0
        self.refused_by: set[int] = set()  # slots whose addresses refuse its connections
        world.live[slot] = self
        self.do(lambda: self.machine.join(self.clock()))
        for other in world.live.values():
            if other is not self:
                world.after(rng.uniform(0, 0.05), world.meet, self, other)
        world.after(rng.uniform(0, TICK), self.tick)

    def __str__(self) -> str:
        return f"{self.slot}.{self.restart}"

    def clock(self) -> float:
        return self.offset + self.rate * self.world.now

    def do(self, action: Callable[[], None]) -> None:
        """Run an input of this process now, or when it is woken; never if it is dead."""
        if not self.alive:
            return
        if self.frozen:
            self.inbox.append(action)
            return
        action()
        todo, self.machine.outputs = self.machine.outputs, []
        for output in todo:
            if isinstance(output, messages.Send):
                self.world.send(self, output.slot, output.message)
            elif isinstance(output, messages.Verify):
                delay = self.world.rng.uniform(0, 0.05)
                self.world.after(delay, self.world.verify, self, output.slot)
            elif isinstance(output, messages.Installed):
                for member_id in output.view.ids:
                    if member_id != self.machine.me.id:
                        self.detector.watch(member_id, self.clock())
                self.soon(self.react)
            elif isinstance(output, messages.MemberEvicted):
                self.evicted = True
                self.soon(self.react)
        self.world.check(self)

    def soon(self, action: Callable[[], None], most: float = 0.03) -> None:
        self.world.after(self.world.rng.uniform(0, most), self.do, action)

    def tick(self) -> None:
        if not self.alive:
            return
        self.world.after(TICK * self.world.rng.uniform(0.7, 1.3), self.tick)
        if not self.frozen:
            self.do(self._tick)

    def _tick(self) -> None:
        for member_id in self.machine.dead:
            self.detector.forget(member_id)
        for member_id, seconds in self.detector.tick(self.clock()):
            self.machine.suspect(self.clock(), member_id, False, f"silent for {seconds:.1f} s")
        self.machine.tick(self.clock())
        self.react()

    def receive(self, sender: Any, message: messages.Message) -> None:
        if sender.id not in self.machine.dead and self.detector.heard(sender.id, self.clock()):
            self.machine.trust(self.clock(), sender.id)
        vacant: frozenset[int] = frozenset()
        if isinstance(message, messages.Collect):
            vacant = frozenset(filter(self.is_vacant, self.machine.other_slots()))
        self.machine.receive(self.clock(), sender, message, vacant)

    # Evidence.

    def answers(self, other: Process) -> None:
        """Report that another process answers at its slot's address."""
        earlier = self.machine.in_doubt(other.slot)
        self.machine.answers(self.clock(), other.machine.me, earlier)

    def is_vacant(self, slot: int) -> bool:
        """Return whether the kernel of this process's host shows that a slot has no process."""
        return self.world.same_host(self.slot, slot) and slot not in self.world.live

    def refused(self, slot: int, before: Any, ballots: tuple = ()) -> None:
        """Report a refused connection to a slot: by the kernel of its host, or by a gateway."""
        lives = before is not None and self.world.process_of(before.id) is not None
        ended = self.world.is_proof(self.slot, slot, lives)
        vacant = self.world.is_proof(self.slot, slot, slot in self.world.live)
        self.refused_by.add(slot)
        self.machine.refused(self.clock(), slot, before, ended, vacant, ballots)

    def reconnected(self, slot: int) -> None:
        """Report that a connection to a slot exists again."""
        if slot in self.refused_by and slot in self.world.live:
            self.refused_by.discard(slot)
            self.answers(self.world.live[slot])

    # The worker.

    def come_back(self) -> None:
        """Let the worker, which hung, continue."""
        self.hangs = False
        self.do(self.react)

    def react(self) -> None:
        """Follow the newest view, copy the state if that is needed, and begin the next step."""
        machine = self.machine
        if self.hangs:
            return
        if self.evicted or machine.me.id in machine.expelled:
            self.evicted, self.view, self.state, self.in_step = False, None, None, False
            self.must_copy = False
            machine.rejoin(self.clock(), self.world.fresh_id(self.slot))
            return
        newest = machine.newest
        if not machine.is_member or machine.trouble:
            return
        if self.view is not newest:
            ahead = newest.boundary is not None and self.machine.me.id not in newest.joined
            if ahead and (self.state is None or self.state[0] < newest.boundary):
                self.work()
                return
            self.view, self.in_step = newest, False
            machine.enter(self.clock(), newest.epoch)
            self.must_copy = False
            if machine.me.id in newest.behind:
                self.must_copy = True
            elif self.state is None and newest.source == machine.me.id and newest.step == 0:
                self.state = (0, hash(machine.me.slot))  # in its initial state
        self.work()

    def work(self) -> None:
        if self.must_copy:
            self.copy()
        self.begin_step()

    def copy(self) -> None:
        view = self.view
        source = self.world.process_of(view.source)
        if source is None or source.view is not view and source.view != view:
            return
        if source.state is None or source.state[0] != view.step:
            raise Violation(f"{source} is the source of {view} with {source.state}")
        self.state, self.must_copy = source.state, False
        self.machine.completed(self.clock(), self.state[0], True, view.epoch)

    def begin_step(self) -> None:
        if self.in_step or self.view is None or self.state is None or self.must_copy:
            return
        gate = self.machine.gate
        if gate is not None and self.state[0] >= gate:
            return
        self.in_step = True
        self.world.arrive(self, self.view, self.state)

    def complete(self, view: View, state: tuple[int, int]) -> None:
        """Complete a step whose result is there. The worker may have learned of a newer view
        meanwhile."""
        if self.hangs:
            self.soon(lambda: self.complete(view, state), 0.5)
            return
        if self.view != view or not self.in_step or self.evicted:
            return
        self.in_step = False
        self.state = state
        self.machine.completed(self.clock(), state[0], True, view.epoch)
        self.world.completed_steps += 1
        self.soon(self.react, 0.01)


class World:
    """World of a job: all of its processes.

    Args:
        slots: Number of slots.
        uncounted: Whether no process knows how often its slot's process was restarted.
    """

    checks_deaths = True

    def __init__(
        self, rng: random.Random, slots: int, min_members: int, uncounted: bool = False
    ) -> None:
        self.rng, self.min_members, self.uncounted = rng, min_members, uncounted
        self.addresses = [("10.0.0.1", 1000 + slot) for slot in range(slots)]
        self.now = 0.0
        self.live: dict[int, Process] = {}
        self.cut: set[tuple[int, int]] = set()  # one-way, from slot to slot
        self.refusing: set[tuple[int, int]] = set()  # likewise, where a gateway refuses connections
        hosts = rng.choice([1, 2, slots])
        self.hosts = [rng.randrange(hosts) for _ in range(slots)]
        self.supervised = not uncounted and rng.random() < 0.5  # ends of processes are reported
        self.shows_boots = not uncounted or rng.random() < 0.7  # kernels identify processes
        self._trained: dict[int, View] = {}  # the latest view of each epoch that made a step
        self.loss, self.late = 0.0, 0.05
        self.founders_to_kill = 0
        self.completed_steps = 0
        self.log: list[str] | None = None
        self._ids = 0
        self._boots: dict[int, int] = {}  # of the slots' hosts
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._views: dict[int, list[tuple[View, set[Process]]]] = {}
        self._decisions: list[tuple[View, tuple, frozenset[str]]] = []
        self._arrivals: dict[tuple[View, int], dict[str, tuple[int, int]]] = {}
        self._names: dict[str, Process] = {}
        for slot in range(slots):
            if rng.random() < 0.9:
                self.after(rng.uniform(0, 0.3), self.start, slot, 0)
            else:
                self.after(rng.uniform(0, 3.0), self.start, slot, 0)

    # Time.

    def after(self, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, action, arguments))

    def run(self, until: float, done: Callable[[], bool] | None = None) -> bool:
        """Run all that happens before a moment. Return True if ``done`` ended it."""
        while self._events and self._events[0][0] <= until:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
            if done is not None and done():
                return True
        self.now = until
        return False

    def say(self, text: str) -> None:
        if self.log is not None:
            self.log.append(f"{self.now:8.3f} {text}")

    # Processes.

    def fresh_id(self, slot: int) -> str:
        self._ids += 1
        return f"{self.rng.randrange(1 << 16):04x}-{slot}-{self._ids}"

    def kernel_process(self, slot: int) -> KernelProcess:
        """Return the kernel's data about a process that starts now. Hosts are sometimes started
        again. Then only their clocks order the processes, and clocks may be wrong."""
        if self.uncounted and self.rng.random() < 0.1:
            self._boots[slot] = self._boots.get(slot, 0) + 1
        if not self.shows_boots:
            return NO_PROCESS
        boot = f"{slot}-{self._boots.get(slot, 0)}"
        return KernelProcess(boot, "", self._ids, int(100 * self.now) + 1)

    def start(self, slot: int, restart: int) -> None:
        if slot not in self.live:
            self.say(f"start {slot}.{restart}")
            Process(self, slot, restart)

    def process_of(self, member_id: str) -> Process | None:
        for process in self.live.values():
            if process.machine.me.id == member_id:
                return process
        return None

    def meet(self, one: Process, other: Process) -> None:
        """Let two processes connect to each other, as soon as that is possible."""
        if not (one.alive and other.alive):
            return
        if self.blocked(one.slot, other.slot) or one.frozen or other.frozen:
            self.after(self.rng.uniform(0.05, 0.3), self.meet, one, other)
            return
        for a, b in ((one, other), (other, one)):
            b.do(lambda a=a, b=b: b.machine.met(b.clock(), a.machine.me))
            b.do(lambda a=a, b=b: b.answers(a))

    def verify(self, one: Process, slot: int) -> None:
        """Let a process connect to a slot's address again."""
        other = self.live.get(slot)
        if one.alive and other is not None:
            self.meet(one, other)

    def kill(self, slot: int, restart_after: float | None) -> None:
        process = self.live.pop(slot, None)
        if process is None:
            return
        self.say(f"kill {process}")
        process.alive, process.died = False, self.now
        for other in list(self.live.values()):
            self.after(self.rng.uniform(0.001, 0.3), self.notice, other, process)
            if self.supervised and self.rng.random() < 0.8:
                self.after(self.rng.uniform(0.01, 2.0), self.report_end, other, process)
        if restart_after is not None:
            least = 0.02 if self.uncounted else 0.0  # a kernel counts ticks of 0.01 s
            self.after(max(restart_after, least), self.start, slot, process.restart + 1)

    def notice(self, process: Process, victim: Process) -> None:
        """Let a process find that another's port refuses connections, or that another holds it."""
        if not process.alive:
            return
        if self.blocked(process.slot, victim.slot):
            self.after(0.3, self.notice, process, victim)
            return
        known = process.machine.known.get(victim.slot)
        if known is not None and known.id == victim.machine.me.id:
            process.do(lambda: process.refused(victim.slot, known))

    def report_end(self, process: Process, victim: Process) -> None:
        """Let a supervisor report to a process that another slot's process has ended."""
        below = new_member(victim.slot, self.addresses, "", victim.restart + 1).incarnation
        table = victim.machine.me.process
        report = Ended(below, table.boot, table.namespace)
        process.do(lambda: process.machine.ended(process.clock(), victim.slot, report))

    def same_host(self, one: int, other: int) -> bool:
        return self.hosts[one] == self.hosts[other]

    def is_proof(self, slot: int, other: int, lives: bool) -> bool:
        """Return whether the kernel shows to a slot's process that another slot has none."""
        return self.same_host(slot, other) and not lives

    # The network.

    def blocked(self, one: int, other: int) -> bool:
        """Return whether a connection is blocked; it needs both directions."""
        pairs = {(one, other), (other, one)}
        return bool(pairs & self.cut or pairs & self.refusing)

    def refuse(self, pairs: set[tuple[int, int]], refuses: bool) -> None:
        """Make a gateway refuse connections from one slot to another, or let them through again.

        Existing connections are closed.
        """
        pairs = {pair for pair in pairs if not self.same_host(*pair)}
        self.refusing = self.refusing | pairs if refuses else self.refusing - pairs
        for one, other in sorted(pairs):
            self.after(self.rng.uniform(0.001, 0.1), self.dial, one, other)

    def dial(self, one: int, other: int) -> None:
        """Let a slot's process try to connect to another slot while a gateway refuses it."""
        process = self.live.get(one)
        if process is not None:
            if (one, other) not in self.refusing:
                process.do(lambda: process.reconnected(other))
                return
            known = process.machine.known.get(other)
            attempt = process.machine.attempt
            ballots = () if attempt is None else (attempt.ballot,)
            process.do(lambda: process.refused(other, known, ballots))
        if (one, other) in self.refusing:
            self.after(self.rng.uniform(0.05, 0.5), self.dial, one, other)

    def send(self, sender: Process, slot: int, message: messages.Message) -> None:
        rng = self.rng
        if rng.random() < 0.02:
            plain = json.loads(messages.dumps(messages.to_plain(message)))
            if messages.from_plain(plain) != message:
                raise Violation(f"{message} does not survive JSON")
        if (sender.slot, slot) in self.cut | self.refusing or rng.random() < self.loss:
            return
        for _ in range(2 if rng.random() < 0.03 else 1):
            delay = rng.uniform(0.0005, 0.004)
            if rng.random() < self.late:
                delay += rng.uniform(0, 0.5)
            self.after(delay, self.deliver, sender, sender.machine.me, slot, message)

    def deliver(self, sender: Process, me: Any, slot: int, message: messages.Message) -> None:
        if (sender.slot, slot) in self.cut | self.refusing:
            return
        target = self.live.get(slot)
        if target is not None:
            # No process has a connection to a process that started after it died. Where restarts
            # are counted, agreement does not even depend on that.
            if self.uncounted and sender.died <= target.born:
                return
            target.do(lambda: target.receive(me, message))
        elif isinstance(message, messages.Collect) and not self.blocked(sender.slot, slot):
            known = sender.machine.known.get(slot)
            sender.do(lambda: sender.refused(slot, known, (message.ballot,)))

    # Training.

    def arrive(self, process: Process, view: View, state: tuple[int, int]) -> None:
        """Let a member begin a step. When all have begun, it has a result, which may reach only
        some."""
        arrivals = self._arrivals.setdefault((view, state[0]), {})
        arrivals[process.machine.me.id] = state
        if set(arrivals) == set(view.ids):
            if len(set(arrivals.values())) > 1:
                raise Violation(f"epoch {view.epoch} trains on different states: {arrivals}")
            self.one_lineage(view)
            result = (state[0] + 1, hash((state, view.epoch, view.ids)))
            for member_id in view.ids:
                member = self.process_of(member_id)
                if member is not None:
                    member.soon(lambda member=member: member.complete(view, result), 0.04)

    def one_lineage(self, view: View) -> None:
        """Check that no view trains while processes live that have trained in a later view."""
        members = [self.process_of(member_id) for member_id in view.ids]
        if any(member is None or member.view != view for member in members):
            return  # a late report: its other members have left this view
        self._trained[view.epoch] = view
        for epoch, later in self._trained.items():
            if epoch > view.epoch and any(map(self.process_of, later.ids)):
                raise Violation(f"two lineages: {view} trains, and so has {later}")

    # Promises.

    def learned(self, machine: Membership, view: View) -> None:
        process = self.live[machine.me.slot]
        self.say(
            f"{process} learns epoch {view.epoch}: {[m.id for m in view.members]} "
            f"step {view.step} boundary {view.boundary} {[w for _, w in view.departed]}"
        )
        if view.epoch <= process.epoch_seen:
            raise Violation(f"{process} went from epoch {process.epoch_seen} to {view.epoch}")
        process.epoch_seen = view.epoch
        if self.founders_to_kill and view.joined == view.ids:
            self.founders_to_kill -= process.slot == 0
            self.after(self.rng.uniform(0, 0.01), self.kill, process.slot, self.rng.uniform(0, 0.3))
        if len(view.members) < self.min_members:
            raise Violation(f"{view} has fewer than {self.min_members} members")
        if len({member.slot for member in view.members}) < len(view.members):
            raise Violation(f"{view} has two members of one slot")
        of_epoch = self._views.setdefault(view.epoch, [])
        for known, holders in of_epoch:
            if known == view:
                holders.add(process)
            elif any(holder.alive for holder in holders):
                raise Violation(f"two views of epoch {view.epoch}: {known} and {view}")
        if all(known != view for known, _ in of_epoch):
            of_epoch.append((view, {process}))

    def decided(self, machine: Membership, attempt: Any) -> None:
        """Check that each quorum that promises in a higher ballot meets this one's, or that one is
        dead."""
        self._decisions.append((attempt.base, attempt.ballot, frozenset(attempt.accepted)))
        self.quorums_meet(attempt)

    def quorums_meet(self, attempt: Any) -> None:
        for base, ballot, accepted in self._decisions:
            if base == attempt.base and ballot < attempt.ballot:
                living = {name for name in accepted if self.voter_lives(name)}
                if living and not accepted & set(attempt.promises):
                    raise Violation(f"quorums {accepted} and {set(attempt.promises)} do not meet")

    def voter_lives(self, name: str) -> bool:
        return any(
            process.machine.me.id == name
            or (not process.machine.me.incarnation and slot_name(process.slot) == name)
            for process in self.live.values()
        )

    def check(self, process: Process) -> None:
        """Check the invariants after each event of a process."""
        machine = process.machine
        attempt = machine.attempt
        if attempt is not None and attempt.view is not None:
            if not proposer.quorum_of(attempt.base, attempt.promises, attempt.dead):
                raise Violation("a proposal without a quorum")
            self.quorums_meet(attempt)
        if not self.checks_deaths:
            return
        if len(machine.dead) != getattr(process, "dead_seen", 0):
            process.dead_seen = len(machine.dead)
            for name in machine.dead:
                if self.voter_lives(name):
                    raise Violation(f"{process} takes {name} for dead, which lives")

    def agreed(self) -> bool:
        """Return whether all processes are members of one view, work in it, and nothing more is to
        change."""
        views = {process.machine.newest for process in self.live.values()}
        if len(views) != 1:
            return False
        view = views.pop()
        return len(view.members) == len(self.live) and all(
            process.machine.is_member and not process.machine.trouble and process.view == view
            for process in self.live.values()
        )

    def is_over(self) -> bool:
        """Return whether no live process has the job's state or could vote for a first view."""
        processes = self.live.values()
        top = max((process.machine.newest.epoch for process in processes), default=0)
        if top == 0 and self.uncounted:
            return False
        if top == 0:
            return not any(process.machine.me.incarnation == 0 for process in processes)
        members = [
            process
            for process in processes
            if process.machine.is_member and process.machine.newest.epoch == top
        ]
        if self.uncounted and not members:
            return False  # they start again
        return not any(process.machine.step > NO_STATE for process in members)
