"""Graphs of topologies: right for any number of nodes and partitions, and equal to plain sums in
NumPy."""

import dataclasses

import numpy as np
import pytest

from graph_checker import GraphError, check
from graph_reference import Reference
from hipress.topology import Op, build
from hipress.topology.flat_program import flatten
from hipress.topology.graph import BLOCK, cut, server, worker


@pytest.mark.parametrize("num_workers", range(1, 18))
@pytest.mark.parametrize("partitions", [1, 2, 5, 9])
@pytest.mark.parametrize("num_servers", [1, 2, 3])
def test_every_contribution_exactly_once(num_workers, num_servers, partitions):
    n = 64 * num_servers * partitions
    graph = build("ps", n, num_workers, num_servers, partition_elements=64, bigarray_bound=1)
    assert len(graph.partitions) == num_servers * partitions
    check(graph)


def test_small_keys_go_whole_to_their_home():
    graph = build("ps", 1000, 2, 3, home=4)
    assert len(graph.partitions) == 1
    assert set(graph.tasks) == {worker(0), worker(1), server(1)}


def test_shards_are_contiguous_and_cut_at_blocks():
    graph = build("ps", 1_000_003, 2, 3, home=1, partition_elements=100_000)
    check(graph)
    for rank in range(3):
        own = sorted({t.partition for t in graph.tasks[server(rank)]})
        cuts = [graph.partitions[p] for p in own]
        assert all(a.offset + a.count == b.offset for a, b in zip(cuts, cuts[1:], strict=False))
        assert all(c.offset % BLOCK == 0 for c in cuts)
        assert max(c.count for c in cuts) <= 100_000 + BLOCK


@pytest.mark.parametrize(
    ("begin", "end", "size", "expected"),
    [(0, 0, 10, []), (0, 10, 100, [10]), (0, 128, 64, [64, 64]), (64, 200, 70, [128, 8])],
)
def test_cut(begin, end, size, expected):
    assert [p.count for p in cut(begin, end, size, 64)] == expected


def drop_merge_input(graph):
    tasks = graph.tasks[server(0)]
    t = next(i for i, task in enumerate(tasks) if task.op == Op.MERGE)
    tasks[t] = dataclasses.replace(tasks[t], inputs=tasks[t].inputs[:-1])


def count_twice(graph):
    tasks = graph.tasks[server(0)]
    t = next(i for i, task in enumerate(tasks) if task.op == Op.MERGE)
    tasks[t] = dataclasses.replace(tasks[t], inputs=tasks[t].inputs + tasks[t].inputs[:1])


def send_the_exact_sum_to_one(graph):
    tasks = graph.tasks[server(0)]
    t = max(i for i, task in enumerate(tasks) if task.op == Op.SEND)
    merged = next(i for i, task in enumerate(tasks) if task.op == Op.MERGE)
    tasks[t] = dataclasses.replace(tasks[t], inputs=(merged,))


def forget_a_send(graph):
    tasks = graph.tasks[worker(1)]
    del tasks[1]
    for t, task in enumerate(tasks[1:], 1):
        inputs = tuple(i - 1 if i > 1 else i for i in task.inputs)
        tasks[t] = dataclasses.replace(task, inputs=inputs)


def forget_an_output(graph):
    tasks = graph.tasks[worker(1)]
    assert tasks[-1].op == Op.DECODE
    del tasks[-1]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_merge_input, "exactly once"),
        (count_twice, "exactly once"),
        (send_the_exact_sum_to_one, "different values"),
        (forget_a_send, "deadlock"),
        (forget_an_output, "no result"),
    ],
)
def test_the_checker_finds_mistakes(damage, message):
    graph = build("ps", 10, 3, 1)
    check(graph)
    damage(graph)
    with pytest.raises(GraphError, match=message):
        check(graph)


def test_reference_without_compression_is_the_sum_in_rank_order():
    rng = np.random.default_rng(7)
    graph = build("ps", 1000, 4, 2, partition_elements=128, bigarray_bound=1)
    run = Reference(graph, lambda node, partition: None)
    gradients = {worker(r): rng.standard_normal(1000).astype(np.float32) for r in range(4)}
    g = [gradients[worker(r)] for r in range(4)]
    for out in run.step(gradients).values():
        np.testing.assert_array_equal(out, ((g[0] + g[1]) + g[2]) + g[3])


def test_flat_form():
    graph = build("ps", 10, 2, 1)
    flat = flatten(graph, worker(0)).tolist()
    to_server = 1 << 16
    assert flat == [
        *(2, 0, 1, 4, 3),  # version, per worker, partitions, tasks, inputs
        *(0, 10),
        *(Op.ENCODE, 0, 0, -1, 1, 0, 1),
        *(Op.SEND, 0, 0, to_server, 1, 1, 1),
        *(Op.RECV, 0, 0, to_server, 1, 2, 0),
        *(Op.DECODE, 0, 0, -1, 1, 2, 1),
        *(-1, 0, 2),
    ]
