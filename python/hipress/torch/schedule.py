"""Task graphs laid out in rounds, the form in which they run on point-to-point messages.

All tasks of all graphs of a bucket get a *level*: how many messages lie on the longest path to
them. Level by level every rank computes, then exchanges one message with each peer that it has
something for. Both ends derive the same messages from the same graphs, so nothing is negotiated.

What a large bucket computes on a level would keep the network waiting, and be kept waiting by it.
So its partitions go in *waves*, each with rounds of its own: wave after wave on one level, then on
the next. While one is computed, those before it travel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hipress.casync.graph import GRADIENT, Graph, Node, Op, Role, worker


class Value(NamedTuple):
    """The result of task ``task`` of graph number ``graph`` on this rank."""

    graph: int
    task: int


@dataclass
class Round:
    """What a rank computes, then sends to and receives from whom.

    A message lists payloads in an order on which both ends agree.
    """

    compute: list[Value] = field(default_factory=list)
    send: dict[int, list[Value]] = field(default_factory=dict)
    receive: dict[int, list[Value]] = field(default_factory=dict)


def levels(graph: Graph) -> dict[tuple[Node, int], int]:
    """The level of every task, by node and index.

    :raises ValueError: if the graph has a server, which a process group lacks, or waits for itself
    """
    for node in graph.tasks:
        if node.role != Role.WORKER:
            raise ValueError(f"a process group has no {node}: choose a topology without servers")
    level: dict[tuple[Node, int], int] = {}
    wire: dict[tuple, int] = {}
    pending = {node: list(enumerate(tasks)) for node, tasks in graph.tasks.items()}
    moved = True
    while moved:
        moved = False
        for node, tasks in pending.items():
            waiting = []
            for t, task in tasks:
                inputs = [(node, i) for i in task.inputs if i != GRADIENT]
                arrived = (task.peer, node, task.partition, task.step)
                ready = arrived in wire if task.op == Op.RECV else all(i in level for i in inputs)
                if not ready:
                    waiting.append((t, task))
                    continue
                moved = True
                if task.op == Op.RECV:
                    level[node, t] = wire[arrived] + 1
                    continue
                level[node, t] = max((level[i] for i in inputs), default=0)
                if task.op == Op.SEND:
                    wire[node, task.peer, task.partition, task.step] = level[node, t]
            pending[node] = waiting
    stuck = [str(node) for node, tasks in pending.items() if tasks]
    if stuck:
        raise ValueError(f"the graph waits for itself at {stuck[0]}")
    return level


def origins(graph: Graph) -> dict[tuple[Node, int], tuple[Node, int]]:
    """The ENCODE, by node and index, that each payload of each node came out of."""
    sent = {
        (node, task.peer, task.partition, task.step): (node, task.inputs[0])
        for node, tasks in graph.tasks.items()
        for task in tasks
        if task.op == Op.SEND
    }
    found = {}
    for node, tasks in graph.tasks.items():
        for t, task in enumerate(tasks):
            if task.op not in (Op.ENCODE, Op.RECV):
                continue
            origin, source = (node, t), task
            while source.op == Op.RECV:  # perhaps passed on by several
                origin = sent[source.peer, origin[0], source.partition, source.step]
                source = graph.tasks[origin[0]][origin[1]]
            found[node, t] = origin
    return found


def results(graph: Graph) -> set[tuple[Node, int]]:
    """The ENCODEs whose payloads are decoded as results (a reduce-scatter has none: its results
    are sums that nobody else needs)."""
    origin = origins(graph)
    return {
        origin[node, task.inputs[0]]
        for node, tasks in graph.tasks.items()
        for task in tasks
        if task.op == Op.DECODE and (node, task.inputs[0]) in origin
    }


def waves(graphs: Sequence[Graph], elements: int) -> list[list[int]]:
    """The wave of every partition of every graph, from 0: in each about so many elements, but in
    the first about a quarter, in the second half as many, for the network waits for the first.

    Every node merges equally many partitions in a wave, if it does in all; so a wave is at least
    one partition of each.
    """
    if sum(cut.count for graph in graphs for cut in graph.partitions) <= elements:
        return [[0] * len(graph.partitions) for graph in graphs]
    found, number, filled = [], 0, 0
    for graph in graphs:
        turn, owned = {}, Counter()
        for partition, node in enumerate(_owners(graph)):
            turn[partition] = owned[node]
            owned[node] += 1
        counts: Counter[int] = Counter()
        for partition, cut in enumerate(graph.partitions):
            counts[turn[partition]] += cut.count
        wave = {}
        for each in sorted(counts):
            most = elements >> max(2 - number, 0)
            if filled and filled + counts[each] > most:
                number, filled = number + 1, 0
            wave[each] = number
            filled += counts[each]
        found.append([wave[turn[partition]] for partition in range(len(graph.partitions))])
    return found


def wave_count(wave: Sequence[Sequence[int]] | None) -> int:
    """How many waves there are; None: one."""
    return 1 + max((n for each in wave or () for n in each), default=0)


def _owners(graph: Graph) -> list[Node | None]:
    """Who merges a partition last; None where nobody merges."""
    level, last = levels(graph), {}
    for node, tasks in graph.tasks.items():
        for t, task in enumerate(tasks):
            if task.op == Op.MERGE:
                at = (level[node, t], node)
                last[task.partition] = max(last.get(task.partition, at), at)
    return [last[p][1] if p in last else None for p in range(len(graph.partitions))]


def schedule(
    graphs: Sequence[Graph], rank: int, wave: Sequence[Sequence[int]] | None = None
) -> list[Round]:
    """The rounds of ``rank`` for several gradients together, as many on all ranks: of the lowest
    level those of all waves, of the next one, and so on.

    :param wave: of every partition, see :func:`waves`; default: there is one
    """
    node, last = worker(rank), -1
    count = wave_count(wave)
    rounds: dict[int, Round] = {}
    order: dict[tuple, tuple] = {}
    for g, graph in enumerate(graphs):
        level = levels(graph)
        last = max(last, *level.values())
        for t, task in enumerate(graph.tasks.get(node, [])):
            at, of = level[node, t], wave[g][task.partition] if wave else 0
            if task.op not in (Op.SEND, Op.RECV):
                rounds.setdefault(at * count + of, Round()).compute.append(Value(g, t))
                continue
            sending = task.op == Op.SEND
            value = Value(g, task.inputs[0] if sending else t)
            number = (at if sending else at - 1) * count + of
            each = rounds.setdefault(number, Round())
            peer = task.peer.rank
            (each.send if sending else each.receive).setdefault(peer, []).append(value)
            order[number, sending, peer, value] = (g, task.partition, task.step)
    for number, each in rounds.items():
        for sending, messages in ((True, each.send), (False, each.receive)):
            for peer, values in messages.items():
                values.sort(key=lambda v, at=(number, sending, peer): order[(*at, v)])
    return [rounds.get(number, Round()) for number in range((last + 1) * count)]
