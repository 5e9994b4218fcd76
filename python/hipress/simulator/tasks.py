"""Task lists of a simulation, in columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from hipress.planning import sharing

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
        elements: int = sharing.JOB_ELEMENTS,
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
        """Add ``copies`` messages of ``size`` bytes each. :meth:`join` sets their receive.

        Sends of a host with an equal ``peer`` may share a message.
        """
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
