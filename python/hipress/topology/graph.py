"""The task graph of one gradient: what every node does to synchronize it, and in which order.

A gradient of ``n`` elements is cut into partitions. Each node has a list of tasks; a task's inputs
are earlier tasks of the same node (their results) or :data:`GRADIENT`, what the user pushed. A send
on one node and the receive on its peer with the same partition and step are joined by the network.

The graph is built once per key, in the same way on every worker, and is the only description of a
topology: the native executor, the NumPy reference and the checker all read it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

GRADIENT = -1
"""Stands among a task's inputs for the node's own gradient."""

PLAIN = 0
"""The ``num_summands`` of an ENCODE that never compresses, for links faster than codecs."""

PARTITION_ELEMENTS = 256 * 1024
"""Default partition: 1 MiB of float32, which codecs find in the cache where the network left it."""

BLOCK = 64
"""Cuts are multiples of this, the least common block of all codecs, so that compression can be
switched on or changed at any time."""


class Op(enum.IntEnum):
    """The primitives; the numbers are those of ``src/casync/program.h``."""

    ENCODE = 0
    DECODE = 1
    MERGE = 2
    SEND = 3
    RECV = 4
    UPDATE = 5


class Role(enum.IntEnum):
    """Roles of nodes; the numbers are those of ``src/common/types.h``."""

    SCHEDULER = 0
    SERVER = 1
    WORKER = 2


@dataclass(frozen=True, order=True)
class Node:
    """A member of the job: its role and its rank within that role, from 0."""

    role: Role
    rank: int

    @property
    def packed(self) -> int:
        """The id as one integer, as the C API takes it."""
        return int(self.role) << 16 | self.rank

    @staticmethod
    def unpack(packed: int) -> Node:
        """Return the node of an id of the C API."""
        return Node(Role(packed >> 16), packed & 0xFFFF)

    def __str__(self) -> str:
        return f"{self.role.name.lower()} {self.rank}"


def worker(rank: int) -> Node:
    """Worker number ``rank``."""
    return Node(Role.WORKER, rank)


def server(rank: int) -> Node:
    """Server number ``rank``."""
    return Node(Role.SERVER, rank)


@dataclass(frozen=True)
class Partition:
    """Elements ``offset`` to ``offset + count`` of the gradient."""

    offset: int
    count: int


@dataclass(frozen=True)
class Task:
    """One step of one node.

    ``inputs`` are indices into the node's task list, or GRADIENT; a MERGE adds them in that order.
    ``peer`` is the other end of a SEND or RECV. ``step`` tells apart several sends of one partition
    between the same two nodes. ``num_summands`` says of an ENCODE how many workers' gradients are
    summed in its input (a codec's scale may depend on it: 2bit's threshold does), or that it is
    PLAIN. ``no_upstream`` says of a RECV that its sender needs nothing from others, so only it can
    be to blame for a wait.
    """

    op: Op
    partition: int
    inputs: tuple[int, ...] = ()
    peer: Node | None = None
    step: int = 0
    num_summands: int = 1
    no_upstream: bool = False

    @property
    def of_gradient(self) -> bool:
        """Whether an ENCODE encodes the node's own gradient. A sum goes by the codec's form for
        sums, one of a single gradient, too: dgc's has no momentum, which the gradients had."""
        return self.inputs == (GRADIENT,)


@dataclass
class Graph:
    """Tasks of all nodes for a gradient of ``n`` elements.

    ``per_worker`` marks an asynchronous graph: a server runs its tasks once per worker that pushes,
    each on its own, and no replies are sent. ``plain`` makes every encode PLAIN: a gradient that is
    not worth compressing.
    """

    n: int
    partitions: list[Partition]
    tasks: dict[Node, list[Task]] = field(default_factory=dict)
    per_worker: bool = False
    plain: bool = False
    _own: dict[Node, list[bool]] = field(default_factory=dict, repr=False, compare=False)
    """Per task: made of the node's own gradient alone."""
    _no_upstream: set[tuple] = field(default_factory=set, repr=False, compare=False)
    """Messages of such values that were sent and not received yet."""

    def add(
        self,
        node: Node,
        op: Op,
        partition: int,
        *inputs: int,
        peer: Node | None = None,
        step: int = 0,
        num_summands: int = 1,
    ) -> int:
        """Append a task to ``node``'s list and return its index there.

        Add a SEND before its RECV, so that it is known whether that has ``no_upstream``.
        """
        tasks = self.tasks.setdefault(node, [])
        own = self._own.setdefault(node, [])
        own.append(op != Op.RECV and all(i == GRADIENT or own[i] for i in inputs))
        no_upstream = op == Op.RECV and (peer, node, partition, step) in self._no_upstream
        if op == Op.SEND and own[-1]:
            self._no_upstream.add((node, peer, partition, step))
        elif no_upstream:
            self._no_upstream.remove((peer, node, partition, step))
        elif op == Op.ENCODE and self.plain:
            num_summands = PLAIN
        task = Task(op, partition, tuple(inputs), peer, step, num_summands, no_upstream)
        tasks.append(task)
        return len(tasks) - 1


def cut(begin: int, end: int, size: int, granularity: int = 1) -> list[Partition]:
    """Cut elements ``begin`` to ``end`` into partitions of at most about ``size`` elements.

    The pieces are as equal as multiples of ``granularity`` (the codec's block, in elements) allow;
    only the last may have another length.
    """
    count = end - begin
    if count <= 0:
        return []
    pieces = max(1, -(-count // max(size, 1)))
    step = -(-count // pieces)
    step = -(-step // granularity) * granularity
    return [Partition(at, min(step, end - at)) for at in range(begin, end, step)]


def cut_into(n: int, pieces: int) -> list[Partition]:
    """Cut ``n`` elements into ``pieces`` partitions, fewer if blocks of BLOCK do not suffice."""
    return cut(0, n, -(-n // max(pieces, 1)), BLOCK)
