"""Runs tasks on hosts, event by event.

A task computes (on one of its host's threads, most urgent first), sends (on its host's link: what
the link's buffer holds in its order, the rest most urgent first), or receives. A message takes its
sender's link for ``message + bytes / bandwidth``, and its receiver's for ``bytes / bandwidth``,
from ``latency`` after the sender began or from when the receiver's link is free; that is how
many-to-one traffic queues up. Between nodes of one host it takes neither. Where all hosts share
their processors, each message takes ``handling`` of them when it has arrived.

If the cluster knows what one more ``part`` of a message takes, small sends to one peer that are
ready at the same time are one message, and small computations that wait on one host are one job of
a thread, which starts once and whose results are all there at its end, as in jobs
(:mod:`hipress.secopa.sharing`). Else each is a message or a job of its own.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hipress.secopa import sharing
from hipress.secopa.cluster import Cluster

COMPUTE, SEND, RECV, LOCAL, WAIT = range(5)
_START, _COMPUTED, _SENT, _ARRIVED = range(4)


@dataclass
class Tasks:
    """Task lists in columns, filled by :meth:`compute`, :meth:`send` and :meth:`recv`."""

    kind: list[int] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    """Seconds of a computation, bytes of a message."""
    priority: list[int] = field(default_factory=list)
    """The least goes first; none is negative."""
    missing: list[int] = field(default_factory=list)
    consumers: list[list[int]] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    """The receive that a send ends in."""
    copies: list[int] = field(default_factory=list)
    """Messages that a send or computation stands for."""
    elements: list[int] = field(default_factory=list)
    """What a computation goes through."""
    peer: list[Hashable] = field(default_factory=list)
    """From which node to which a send goes; None: it never shares a message."""
    label: list[object] = field(default_factory=list)
    """What a timeline calls the task."""
    starts: list[tuple[float, int]] = field(default_factory=list)
    """(seconds, task): what lets a task start beside its inputs."""

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
        elements: int = sharing.JOB_ELEMENTS,
    ) -> int:
        """A computation; 0 seconds take no thread. Few ``elements`` share a job with others."""
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
        """``copies`` messages of ``size`` bytes each; :meth:`join` says to which receive.

        :param peer: what sends of a host that may share a message have in common
        """
        return self._add(SEND, host, size, priority, inputs, label, copies, peer=peer)

    def wait(self, host: int, seconds: float, inputs=()) -> int:
        """Time that takes nobody's processor or link."""
        return self._add(WAIT, host, seconds, 0, inputs, None)

    def make_local(self, send: int) -> None:
        """The message of ``send`` stays on its host, between two nodes there."""
        self.kind[send] = LOCAL

    def recv(self, host: int, priority: int, label=None) -> int:
        """The arrival of a message."""
        return self._add(RECV, host, 0.0, priority, (), label)

    def join(self, send: int, recv: int) -> None:
        """The message of ``send`` arrives at ``recv``."""
        self.target[send] = recv

    def start(self, seconds: float, task: int) -> None:
        """``task`` starts at this time at the earliest."""
        self.missing[task] += 1
        self.starts.append((seconds, task))


@dataclass
class Result:
    """What a run took."""

    end: list[float]
    """Seconds at which each task was over."""
    compute_busy: list[float]
    """Seconds of computation, by host."""
    send_busy: list[float]
    receive_busy: list[float]
    bytes: float
    messages: int
    events: int
    spans: list[tuple[int, str, float, float, int]]
    """(host, lane, start, end, task), if a timeline was asked for."""


class _Link:
    """One direction of a host's link: a token bucket, as shapers of links are."""

    def __init__(self, cluster: Cluster) -> None:
        self._bandwidth, self._burst = cluster.bandwidth, cluster.burst
        self._tokens, self._at = cluster.burst, 0.0

    def take(self, size: float, now: float) -> float:
        """Seconds that ``size`` bytes take, from ``now`` on."""
        if not self._burst:
            return size / self._bandwidth
        idle = max(0.0, now - self._at)
        tokens = min(self._burst, self._tokens + idle * self._bandwidth)
        free = min(tokens, size)
        seconds = (size - free) / self._bandwidth
        self._tokens, self._at = tokens - free, now + seconds
        return seconds


