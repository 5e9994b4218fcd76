"""Task graph of one gradient: each node's operations to synchronize it, and their order.

A gradient of ``n`` elements is partitioned. Each node has a list of tasks. A task's inputs are
results of earlier tasks of the same node, or :data:`GRADIENT`, the pushed gradient. The network
connects a send on one node with the receive on its peer that has the same partition and step.

The graph is built once per key, in the same way on every worker, and is the only description of a
topology. The native executor, the NumPy reference and the checker all read it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

GRADIENT = -1
"""Input of a task that is the node's own gradient."""

PLAIN = 0
"""``num_summands`` of an ENCODE that never compresses, for links faster than codecs."""

PARTITION_ELEMENTS = 256 * 1024
"""Default partition: 1 MiB of float32, small enough to be in the cache after it was received."""

BLOCK = 64
"""Elements of which partitions' sizes are multiples. It is the least common block of all codecs, so
that compression can be changed at any time."""


class Op(enum.IntEnum):
    """Primitives, with the numbers of ``src/graph/program.h``."""

    ENCODE = 0
    DECODE = 1
    MERGE = 2
    SEND = 3
    RECV = 4
    UPDATE = 5


class Role(enum.IntEnum):
    """Roles of nodes, with the numbers of ``src/base/types.h``."""

    SCHEDULER = 0
    SERVER = 1
    WORKER = 2


@dataclass(frozen=True, order=True)
class NodeId:
    """Node of the job: its role and its rank within that role, from 0."""

    role: Role
    rank: int

    @property
    def packed(self) -> int:
        """Id as one integer, as in the C API."""
        return int(self.role) << 16 | self.rank

    @staticmethod
    def unpack(packed: int) -> NodeId:
        """Return the node of an id of the C API."""
        return NodeId(Role(packed >> 16), packed & 0xFFFF)

    def __str__(self) -> str:
        return f"{self.role.name.lower()} {self.rank}"


def worker(rank: int) -> NodeId:
    """Return worker number ``rank``."""
    return NodeId(Role.WORKER, rank)


def server(rank: int) -> NodeId:
    """Return server number ``rank``."""
    return NodeId(Role.SERVER, rank)


@dataclass(frozen=True)
class Partition:
    """Elements ``offset`` to ``offset + count`` of the gradient."""

    offset: int
    count: int


@dataclass(frozen=True)
class Task:
    """One task of one node.

    ``inputs`` are indices into the node's task list, or GRADIENT. A MERGE adds them in that order.
    ``peer`` is the other end of a SEND or RECV. ``step`` distinguishes sends of one partition
    between the same two nodes. ``num_summands`` of an ENCODE is the number of workers' gradients in
    its input, or PLAIN. A codec's scale may depend on it, as 2bit's threshold does. ``no_upstream``
    of a RECV means that its sender needs nothing from other nodes, so that only the sender can
    cause a wait.
    """

    op: Op
    partition: int
    inputs: tuple[int, ...] = ()
    peer: NodeId | None = None
    step: int = 0
    num_summands: int = 1
    no_upstream: bool = False

    @property
    def of_gradient(self) -> bool:
        """Whether an ENCODE encodes the node's own gradient.

        A sum is encoded by the codec's form for sums, even if it is a sum of one gradient. dgc's
        form has no momentum, because the gradients already include it.
        """
        return self.inputs == (GRADIENT,)


@dataclass
class Graph:
    """Tasks of all nodes for a gradient of ``n`` elements.

    ``per_worker`` marks an asynchronous graph: a server runs its tasks once per pushing worker,
    separately, and no replies are sent. ``plain`` makes every encode PLAIN, for a gradient that is
    not worth compressing.
    """

    n: int
    partitions: list[Partition]
    tasks: dict[NodeId, list[Task]] = field(default_factory=dict)
    per_worker: bool = False
    plain: bool = False
    _own: dict[NodeId, list[bool]] = field(default_factory=dict, repr=False, compare=False)
    """Whether a task's result depends on the node's own gradient alone, per task."""
    _no_upstream: set[tuple] = field(default_factory=set, repr=False, compare=False)
    """Messages with such values that were sent but not yet received."""

    def add(
        self,
        node: NodeId,
        op: Op,
        partition: int,
        *inputs: int,
        peer: NodeId | None = None,
        step: int = 0,
        num_summands: int = 1,
    ) -> int:
        """Append a task to ``node``'s list and return its index. Add a SEND before its RECV."""
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
    """Partition elements ``begin`` to ``end`` into parts of at most about ``size`` elements.

    The parts are as equal as multiples of ``granularity`` (the codec's block, in elements) allow.
    Only the last may have another length.
    """
    count = end - begin
    if count <= 0:
        return []
    pieces = max(1, -(-count // max(size, 1)))
    step = -(-count // pieces)
    step = -(-step // granularity) * granularity
    return [Partition(at, min(step, end - at)) for at in range(begin, end, step)]


def cut_into(n: int, pieces: int) -> list[Partition]:
    """Partition ``n`` elements into ``pieces`` parts, or fewer if there are fewer blocks."""
    return cut(0, n, -(-n // max(pieces, 1)), BLOCK)


def cut_shares(
    count: int, share: int, num_workers: int, size: int = PARTITION_ELEMENTS
) -> list[tuple[int, Partition]]:
    """Partition an array whose r-th ``share`` elements belong to worker r.

    The last shares may be shorter or empty. Return each partition with its owner.
    """
    return [
        (owner, piece)
        for owner in range(num_workers)
        for piece in cut(owner * share, min((owner + 1) * share, count), size, BLOCK)
    ]
