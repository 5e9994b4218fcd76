"""Runs tasks on hosts, event by event.

A task computes (on one of its host's threads, most urgent first), sends (on its host's link: what
the link's buffer holds in its order, the rest most urgent first), or receives. A message takes its
sender's link for ``message + bytes / bandwidth``, and its receiver's for ``bytes / bandwidth``,
from ``latency`` after the sender began or from when the receiver's link is free; that is how
many-to-one traffic queues up. Between nodes of one host it takes neither. Where all hosts share
their processors, each message takes ``handling`` of them when it has arrived.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

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
    label: list[object] = field(default_factory=list)
    """What a timeline calls the task."""
    starts: list[tuple[float, int]] = field(default_factory=list)
    """(seconds, task): what lets a task start beside its inputs."""

    def _add(self, kind, host, cost, priority, inputs, copies, label) -> int:
        index = len(self.kind)
        self.kind.append(kind)
        self.host.append(host)
        self.cost.append(cost)
        self.priority.append(priority)
        self.missing.append(len(inputs))
        self.consumers.append([])
        self.target.append(-1)
        self.copies.append(copies)
        self.label.append(label)
        for i in inputs:
            self.consumers[i].append(index)
        return index

    def compute(self, host: int, seconds: float, priority: int, inputs=(), label=None) -> int:
        """A computation; 0 seconds take no thread."""
        return self._add(COMPUTE, host, seconds, priority, inputs, 1, label)

    def send(self, host: int, size: float, priority: int, inputs=(), label=None, copies=1) -> int:
        """``copies`` messages of ``size`` bytes each; :meth:`join` says to which receive."""
        return self._add(SEND, host, size, priority, inputs, copies, label)

    def wait(self, host: int, seconds: float, inputs=()) -> int:
        """Time that takes nobody's processor or link."""
        return self._add(WAIT, host, seconds, 0, inputs, 1, None)

    def make_local(self, send: int) -> None:
        """The message of ``send`` stays on its host, between two nodes there."""
        self.kind[send] = LOCAL

    def recv(self, host: int, priority: int, label=None) -> int:
        """The arrival of a message."""
        return self._add(RECV, host, 0.0, priority, (), 1, label)

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


