"""Every topology: proved symbolically, run in NumPy with every codec, with clear errors for bad
arguments."""

import numpy as np
import pytest

import hipress
from graph_checker import GraphError, check
from graph_reference import Reference, compression
from hipress.topology import TOPOLOGIES, Op, build, topologies
from hipress.topology.graph import GRADIENT, PLAIN, Role, worker

SERVERLESS = topologies.names(servers=False)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("num_workers", range(1, 18))
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_contribution_exactly_once_on_every_node(topology, num_workers):
    for partitions in range(1, 10):
        for home in (0, 3):
            graph = build(
                topology,
                64 * partitions - 1,
                num_workers,
                num_servers=2,
                home=home,
                partitions=partitions,
                devices_per_host=1 + partitions % 4,
            )
            assert len(graph.partitions) == partitions
            check(graph)


@pytest.mark.parametrize("topology", SERVERLESS)
def test_serverless_topologies_have_workers_only(topology):
    graph = build(topology, 100_000, 5)
    assert {node.role for node in graph.tasks} <= {Role.WORKER}
    check(graph)


def bytes_sent(graph, direction):
    """Return the elements that each worker sends (or receives), as a share of the gradient."""
    return {
        node.rank: sum(graph.partitions[t.partition].count for t in tasks if t.op == direction)
        / graph.n
        for node, tasks in graph.tasks.items()
    }


def steps(graph):
    """Return the longest chain of messages."""
    arrival = {}
    left = dict(graph.tasks)
    times = {node: [] for node in graph.tasks}
    while left:
        for node, tasks in list(left.items()):
            done = times[node]
            for task in tasks[len(done) :]:
                at = max((done[i] for i in task.inputs if i >= 0), default=0)
                if task.op == Op.RECV:
                    message = (task.peer, node, task.partition, task.step)
                    if message not in arrival:
                        break
                    at = arrival[message]
                if task.op == Op.SEND:
                    at += 1
                    arrival[node, task.peer, task.partition, task.step] = at
                done.append(at)
            else:
                del left[node]
    return max(max(done) for done in times.values())


@pytest.mark.parametrize(
    ("topology", "num_workers", "hops", "share"),
    [
        ("colocated", 8, 2, 2 * 7 / 8),
        ("ring", 8, 14, 2 * 7 / 8),
        ("ring", 5, 8, 2 * 4 / 5),
        ("butterfly", 8, 6, 2 * 7 / 8),
        ("butterfly", 6, 6, 2 * 3 / 4 + 1),
        ("tree", 8, 6, 2.0),
        ("tree", 7, 4, 2.0),
        ("star", 8, 2, 7.0),
        ("hierarchical", 8, 4, None),
    ],
)
def test_costs_are_what_the_docstrings_say(topology, num_workers, hops, share):
    graph = build(topology, 64 * 120, num_workers, partitions=120, devices_per_host=4)
    assert steps(graph) == hops
    if share is not None:
        assert max(bytes_sent(graph, Op.SEND).values()) == pytest.approx(share, rel=0.02)
        assert max(bytes_sent(graph, Op.RECV).values()) == pytest.approx(share, rel=0.02)


