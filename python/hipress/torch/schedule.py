"""Task graphs laid out in rounds, the form in which they run on point-to-point messages.

All tasks of all graphs of a bucket get a *level*: how many messages lie on the longest path to
them. Level by level every rank computes, then exchanges one message with each peer that it has
something for. Both ends derive the same messages from the same graphs, so nothing is negotiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hipress.casync.graph import GRADIENT, Graph, Op, Role, worker


@dataclass(frozen=True)
class Value:
    """A task's result: task ``task`` of graph number ``graph`` on this rank."""

    graph: int
    task: int


@dataclass
class Round:
    """What a rank computes, and then sends and receives. Messages list payloads in an order on
    which both ends agree."""

    compute: list[Value] = field(default_factory=list)
    send: dict[int, list[Value]] = field(default_factory=dict)
    receive: dict[int, list[Value]] = field(default_factory=dict)


@dataclass
class Schedule:
    """A rank's rounds; ``contributions[value]`` counts the workers whose gradients are in it."""

    rounds: list[Round]
    contributions: dict[Value, int]


def levels(graph: Graph) -> dict:
    """{(node, task): level} of all tasks, and {(node, task): contributions}.

    :raises ValueError: if a task waits for itself, or has a server, which a process group lacks
    """
    for node in graph.tasks:
        if node.role != Role.WORKER:
            raise ValueError(f"a process group has no {node}: take a topology of workers only")
    wire: dict[tuple, tuple[int, int]] = {}
    level: dict[tuple, int] = {}
    count: dict[tuple, int] = {}
    at = dict.fromkeys(graph.tasks, 0)
    waiting: dict[tuple, object] = {}
    todo = list(graph.tasks)
    # A node's list is in an order in which it can run, but for receives: park there, and go on
    # when the message comes.
    pending = {node: list(enumerate(tasks)) for node, tasks in graph.tasks.items()}
    del at, waiting, todo
    moved = True
    while moved:
        moved = False
        for node, tasks in pending.items():
            left = []
            for t, task in tasks:
                inputs = [(node, i) for i in task.inputs if i != GRADIENT]
                message = (task.peer, node, task.partition, task.step)
                if any(i not in level for i in inputs) or (
                    task.op == Op.RECV and message not in wire
                ):
                    left.append((t, task))
                    continue
                moved = True
                own = (node, t)
                if task.op == Op.RECV:
                    level[own], count[own] = wire[message]
                    level[own] += 1
                    continue
                level[own] = max((level[i] for i in inputs), default=0)
                count[own] = sum(count[i] for i in inputs) + task.inputs.count(GRADIENT)
                if task.op == Op.SEND:
                    key = (node, task.peer, task.partition, task.step)
                    wire[key] = (level[own], count[own])
            pending[node] = left
    if any(pending.values()):
        stuck = next(node for node, tasks in pending.items() if tasks)
        raise ValueError(f"the graph waits for itself at {stuck}")
    return level, count


def schedule(graphs: Sequence[Graph], rank: int) -> Schedule:
    """The rounds of ``rank`` for several gradients at a time."""
    node = worker(rank)
    contributions: dict[Value, int] = {}
    rounds: dict[int, Round] = {}
    order: dict[Value, tuple] = {}
    for g, graph in enumerate(graphs):
        level, count = levels(graph)
        for t, task in enumerate(graph.tasks.get(node, [])):
            value, at = Value(g, t), level[node, t]
            contributions[value] = count[node, t]
            if task.op == Op.SEND:
                sent = Value(g, task.inputs[0])
                messages = rounds.setdefault(at, Round()).send
            elif task.op == Op.RECV:
                sent = value
                messages = rounds.setdefault(at - 1, Round()).receive
            else:
                rounds.setdefault(at, Round()).compute.append(value)
                continue
            order[sent] = (g, task.partition, task.step)
            messages.setdefault(task.peer.rank, []).append(sent)
    found = [rounds.get(at, Round()) for at in range(max(rounds, default=-1) + 1)]
    for each in found:
        for messages in (each.send, each.receive):
            for values in messages.values():
                values.sort(key=order.__getitem__)
    return Schedule(found, contributions)
