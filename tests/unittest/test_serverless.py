"""Jobs without servers: real processes on loopback against the NumPy reference, bit for bit."""

from __future__ import annotations

import signal
import sys

import pytest

from harness.cluster import Cluster, run_cluster, worker_outputs
from harness.programs import (
    CHANGE_COMPRESSION,
    TRAIN_UNTIL_FAILURE,
    check_that_survivors_name_the_dead,
)

HEAD = """
import sys
import numpy as np
from hipress.node import HipressError, Node

node = Node()
rank, workers = node.rank, node.num_workers

def gradient(n, iteration, worker, seed=0):
    return np.random.default_rng([seed, iteration, worker]).standard_normal(n).astype(np.float32)

def gradients(n, iteration, seed=0):
    return [gradient(n, iteration, w, seed) for w in range(workers)]
"""
TAIL = """
node.wait_all()
node.stop()
"""


def run(body: str, workers: int, topology: str, env: dict | None = None, **options) -> list[str]:
    env = {"HIPRESS_TOPOLOGY": topology, "HIPRESS_DEVICES_PER_HOST": "2", **(env or {})}
    script = HEAD + body + TAIL
    results = run_cluster(script, workers=workers, servers=0, env=env, timeout=90, **options)
    return worker_outputs(results)


EQUALS_THE_REFERENCE = """
from hipress.casync.graph import worker
from hipress.casync.reference import Reference, compression

n = 9_000
sizes = {0: n, 1: 700}
for type, params in (
    ("none", {}), ("2bit", {"threshold": 0.75}), ("1bit", {}), ("onebit", {}), ("topk", {}),
    ("tbq", {}), ("dgc", {"ratio": 0.05}),
):
    keys = {}
    for size in sizes.values():
        key = len(node_keys)
        node_keys.append(key)
        keys[key] = node.init_array(key, np.full(size, rank, np.float32))
    node.set_gradient_compression({"type": type, **params, "min_size": 0})
    references = {key: Reference(graph, compression(type, **params)) for key, graph in keys.items()}
    for iteration in range(4):
        given = {key: gradients(graph.n, iteration, key) for key, graph in keys.items()}
        outs = {key: np.zeros(graph.n, np.float32) for key, graph in keys.items()}
        waits = [node.pushpull(key, given[key][rank], outs[key]) for key in keys]
        for wait in waits:
            wait.wait(30)
        for key, reference in references.items():
            expected = reference.step({worker(r): g for r, g in enumerate(given[key])})
            np.testing.assert_array_equal(outs[key], expected[worker(rank)], err_msg=type)
"""


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("topology", "workers"),
    [
        ("ring", 4),
        ("ring", 8),
        ("colocated", 4),
        ("colocated", 8),
        ("tree", 5),
        ("butterfly", 6),
        ("star", 3),
        ("hierarchical", 5),
    ],
)
def test_results_equal_the_numpy_reference_bit_for_bit(topology, workers):
    run(
        "node_keys = []\n" + EQUALS_THE_REFERENCE,
        workers,
        topology,
        env={"HIPRESS_PARTITION_ELEMENTS": "640", "HIPRESS_NUM_THREADS": "2"},
    )


