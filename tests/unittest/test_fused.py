"""Small gradients in shared messages: the same bits as alone, and nobody waits for the others."""

from __future__ import annotations

import signal
import sys

import pytest

from harness.cluster import Cluster, run_cluster, worker_outputs

HEAD = """
import sys
import time
import numpy as np
from hipress.node import HipressError, Node

node = Node()
rank = node.rank

def gradient(key, n, iteration=0):
    return np.random.default_rng([key, iteration, rank]).standard_normal(n).astype(np.float32)
"""

SAME_BITS = """
node.set_gradient_compression({"type": "2bit", "min_size": 300})
sizes = [1, 7, 64, 250, 999, 1024, 1025, 5000, 40_000] * 8
count = len(sizes)  # a multiple of 6, so that both halves have the same homes and trees
for key in range(2 * count):
    node.init_array(key, np.zeros(sizes[key % count], np.float32))
gradients = [np.zeros(n, np.float32) for n in sizes]
together = [np.zeros(n, np.float32) for n in sizes]
apart = [np.zeros(n, np.float32) for n in sizes]
group = node.group(range(count), gradients, together, [-key for key in range(count)])
for iteration in range(4):
    for key, array in enumerate(gradients):
        array[:] = gradient(key, array.size, iteration)
    group.pushpull().wait(30)
    for key in range(count):
        node.pushpull(count + key, gradients[key], apart[key]).wait(30)
    for key in range(count):
        assert together[key].tobytes() == apart[key].tobytes(), (iteration, key, sizes[key])
        assert iteration < 2 or together[key].any(), key
counts = [node.stats()["messages_sent"]]
group.pushpull().wait(30)
counts.append(node.stats()["messages_sent"])
for key in range(count):
    node.pushpull(count + key, gradients[key], apart[key]).wait(30)
counts.append(node.stats()["messages_sent"])
assert node.stats()["refused_messages"] == 0
print("sent", counts[1] - counts[0], counts[2] - counts[1])
node.barrier()
node.stop()
"""


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ps", "colocated", "ring", "tree", "butterfly"])
def test_together_and_apart_give_the_same_bits(topology):
    results = run_cluster(
        HEAD + SAME_BITS,
        workers=3,
        servers=2 if topology == "ps" else 0,
        env={"HIPRESS_TOPOLOGY": topology},
        timeout=90,
    )
    for output in worker_outputs(results):
        together, apart = map(int, output.split("sent")[1].split()[:2])
        assert 2 * together <= apart, output  # how many become ready at once is the machine's


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ps", "colocated"])
def test_keys_of_a_group_do_not_wait_for_each_other(topology):
    body = """
keys = list(range(40))
for key in keys:
    node.init_array(key, np.zeros(10, np.float32))
ones = [np.ones(10, np.float32) for _ in keys]
outs = [np.zeros(10, np.float32) for _ in keys]
if rank == 0:
    everything = node.group(keys, ones, outs).pushpull()
    node.barrier()  # worker 1 has all its results, of which none needs key 39
    try:
        everything.wait(0.2)
        raise AssertionError("key 39 is over, though worker 1 has not pushed it")
    except TimeoutError:
        pass
    end = time.monotonic() + 20
    while not all((out == 2).all() for out in outs[:39]):
        assert time.monotonic() < end, "not all results but key 39's have come"
        time.sleep(0.01)
    node.barrier()
    everything.wait(20)
else:
    node.group(keys[:39], ones[:39], outs[:39]).pushpull().wait(20)
    node.barrier()
    node.barrier()
    node.pushpull(39, ones[39], outs[39]).wait(20)
assert all((out == 2).all() for out in outs)
node.barrier()
node.stop()
"""
    servers = 2 if topology == "ps" else 0
    results = run_cluster(
        HEAD + body, workers=2, servers=servers, env={"HIPRESS_TOPOLOGY": topology}, timeout=60
    )
    worker_outputs(results)


def test_an_optimizer_updates_each_key_of_a_group():
    server = """
from hipress.node import Node

def sgd(key, name, gradient, weight):
    weight -= (key + 1) * gradient

node = Node()
if node.role == "server":
    node.set_updater(sgd)
node.serve()
"""
    body = """
for key in range(30):
    node.init_array(key, np.full(6, 100, np.float32))
ones = [np.ones(6, np.float32) for _ in range(30)]
outs = [np.zeros(6, np.float32) for _ in range(30)]
group = node.group(range(30), ones, outs)
for step in range(1, 4):
    group.pushpull().wait(20)
    for key, out in enumerate(outs):
        assert (out == 100 - 2 * step * (key + 1)).all(), (step, key, out)
again = np.zeros(6, np.float32)
node.pull(7, again).wait(20)
assert (again == outs[7]).all()
node.barrier()
node.stop()
"""
    command = (sys.executable, "-c", server)
    worker_outputs(run_cluster(HEAD + body, servers=2, server_command=command, timeout=60))


def test_what_cannot_be_a_group_is_said_and_nothing_is_pushed():
    body = """
for key in range(3):
    node.init_array(key, np.zeros(8, np.float32))
x = [np.ones(8, np.float32) for _ in range(3)]

def refused(sentence, make):
    try:
        make()
    except HipressError as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"not refused: {sentence}")

refused("one gradient, output and priority for each key", lambda: node.group([0, 1], x))
refused("each key once", lambda: node.group([0, 1, 1], x))
refused("same size and dtype", lambda: node.group([0], [x[0]], [np.zeros(9, np.float32)]))
refused("float32 or float16", lambda: node.group([0], [np.zeros(8)]))
refused("it has not been initialised", lambda: node.group([0, 1, 5], x).pushpull())
wrong = [x[0], x[1], np.zeros(9, np.float32)]
refused("it was initialised with 8 float32", lambda: node.group([0, 1, 2], wrong).pushpull())
node.group([], []).pushpull().wait(5)
node.group([0, 1, 2], x).pushpull().wait(20)
assert all((a == 2).all() for a in x), x  # what was refused had pushed nothing before
node.barrier()
node.stop()
"""
    results = run_cluster(
        HEAD + body, workers=2, servers=0, env={"HIPRESS_TOPOLOGY": "colocated"}, timeout=60
    )
    worker_outputs(results)


def test_a_group_ends_with_the_name_of_whoever_died():
    body = """
for key in range(50):
    node.init_array(key, np.zeros(16, np.float32))
group = node.group(range(50), [np.ones(16, np.float32) for _ in range(50)])
print("running", flush=True)
try:
    while True:
        group.pushpull().wait(30)
except HipressError as error:
    print("failed:", error, flush=True)
    node.abort()
"""
    with Cluster(
        HEAD + body, workers=3, servers=0, env={"HIPRESS_TOPOLOGY": "colocated"}
    ) as cluster:
        for rank in range(3):
            cluster.wait_for(f"worker {rank}", "running")
        cluster.signal("worker 1", signal.SIGKILL)
        for rank in (0, 2):
            cluster.wait_for(f"worker {rank}", "failed: worker 1")