def run(tasks: Tasks, cluster: Cluster, hosts: int, record: bool = False) -> Result:
    """Runs all tasks to their end.

    :param hosts: hosts are numbered 0 to hosts - 1
    :param record: keep what ran when, for a timeline
    :raises Deadlock: if some task can never start
    """
    kind, host, cost, priority = tasks.kind, tasks.host, tasks.cost, tasks.priority
    consumers, target, copies = tasks.consumers, tasks.target, tasks.copies
    missing = list(tasks.missing)
    latency, per_message = cluster.latency, cluster.message
    handling = cluster.handling if cluster.shared_hosts else 0.0
    count = len(kind)
    end = [-1.0] * count
    pools = 1 if cluster.shared_hosts else hosts
    free = [list(range(cluster.threads - 1, -1, -1)) for _ in range(pools)]
    lane = [0] * count if record else []
    waiting: list[list] = [[] for _ in range(pools)]
    sending = [False] * hosts
    outbox: list[list] = [[] for _ in range(hosts)]
    handed: list[deque[int]] = [deque() for _ in range(hosts)]
    buffered, buffer = [0.0] * hosts, cluster.buffer
    link_free = [0.0] * hosts
    out_links = [_Link(cluster) for _ in range(hosts)]
    in_links = [_Link(cluster) for _ in range(hosts)]
    compute_busy, send_busy, receive_busy = [0.0] * hosts, [0.0] * hosts, [0.0] * hosts
    spans: list[tuple[int, str, float, float, int]] = []
    moved, messages, sequence = 0.0, 0, 0
    heap = [(at, i, _START, task) for i, (at, task) in enumerate(tasks.starts)]
    sequence = len(heap)
    heapq.heapify(heap)
    push, pop = heapq.heappush, heapq.heappop

    def begin_send(h: int, now: float) -> None:
        nonlocal sequence, moved, messages
        while outbox[h] and buffered[h] <= buffer:
            task = pop(outbox[h])[2]
            buffered[h] += copies[task] * cost[task]
            handed[h].append(task)
        if sending[h] or not handed[h]:
            return
        sending[h] = True
        task = handed[h].popleft()
        n, size = copies[task], cost[task]
        wire = out_links[h].take(n * size, now)
        done = now + wire + n * per_message
        push(heap, (done, sequence, _SENT, task))
        goal = target[task]
        to = host[goal]
        begin = max(link_free[to], now + latency)
        wire = in_links[to].take(n * size, begin)
        arrived = max(begin + wire, done + latency)
        link_free[to] = begin + wire
        push(heap, (arrived, sequence + 1, _ARRIVED, goal))
        sequence += 2
        send_busy[h] += done - now
        receive_busy[to] += wire
        moved += n * size
        messages += n
        if record:
            spans.append((h, "send", now, done, task))
            spans.append((to, "receive", begin, arrived, goal))

    def begin_compute(pool: int, now: float) -> None:
        nonlocal sequence
        while free[pool] and waiting[pool]:
            _, _, task = pop(waiting[pool])
            thread = free[pool].pop()
            seconds = handling if kind[task] == RECV else cost[task] + cluster.task
            push(heap, (now + seconds, sequence, _COMPUTED, task | thread << 40))
            sequence += 1
            compute_busy[host[task]] += seconds
            if record:
                lane[task] = thread
                spans.append((host[task], f"thread {thread}", now, now + seconds, task))

    order = 0
    events = 0
    freed = -1
    ready = [t for t in range(count) if missing[t] == 0 and kind[t] != RECV]
    now = 0.0
    while True:
        for task in ready:  # which grows meanwhile
            h = host[task]
            if kind[task] == COMPUTE and cost[task] > 0:
                pool = 0 if cluster.shared_hosts else h
                push(waiting[pool], (priority[task], order, task))
                order += 1
                begin_compute(pool, now)
            elif kind[task] == SEND:
                push(outbox[h], (priority[task], order, task))
                order += 1
                begin_send(h, now)
            elif kind[task] == WAIT:
                push(heap, (now + cost[task], sequence, _ARRIVED, task))
                sequence += 1
            else:
                if kind[task] == LOCAL:
                    arrived = now + cluster.local(cost[task])
                    push(heap, (arrived, sequence, _ARRIVED, target[task]))
                    sequence += 1
                end[task] = now
                for c in consumers[task]:
                    missing[c] -= 1
                    if missing[c] == 0:
                        ready.append(c)
        ready.clear()
        # What a computation has set going may be more urgent than what waited already.
        if freed >= 0:
            begin_compute(freed, now)
            freed = -1
        if not heap:
            break
        now, _, code, task = pop(heap)
        events += 1
        if code == _START:
            missing[task] -= 1
            if missing[task] == 0:
                ready.append(task)
            continue
        if code == _ARRIVED and handling and kind[task] == RECV:
            # Not the codecs' threads do that: it goes before what waits for those.
            push(waiting[0], (-1, order, task))
            order += 1
            begin_compute(0, now)
            continue
        if code == _COMPUTED:
            thread, task = task >> 40, task & (1 << 40) - 1
            freed = 0 if cluster.shared_hosts else host[task]
            free[freed].append(thread)
        end[task] = now
        for c in consumers[task]:
            missing[c] -= 1
            if missing[c] == 0:
                ready.append(c)
        if code == _SENT:
            sending[host[task]] = False
            buffered[host[task]] -= copies[task] * cost[task]
            begin_send(host[task], now)
    stuck = sum(1 for t in end if t < 0)
    if stuck:
        raise Deadlock(f"{stuck} of {count} tasks can never start")
    return Result(end, compute_busy, send_busy, receive_busy, moved, messages, events, spans)