def test_values_without_compression():
    run(
        """
sizes = [1, 7, 64, 1000, 4097, 300_001]
for key, n in enumerate(sizes):
    node.init_array(key, np.full(n, 10.0 * key + rank, np.float32))
for key, n in enumerate(sizes):
    out = np.zeros(n, np.float32)
    node.pull(key, out).wait(20)
    assert (out == 10.0 * key).all(), "worker 0's initial value"
for iteration in range(3):
    for key, n in enumerate(sizes):
        out = np.zeros(n, np.float32)
        node.push(key, gradient(n, iteration, rank)).wait(20)
        for _ in range(2):  # the second pull has no push of its own
            out[:] = 0
            node.pull(key, out).wait(20)
            np.testing.assert_allclose(out, sum(gradients(n, iteration)), atol=1e-5)
# Many pushes without a pull; then in place; then a pull of what pushpull has not kept.
for iteration in range(20):
    node.push(5, gradient(sizes[5], iteration, rank))
node.wait_all()
node.pull(5, out).wait(20)
np.testing.assert_allclose(out, sum(gradients(sizes[5], 19)), atol=1e-5)
x = gradient(sizes[5], 99, rank)
node.pushpull(5, x).wait(20)
np.testing.assert_allclose(x, sum(gradients(sizes[5], 99)), atol=1e-5)
try:
    node.pull(5, out).wait(20)
except HipressError as error:
    assert "is not kept: to pull it again, push and pull instead" in str(error), error
else:
    raise AssertionError("a pull after pushpull")
node.set_gradient_compression({"type": "2bit"})
node.pushpull(5, x).wait(20)
node.pull(5, out).wait(20)  # a payload is kept in any case
np.testing.assert_array_equal(out, x)
""",
        3,
        "ring",
        env={"HIPRESS_PARTITION_ELEMENTS": "65536"},
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_float16(workers):
    run(
        """
node.init_array(0, np.full(1001, 3, np.float16))
out = np.zeros(1001, np.float16)
node.pull(0, out).wait(20)
assert (out == 3).all()
for params in ({"type": "none"}, {"type": "2bit", "threshold": 0.5, "min_size": 0}):
    node.set_gradient_compression(params)
    x = np.full(1001, 0.5, np.float16)
    node.push(0, x).wait(20)
    node.pull(0, out).wait(20)
    assert (out == 0.5 * workers).all(), out
    node.pull(0, out).wait(20)
    assert (out == 0.5 * workers).all(), out
""",
        workers,
        "tree",
    )


def test_compression_can_change_in_mid_training_and_nothing_is_lost():
    # Workers switch at different iterations, so a ring's hops use different codecs.
    run(
        CHANGE_COMPRESSION,
        3,
        "ring",
        env={"HIPRESS_PARTITION_ELEMENTS": "1024"},
    )


def test_pull_none_leaves_the_way_back_uncompressed():
    run(
        """
n = 4096
node.init_array(0, np.zeros(n, np.float32))
node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "pull": "none"})
out = np.zeros(n, np.float32)
node.pushpull(0, np.full(n, 0.6, np.float32), out).wait(20)
# Each worker's payload says 0.5; their sum is not encoded again.
assert (out == 0.5 * workers).all()
""",
        3,
        "colocated",
    )


def test_what_cannot_be_is_one_sentence():
    run(
        """
def refused(call, *words):
    try:
        call()
    except HipressError as error:
        assert all(word in str(error) for word in words), error
        assert "\\n" not in str(error)
    else:
        raise AssertionError(f"accepted what should say {words}")

assert node.topology == "colocated" and node.serverless
refused(lambda: node.set_gradient_compression({"topology": "ps"}), "ps needs servers", "-s")
refused(lambda: node.set_gradient_compression({"topology": "mesh"}), "mesh", "ring", "butterfly")
refused(lambda: node.set_sync(False), "asynchronous training needs servers")
refused(lambda: node.set_gradient_compression({"topology": "hierarchical"}), "devices_per_host")
refused(lambda: node.set_gradient_compression({"plan": "/no/such.txt"}), "/no/such.txt")
refused(lambda: node.init_array(9, np.zeros(10 + rank, np.float32)),
        "initialised by worker 0 with 10 float32 elements, but by worker 1 with 11")
node.set_gradient_compression({"topology": "Ring", "type": "onebit"})
assert node.topology == "ring"
node.init_array(0, np.zeros(5, np.float32))
refused(lambda: node.init_array(0, np.zeros(5, np.float32)), "already initialised")
refused(lambda: node.set_gradient_compression({"topology": "tree"}), "before the first key", "ring")
node.set_gradient_compression({"topology": "ring", "type": "2bit"})
refused(lambda: node.command(0, 1, b""), "there is no server 0")
x = np.ones(5, np.float32)
node.pushpull(0, x).wait(20)
assert (x == workers).all()
""",
        2,
        "auto",
        env={"HIPRESS_DEVICES_PER_HOST": ""},
    )


def test_a_topology_without_servers_may_leave_servers_idle():
    results = run_cluster(
        HEAD
        + """
node.set_gradient_compression({"type": "2bit", "topology": "ring"})
node.init_array(0, np.zeros(5000, np.float32))
x = np.full(5000, 0.5, np.float32)
node.pushpull(0, x).wait(20)
assert (x == 0.5 * workers).all()
"""
        + TAIL,
        workers=3,
        servers=1,
        server_command=(sys.executable, "-c", "from hipress.node import Node; Node().serve()"),
    )
    assert len(results) == 5


def test_a_plan_decides_per_key(tmp_path):
    plan = tmp_path / "SeCoPaPlan.txt"
    plan.write_text("big,8192,y,3\nother,n,2\n")
    run(
        """
from hipress.casync import Op
node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "plan": PLAN})
graphs = {
    name: node.init_array(key, np.zeros(8192, np.float32), name)
    for key, name in enumerate(["big", "other", "unknown"])
}
assert [len(g.partitions) for g in graphs.values()] == [3, 2, 1]
for key, expected in enumerate([0.5, 0.625, 0.5]):
    x = np.full(8192, 0.625, np.float32)
    node.pushpull(key, x).wait(20)
    assert (x == expected * workers).all(), (key, x)
""".replace("PLAN", repr(str(plan))),
        2,
        "ring",
    )


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("topology", "victim", "number"),
    [
        ("ring", "worker 2", signal.SIGKILL),
        ("ring", "worker 0", signal.SIGSTOP),
        ("ring", "scheduler", signal.SIGKILL),
        ("colocated", "worker 0", signal.SIGKILL),
        ("tree", "worker 1", signal.SIGKILL),
    ],
)
def test_every_survivor_names_the_dead(topology, victim, number):
    env = {"HIPRESS_TOPOLOGY": topology}
    with Cluster(TRAIN_UNTIL_FAILURE, workers=4, servers=0, env=env) as cluster:
        check_that_survivors_name_the_dead(cluster, 4, victim, number)


