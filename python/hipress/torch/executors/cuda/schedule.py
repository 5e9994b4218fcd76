"""Task graphs divided into rounds, the form in which they run on point-to-point messages.

All tasks of all graphs of a bucket get a *level*: the number of messages on the longest path to
them. In each level, every rank computes, and then exchanges one message with each peer that needs
something. Both ends derive the same messages from the same graphs, so nothing is negotiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hipress.topology.graph import GRADIENT, Graph, Node, Op, Role, worker


class Value(NamedTuple):
    """Result of task ``task`` of graph number ``graph`` on this rank."""

    graph: int
    task: int


@dataclass
class Round:
    """Values that a rank computes, then sends to and receives from each peer.

    A message lists payloads in an order on which both ends agree.
    """

    compute: list[Value] = field(default_factory=list)
    send: dict[int, list[Value]] = field(default_factory=dict)
    receive: dict[int, list[Value]] = field(default_factory=dict)


def levels(graph: Graph) -> dict[tuple[Node, int], int]:
    """Return the level of every task, by node and index."""
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


def schedule(graphs: Sequence[Graph], rank: int) -> list[Round]:
    """Return the rounds of ``rank`` for several gradients together.

    There is one round for each level, and as many rounds on all ranks.
    """
    node, last = worker(rank), -1
    rounds: dict[int, Round] = {}
    order: dict[tuple, tuple] = {}
    for g, graph in enumerate(graphs):
        level = levels(graph)
        last = max(last, *level.values())
        for t, task in enumerate(graph.tasks.get(node, [])):
            at = level[node, t]
            if task.op not in (Op.SEND, Op.RECV):
                rounds.setdefault(at, Round()).compute.append(Value(g, t))
                continue
            sending = task.op == Op.SEND
            value = Value(g, task.inputs[0] if sending else t)
            number = at if sending else at - 1
            each = rounds.setdefault(number, Round())
            peer = task.peer.rank
            (each.send if sending else each.receive).setdefault(peer, []).append(value)
            order[number, sending, peer, value] = (g, task.partition, task.step)
    for number, each in rounds.items():
        for sending, messages in ((True, each.send), (False, each.receive)):
            for peer, values in messages.items():
                values.sort(key=lambda v, at=(number, sending, peer): order[(*at, v)])
    return [rounds.get(number, Round()) for number in range(last + 1)]
