"""Event-driven execution of tasks on hosts.

A task computes, sends or receives. Computations run on their host's threads, most urgent first.
Sends use their host's link: messages in the link's buffer keep their order, later ones are most
urgent first. A message occupies its sender's link for ``message + bytes / bandwidth``. It occupies
its receiver's for ``bytes / bandwidth``, from ``latency`` after the sender began or from when the
receiver's link is free. That is how many-to-one traffic queues up. Between nodes of one host it
occupies neither. If all hosts share their processors, each message takes ``handling`` of them when
it has arrived.

If the cluster has the cost of one more ``part`` of a message, small sends to one peer that are
ready at the same time are one message. Small computations that wait on one host are then one job of
a thread, which starts once and whose results are all ready at its end, as in real jobs
(:mod:`hipress.planning.cluster`). Otherwise each is a separate message or job.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hipress.planning.cluster import (
    HEADER,
    JOB_ELEMENTS,
    SHARED_BYTES,
    Cluster,
    is_small,
    part_bytes,
)

COMPUTE, SEND, RECV, LOCAL, WAIT = range(5)
"""Kinds of tasks. LOCAL is a message that stays on its host, WAIT is time without a resource."""


@dataclass
class Tasks:
    """Task lists in columns, filled by :meth:`compute`, :meth:`send` and :meth:`recv`."""

    kind: list[int] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    """Seconds of a computation, or bytes of a message."""
    priority: list[int] = field(default_factory=list)
    """Priority. The lowest number is first; none is negative."""
    missing: list[int] = field(default_factory=list)
    consumers: list[list[int]] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    """Receive in which a send ends."""
    copies: list[int] = field(default_factory=list)
    """Number of messages or computations that a task represents."""
    elements: list[int] = field(default_factory=list)
    """Elements of a computation."""
    peer: list[Hashable] = field(default_factory=list)
    """Nodes between which a message is sent; None: it never shares a message."""
    label: list[object] = field(default_factory=list)
    """Label of the task in a timeline."""
    starts: list[tuple[float, int]] = field(default_factory=list)
    """(seconds, task): earliest starts of tasks, in addition to their inputs."""

    def _add(self, kind, host, cost, priority, inputs, label, copies=1, elements=0, peer=None):
        index = len(self.kind)
        self.kind.append(kind)
        self.host.append(host)
        self.cost.append(cost)
        self.priority.append(priority)
        self.missing.append(len(inputs))
        self.consumers.append([])
        self.target.append(-1)
        self.copies.append(copies)
        self.elements.append(elements)
        self.peer.append(peer)
        self.label.append(label)
        for i in inputs:
            self.consumers[i].append(index)
        return index

    def compute(
        self,
        host: int,
        seconds: float,
        priority: int,
        inputs: Sequence[int] = (),
        label: object = None,
        elements: int = JOB_ELEMENTS,
    ) -> int:
        """Add a computation and return it. 0 seconds need no thread. Small ones may share a job."""
        return self._add(COMPUTE, host, seconds, priority, inputs, label, elements=elements)

    def send(
        self,
        host: int,
        size: float,
        priority: int,
        inputs: Sequence[int] = (),
        label: object = None,
        copies: int = 1,
        peer: Hashable = None,
    ) -> int:
        """Add messages, which one of equal ``peer`` may share. :meth:`join` sets their receive."""
        return self._add(SEND, host, size, priority, inputs, label, copies, peer=peer)

    def wait(self, host: int, seconds: float, inputs=()) -> int:
        """Add a time that uses no processor or link."""
        return self._add(WAIT, host, seconds, 0, inputs, None)

    def make_local(self, send: int) -> None:
        """Keep the message of ``send`` on its host, between two nodes there."""
        self.kind[send] = LOCAL

    def recv(self, host: int, priority: int, label=None) -> int:
        """Add the arrival of a message and return it."""
        return self._add(RECV, host, 0.0, priority, (), label)

    def join(self, send: int, recv: int) -> None:
        """Make the message of ``send`` arrive at ``recv``."""
        self.target[send] = recv

    def start(self, seconds: float, task: int) -> None:
        """Make ``task`` start at this time at the earliest."""
        self.missing[task] += 1
        self.starts.append((seconds, task))


_START, _COMPUTED, _SENT, _ARRIVED = range(4)


class _Link:
    """One direction of a host's link: a token bucket, as in traffic shapers."""

    def __init__(self, cluster: Cluster) -> None:
        self._bandwidth, self._burst = cluster.bandwidth, cluster.burst
        self._tokens, self._at = cluster.burst, 0.0

    def take(self, size: float, now: float) -> float:
        """Return the seconds for ``size`` bytes, from ``now`` on."""
        if not self._burst:
            return size / self._bandwidth
        idle = max(0.0, now - self._at)
        tokens = min(self._burst, self._tokens + idle * self._bandwidth)
        free = min(tokens, size)
        seconds = (size - free) / self._bandwidth
        self._tokens, self._at = tokens - free, now + seconds
        return seconds