def wait_in_vain(behaviour: str, workers: int, topology: str, env: dict) -> list[str]:
    return worker_outputs(
        run_cluster(
            f"""
import time
import numpy as np
from hipress.node import HipressError, Node

node = Node()
node.init_array(0, np.zeros(10, np.float32), "weight")
x = np.ones(10, np.float32)
try:
    for step in range(3):
        if node.rank == 1 and step == 2:
            {behaviour}
        node.pushpull(0, x, np.zeros_like(x)).wait(30)
    node.stop()
except HipressError as error:
    print("error:", error)
    node.abort()
""",
            workers=workers,
            servers=0,
            env={"HIPRESS_TOPOLOGY": topology, **env},
            check=False,
        )
    )


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ring", "colocated", "butterfly"])
def test_a_worker_that_leaves_early_is_named_by_all(topology):
    outputs = wait_in_vain("break", 4, topology, {})
    assert "error" not in outputs[1]
    for rank in (0, 2, 3):
        # One sees it and tells the others; its own end must not be what they name.
        assert "worker 1 left the job while iteration 4 of key 'weight'" in outputs[rank], outputs


# In the ring worker 1 hears from its neighbour, so it knows that it is late; colocated, only others
# know.
@pytest.mark.slow
@pytest.mark.parametrize("topology", ["ring", "colocated"])
def test_a_worker_that_stops_pushing_is_named_by_all(topology):
    outputs = wait_in_vain("time.sleep(11)", 4, topology, {"HIPRESS_TIMEOUT": "5"})
    for output in outputs:
        assert "waited 5 s for worker 1 to push iteration 4 of key 'weight'" in output, outputs


def test_who_leaves_in_peace_has_done_its_part_for_the_others():
    # Nobody pulls the last iteration but worker 0, and it does so late.
    run(
        """
node.init_array(0, np.zeros(100_000, np.float32))
x = np.ones(100_000, np.float32)
node.push(0, x)
if rank == 0:
    import time
    time.sleep(1)
    out = np.zeros(100_000, np.float32)
    node.pull(0, out).wait(20)
    assert (out == workers).all()
""",
        4,
        "ring",
    )