class Deadlock(RuntimeError):
    """Tasks wait for each other."""


class _Message(NamedTuple):
    """What a link carries at a time: one send, or the parts of a shared message."""

    sends: tuple[int, ...]
    copies: int
    size: float
    """Bytes of one of its copies."""

    @property
    def bytes(self) -> float:
        return self.copies * self.size


def _together(sends: Sequence[int], tasks: Tasks) -> list[_Message]:
    """Messages for small sends to one peer, filled in their order as the executor fills them."""
    messages = []
    held: list[int] = []
    size = 0.0

    def leave() -> None:
        if held:
            whole = tasks.cost[held[0]] if len(held) == 1 else sharing.HEADER + size
            messages.append(_Message(tuple(held), tasks.copies[held[0]], whole))

    for send in sends:
        part = sharing.part_bytes(tasks.cost[send])
        if size + part > sharing.SHARED_BYTES:
            leave()
            held, size = [], 0.0
        held.append(send)
        size += part
    leave()
    return messages


def run(
    tasks: Tasks, cluster: Cluster, hosts: int, record: bool = False, dilation: float = 1.0
) -> Result:
    """Runs all tasks to their end.

    :param hosts: hosts are numbered 0 to hosts - 1
    :param record: keep what ran when, for a timeline
    :param dilation: how many times as long as alone each job of a thread takes
    :raises Deadlock: if some task can never start
    """
    kind, host, cost, priority = tasks.kind, tasks.host, tasks.cost, tasks.priority
    consumers, target, copies = tasks.consumers, tasks.target, tasks.copies
    missing = list(tasks.missing)
    latency, per_message = cluster.latency, cluster.message
    handling = cluster.handling if cluster.shared_hosts else 0.0
    together, per_part = cluster.part is not None, cluster.part or 0.0
    count = len(kind)
    end = [-1.0] * count
    pools = 1 if cluster.shared_hosts else hosts
    free = [list(range(cluster.threads - 1, -1, -1)) for _ in range(pools)]
    # What waits for a thread: (priority, order, elements, seconds, tasks), by host. And in which
    # order those of different hosts go that share their threads: (priority, order, host).
    waiting: list[list] = [[] for _ in range(hosts)]
    line: list[list] = [[] for _ in range(pools)]
    sending = [False] * hosts
    outbox: list[list] = [[] for _ in range(hosts)]
    handed: list[deque[_Message]] = [deque() for _ in range(hosts)]
    buffered, buffer = [0.0] * hosts, cluster.buffer
    link_free = [0.0] * hosts
    out_links = [_Link(cluster) for _ in range(hosts)]
    in_links = [_Link(cluster) for _ in range(hosts)]
    compute_busy, send_busy, receive_busy = [0.0] * hosts, [0.0] * hosts, [0.0] * hosts
    spans: list[tuple[int, str, float, float, int]] = []
    moved, messages = 0.0, 0
    # (seconds, sequence, what happens, to what)
    heap: list[tuple] = [(at, i, _START, task) for i, (at, task) in enumerate(tasks.starts)]
    sequence = len(heap)
    order = 0
    heapq.heapify(heap)
    push, pop = heapq.heappush, heapq.heappop

    def post(h: int, message: _Message) -> None:
        nonlocal order
        push(outbox[h], (min(priority[t] for t in message.sends), order, message))
        order += 1

    def begin_send(h: int, now: float) -> None:
        nonlocal sequence, moved, messages
        while outbox[h] and buffered[h] <= buffer:
            message = pop(outbox[h])[2]
            buffered[h] += message.bytes
            handed[h].append(message)
        if sending[h] or not handed[h]:
            return
        sending[h] = True
        message = handed[h].popleft()
        n, size = message.copies, message.bytes
        wire = out_links[h].take(size, now)
        done = now + wire + n * per_message
        push(heap, (done, sequence, _SENT, message))
        arriving = tuple(target[t] for t in message.sends)
        to = host[arriving[0]]
        begin = max(link_free[to], now + latency)
        wire = in_links[to].take(size, begin)
        arrived = max(begin + wire, done + latency)
        link_free[to] = begin + wire
        taken = message.copies * (handling + (len(arriving) - 1) * per_part)
        push(heap, (arrived, sequence + 1, _ARRIVED, (arriving, taken)))
        sequence += 2
        send_busy[h] += done - now
        receive_busy[to] += wire
        moved += size
        messages += n
        if record:
            spans.extend((h, "send", now, done, t) for t in message.sends)
            spans.extend((to, "receive", begin, arrived, t) for t in arriving)

    def wait(urgency: int, elements: int, seconds: float, job: tuple[int, ...]) -> int:
        """For a thread of the pool returned."""
        nonlocal order
        h = host[job[0]]
        pool = 0 if cluster.shared_hosts else h
        push(waiting[h], (urgency, order, elements, seconds, job))
        push(line[pool], (urgency, order, h))
        order += 1
        return pool

    def begin_compute(pool: int, now: float) -> None:
        nonlocal sequence
        while free[pool] and line[pool]:
            _, turn, h = pop(line[pool])
            queue = waiting[h]
            if not queue or queue[0][1] != turn:
                continue  # it went in the job of another
            _, _, elements, seconds, job = pop(queue)
            while together and queue and elements + queue[0][2] <= sharing.JOB_ELEMENTS:
                more = pop(queue)
                elements += more[2]
                seconds += more[3]
                job += more[4]
            if kind[job[0]] != RECV:
                seconds += cluster.task
            seconds *= dilation
            thread = free[pool].pop()
            push(heap, (now + seconds, sequence, _COMPUTED, (thread, job)))
            sequence += 1
            compute_busy[h] += seconds
            if record:
                spans.extend((h, f"thread {thread}", now, now + seconds, task) for task in job)

    def finish(done: Sequence[int]) -> None:
        for task in done:
            end[task] = now
            for c in consumers[task]:
                missing[c] -= 1
                if missing[c] == 0:
                    ready.append(c)

    events = 0
    ready = [t for t in range(count) if missing[t] == 0 and kind[t] != RECV]
    now = 0.0
    links: set[int] = set()  # hosts that may send
    idle: set[int] = set()  # pools that may compute
    while True:
        parts: dict[Hashable, list[int]] = {}
        for task in ready:  # which grows meanwhile
            h = host[task]
            if kind[task] == COMPUTE and cost[task] > 0:
                idle.add(wait(priority[task], tasks.elements[task], cost[task], (task,)))
            elif kind[task] == SEND:
                links.add(h)
                peer = tasks.peer[task]
                if together and peer is not None and sharing.is_small(cost[task]):
                    parts.setdefault((h, peer, copies[task]), []).append(task)
                else:
                    post(h, _Message((task,), copies[task], cost[task]))
            elif kind[task] == WAIT:
                push(heap, (now + cost[task], sequence, _ARRIVED, ((task,), 0.0)))
                sequence += 1
            else:
                if kind[task] == LOCAL:
                    arrived = now + cluster.local(cost[task])
                    push(heap, (arrived, sequence, _ARRIVED, ((target[task],), 0.0)))
                    sequence += 1
                finish((task,))
        ready.clear()
        for sends in parts.values():
            for message in _together(sends, tasks):
                post(host[sends[0]], message)
        # All that is ready now is known before any of it begins.
        for h in links:
            begin_send(h, now)
        for pool in idle:
            begin_compute(pool, now)
        links.clear()
        idle.clear()
        if not heap:
            break
        now = heap[0][0]
        while heap and heap[0][0] == now:
            _, _, code, what = pop(heap)
            events += 1
            if code == _START:
                missing[what] -= 1
                if missing[what] == 0:
                    ready.append(what)
            elif code == _COMPUTED:
                thread, job = what
                pool = 0 if cluster.shared_hosts else host[job[0]]
                free[pool].append(thread)
                idle.add(pool)
                finish(job)
            elif code == _SENT:
                h = host[what.sends[0]]
                sending[h] = False
                buffered[h] -= what.bytes
                links.add(h)
                finish(what.sends)
            elif what[1] > 0:
                # Before what waits for the codecs' threads, and in a job of its own.
                idle.add(wait(-1, sharing.JOB_ELEMENTS, what[1], what[0]))
            else:
                finish(what[0])
    stuck = sum(1 for t in end if t < 0)
    if stuck:
        raise Deadlock(f"{stuck} of {count} tasks can never start")
    return Result(end, compute_busy, send_busy, receive_busy, moved, messages, events, spans)