class Deadlock(RuntimeError):
    """Error for tasks that wait for each other."""


class _Message(NamedTuple):
    """Message on a link: one send, or the parts of a shared message."""

    sends: tuple[int, ...]
    copies: int
    size: float
    """Bytes of one of its copies."""

    @property
    def bytes(self) -> float:
        return self.copies * self.size


def _shared(sends: Sequence[int], tasks: Tasks) -> list[_Message]:
    """Return messages for small sends to one peer, filled in order as the executor fills them."""
    messages: list[_Message] = []
    held: list[int] = []
    size = 0.0

    def leave() -> None:
        if held:
            whole = tasks.cost[held[0]] if len(held) == 1 else HEADER + size
            messages.append(_Message(tuple(held), tasks.copies[held[0]], whole))

    for send in sends:
        part = part_bytes(tasks.cost[send])
        if size + part > SHARED_BYTES:
            leave()
            held, size = [], 0.0
        held.append(send)
        size += part
    leave()
    return messages


class Run:
    """A run of all tasks to their end, each job of a thread ``dilation`` times as long as alone.

    With ``record`` the times of tasks are kept, for a timeline.
    """

    def __init__(
        self,
        tasks: Tasks,
        cluster: Cluster,
        hosts: int,
        record: bool = False,
        dilation: float = 1.0,
    ) -> None:
        self.tasks, self.cluster, self.record, self.dilation = tasks, cluster, record, dilation
        self.kind, self.host, self.cost = tasks.kind, tasks.host, tasks.cost
        self.missing = list(tasks.missing)
        self.end = [-1.0] * len(tasks.kind)
        """Seconds at which each task ended."""
        self.now, self.events = 0.0, 0
        self.shares = cluster.part is not None
        """Whether small messages are sent together, and small tasks run together."""
        self.handling = cluster.handling if cluster.shared_hosts else 0.0

        self.heap: list[tuple] = [
            (at, i, _START, task) for i, (at, task) in enumerate(tasks.starts)
        ]
        """Events: (seconds, number, kind, object)."""
        heapq.heapify(self.heap)
        self.numbers = itertools.count(len(self.heap))
        self.ready = [t for t, left in enumerate(self.missing) if not left and self.kind[t] != RECV]
        self.order = itertools.count()
        """Order of waiting entries with the same priority."""

        pools = 1 if cluster.shared_hosts else hosts
        self.free = [list(range(cluster.threads - 1, -1, -1)) for _ in range(pools)]
        """Idle threads, by pool."""
        self.waiting: list[list[tuple]] = [[] for _ in range(hosts)]
        """Jobs that wait for a thread, by host: (priority, order, elements, seconds, tasks)."""
        self.line: list[list[tuple]] = [[] for _ in range(pools)]
        """Turns of hosts that share a pool: (priority, order, host)."""
        self.idle: set[int] = set()
        """Pools that may start a job now."""
        self.compute_busy = [0.0] * hosts
        """Seconds of computation, by host."""
        most = cluster.node_threads if cluster.shared_hosts else None
        self.most = most or cluster.threads
        self.running = [0] * hosts
        """Number of running jobs of each host, at most ``most``."""
        self.parked: list[list[tuple]] = [[] for _ in range(hosts)]
        """Next entries of hosts that already run ``most`` jobs, by host."""

        self.outbox: list[list[tuple]] = [[] for _ in range(hosts)]
        """Messages that their host's link has not accepted: (priority, order, message)."""
        self.handed: list[deque[_Message]] = [deque() for _ in range(hosts)]
        self.buffered = [0.0] * hosts
        self.sending = [False] * hosts
        self.links: set[int] = set()
        """Hosts that may send now."""
        self.out_links = [_Link(cluster) for _ in range(hosts)]
        self.in_links = [_Link(cluster) for _ in range(hosts)]
        self.link_free = [0.0] * hosts
        self.send_busy, self.receive_busy = [0.0] * hosts, [0.0] * hosts
        self.bytes, self.messages = 0.0, 0
        self.spans: list[tuple[int, str, float, float, int]] = []
        """(host, lane, start, end, task), if a timeline was asked for."""
        self._process()

    def _process(self) -> None:
        """Process event after event, all of one time together."""
        heap, pop = self.heap, heapq.heappop
        while True:
            self._start_ready()
            # Collect all ready tasks before any of them starts.
            for host in self.links:
                self._begin_send(host)
            for pool in self.idle:
                self._begin_compute(pool)
            self.links.clear()
            self.idle.clear()
            if not heap:
                break
            self.now = heap[0][0]
            while heap and heap[0][0] == self.now:
                _, _, code, what = pop(heap)
                self.events += 1
                self._happen(code, what)
        waiting = sum(1 for t in self.end if t < 0)
        if waiting:
            raise Deadlock(f"{waiting} of {len(self.end)} tasks can never start")

    def _at(self, seconds: float, code: int, what: object) -> None:
        heapq.heappush(self.heap, (seconds, next(self.numbers), code, what))

    def _happen(self, code: int, what) -> None:
        """Process an event of the present time."""
        if code == _START:
            self.missing[what] -= 1
            if self.missing[what] == 0:
                self.ready.append(what)
        elif code == _COMPUTED:
            thread, job = what
            host = self.host[job[0]]
            pool = 0 if self.cluster.shared_hosts else host
            self.free[pool].append(thread)
            self.running[host] -= 1
            if self.parked[host]:
                heapq.heappush(self.line[pool], heapq.heappop(self.parked[host]))
            self.idle.add(pool)
            self._finish(job)
        elif code == _SENT:
            host = self.host[what.sends[0]]
            self.sending[host] = False
            self.buffered[host] -= what.bytes
            self.links.add(host)
            self._finish(what.sends)
        elif what[1] > 0:
            # Runs before jobs that wait for the codecs' threads, as a separate job.
            self._wait(-1, JOB_ELEMENTS, what[1], what[0])
        else:
            self._finish(what[0])

    def _finish(self, done: Sequence[int]) -> None:
        """End tasks. Tasks whose last input they are become ready."""
        missing, ready, consumers = self.missing, self.ready, self.tasks.consumers
        for task in done:
            self.end[task] = self.now
            for consumer in consumers[task]:
                missing[consumer] -= 1
                if missing[consumer] == 0:
                    ready.append(consumer)

    def _start_ready(self) -> None:
        """Pass ready tasks to threads and links. Tasks that need neither end at once."""
        tasks, kind, cost, host = self.tasks, self.kind, self.cost, self.host
        parts: dict[Hashable, list[int]] = {}
        for task in self.ready:  # the list grows meanwhile
            if kind[task] == COMPUTE and cost[task] > 0:
                self._wait(tasks.priority[task], tasks.elements[task], cost[task], (task,))
            elif kind[task] == SEND:
                self.links.add(host[task])
                peer, copies = tasks.peer[task], tasks.copies[task]
                if self.shares and peer is not None and is_small(cost[task]):
                    parts.setdefault((host[task], peer, copies), []).append(task)
                else:
                    self._post(_Message((task,), copies, cost[task]))
            elif kind[task] == WAIT:
                self._at(self.now + cost[task], _ARRIVED, ((task,), 0.0))
            else:
                if kind[task] == LOCAL:
                    arrived = self.now + self.cluster.local(cost[task])
                    self._at(arrived, _ARRIVED, ((tasks.target[task],), 0.0))
                self._finish((task,))
        self.ready.clear()
        for sends in parts.values():
            for message in _shared(sends, tasks):
                self._post(message)

    # Threads

    def _wait(self, urgency: int, elements: int, seconds: float, job: tuple[int, ...]) -> None:
        """Make a job wait for a thread of its host's pool."""
        host, turn = self.host[job[0]], next(self.order)
        pool = 0 if self.cluster.shared_hosts else host
        heapq.heappush(self.waiting[host], (urgency, turn, elements, seconds, job))
        heapq.heappush(self.line[pool], (urgency, turn, host))
        self.idle.add(pool)

    def _begin_compute(self, pool: int) -> None:
        """Start waiting jobs on idle threads."""
        pop, push, line = heapq.heappop, heapq.heappush, self.line[pool]
        while self.free[pool] and line:
            place = pop(line)
            host = place[2]
            parked = self.parked[host]
            if self.running[host] >= self.most:
                push(parked, place)
                continue
            _, turn, _ = heapq.heappushpop(parked, place)
            queue = self.waiting[host]
            waits = bool(queue) and queue[0][1] == turn
            self.running[host] += waits
            if parked and self.running[host] < self.most:
                push(line, pop(parked))
            if not waits:
                continue  # another task's job included it
            _, _, elements, seconds, job = pop(queue)
            while self.shares and queue and elements + queue[0][2] <= JOB_ELEMENTS:
                more = pop(queue)
                elements += more[2]
                seconds += more[3]
                job += more[4]
            if self.kind[job[0]] != RECV:
                seconds += self.cluster.task
            seconds *= self.dilation
            thread = self.free[pool].pop()
            over = self.now + seconds
            self._at(over, _COMPUTED, (thread, job))
            self.compute_busy[host] += seconds
            if self.record:
                lane = f"thread {thread}"
                self.spans.extend((host, lane, self.now, over, task) for task in job)

    # Links

    def _post(self, message: _Message) -> None:
        """Make a message wait for its host's link."""
        priority = min(self.tasks.priority[t] for t in message.sends)
        outbox = self.outbox[self.host[message.sends[0]]]
        heapq.heappush(outbox, (priority, next(self.order), message))

    def _begin_send(self, host: int) -> None:
        """Fill the link's buffer, and send its first message unless the link is busy."""
        cluster, now = self.cluster, self.now
        outbox, handed = self.outbox[host], self.handed[host]
        while outbox and self.buffered[host] <= cluster.buffer:
            message = heapq.heappop(outbox)[2]
            self.buffered[host] += message.bytes
            handed.append(message)
        if self.sending[host] or not handed:
            return
        self.sending[host] = True
        message = handed.popleft()
        size = message.bytes
        done = now + self.out_links[host].take(size, now) + message.copies * cluster.message
        self._at(done, _SENT, message)
        arriving = tuple(self.tasks.target[t] for t in message.sends)
        to = self.host[arriving[0]]
        begin = max(self.link_free[to], now + cluster.latency)
        wire = self.in_links[to].take(size, begin)
        arrived = max(begin + wire, done + cluster.latency)
        self.link_free[to] = begin + wire
        parts = (len(arriving) - 1) * (cluster.part or 0.0)
        self._at(arrived, _ARRIVED, (arriving, message.copies * (self.handling + parts)))
        self.send_busy[host] += done - now
        self.receive_busy[to] += wire
        self.bytes += size
        self.messages += message.copies
        if self.record:
            self.spans.extend((host, "send", now, done, t) for t in message.sends)
            self.spans.extend((to, "receive", begin, arrived, t) for t in arriving)