def test_hierarchical_sends_each_hosts_sum_once_between_hosts():
    hosts, devices = 3, 4
    graph = build("hierarchical", 64 * 240, hosts * devices, partitions=240, devices_per_host=4)
    between = np.zeros(hosts)
    for node, tasks in graph.tasks.items():
        for task in tasks:
            if task.op == Op.SEND and task.peer.rank // devices != node.rank // devices:
                between[node.rank // devices] += graph.partitions[task.partition].count / graph.n
    np.testing.assert_allclose(between, 2 * (hosts - 1) / hosts, rtol=0.02)
    plain = {t.num_summands for tasks in graph.tasks.values() for t in tasks if t.op == Op.ENCODE}
    assert plain == {PLAIN, devices, hosts * devices}


def gradients(n, num_workers, iteration):
    rng = np.random.default_rng([iteration, num_workers])
    return {worker(r): rng.standard_normal(n).astype(np.float32) for r in range(num_workers)}


@pytest.mark.parametrize("codec", sorted(hipress.codecs()))
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_all_nodes_end_bit_identical_with_every_codec(topology, codec):
    n, partitions = 1000, 5
    for num_workers in (1, 2, 5, 8):
        graph = build(
            topology, n, num_workers, num_servers=2, partitions=partitions, devices_per_host=3
        )
        run = Reference(graph, compression(codec))
        for iteration in range(3):
            outputs = run.step(gradients(n, num_workers, iteration))
            first = outputs[worker(0)]
            assert np.isfinite(first).all()
            for out in outputs.values():
                assert out.tobytes() == first.tobytes()


@pytest.mark.parametrize("topology", ["ps", "colocated", "ring"])
@pytest.mark.parametrize("num_workers", [1, 3])
def test_gradients_have_momentum_and_sums_have_none(topology, num_workers):
    graph = build(topology, 1000, num_workers, num_servers=1)
    make = compression("dgc", momentum=0.75)
    for node, tasks in graph.tasks.items():
        for task in tasks:
            if task.op == Op.ENCODE:
                momentum = 0.75 if task.inputs == (GRADIENT,) else 0
                assert f"momentum={momentum} " in make(node, task).config + " "


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_uncompressed_it_is_the_sum(topology):
    n, num_workers = 1000, 6
    graph = build(topology, n, num_workers, num_servers=2, partitions=7, devices_per_host=4)
    given = gradients(n, num_workers, 0)
    expected = np.sum([g.astype(np.float64) for g in given.values()], axis=0)
    for out in Reference(graph, lambda node, task: None).step(given).values():
        np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_what_compression_leaves_out_comes_later(topology):
    # Error feedback at every place that encodes: after enough steps of nothing, all has arrived.
    n, num_workers = 640, 4
    graph = build(topology, n, num_workers, num_servers=2, partitions=4, devices_per_host=2)
    run = Reference(graph, compression("2bit", threshold=0.25))
    given = gradients(n, num_workers, 0)
    total = np.zeros(n)
    nothing = dict.fromkeys(given, np.zeros(n, np.float32))
    for iteration in range(40):
        total += run.step(given if iteration == 0 else nothing)[worker(0)]
    # The rest is below the thresholds of the encodes along the path: 0.25 times their summands.
    at_most = 0.25 * sum(
        t.num_summands
        for tasks in graph.tasks.values()
        for t in tasks
        if t.op == Op.ENCODE and t.partition == 0
    )
    np.testing.assert_allclose(total, sum(given.values()), atol=at_most)


def test_colocated_is_ps_with_a_server_per_worker():
    n, num_workers = 1000, 4
    given = [gradients(n, num_workers, i) for i in range(3)]
    runs = [
        Reference(build(t, n, num_workers, num_workers, partitions=4), compression("onebit"))
        for t in ("ps", "colocated")
    ]
    for step in given:
        a, b = (run.step(step)[worker(0)] for run in runs)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("topology", SERVERLESS)
def test_the_checker_sees_a_wrong_number_of_summands(topology):
    graph = build(topology, 640, 3, devices_per_host=2)
    node, t = next(
        (node, t)
        for node, tasks in graph.tasks.items()
        for t, task in enumerate(tasks)
        if task.op == Op.ENCODE and task.num_summands == 3
    )
    tasks = graph.tasks[node]
    tasks[t] = type(tasks[t])(tasks[t].op, tasks[t].partition, tasks[t].inputs, num_summands=4)
    with pytest.raises(GraphError, match="encodes a sum of 3 as one of 4"):
        check(graph)


def test_default_cuts_spread_a_gradient_over_the_workers():
    assert len(build("ring", 100, 4).partitions) == 1
    assert len(build("ring", 40_000, 4).partitions) == 2  # not below 16 Ki elements
    assert len(build("ring", 400_000, 4).partitions) == 4
    assert len(build("ring", 4_000_000, 4).partitions) == 16  # 15.3 of 1 MiB, in whole rounds
    assert len(build("colocated", 400_000, 4).partitions) == 4


def test_names_may_be_capitalised_as_in_the_paper():
    assert build("Ring", 10, 2).tasks == build("ring", 10, 2).tasks


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"topology": "mesh"}, "there is no topology 'mesh'; there are ps, colocated, ring"),
        ({"topology": "ps"}, "ps needs servers and the job has none: start some"),
        ({"n": 0}, "got n=0, num_workers=2"),
        ({"num_workers": 0}, "num_workers=0"),
        ({"partitions": 0}, "got partitions=0"),
        ({"devices_per_host": 0}, "devices_per_host=0"),
        ({"sync": False}, "asynchronous training needs servers, which topology ring does not use"),
    ],
)
def test_a_wish_that_cannot_be_is_one_sentence(wish, message):
    with pytest.raises(ValueError, match=message):
        build(**{"topology": "ring", "n": 10, "num_workers": 2, **wish})
