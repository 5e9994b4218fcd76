"""The key-value store across real processes, without a framework: values, codecs, modes, bytes."""

import ctypes
import sys
import threading

import numpy as np
import pytest

from harness.cluster import run_cluster, worker_outputs
from harness.programs import CHANGE_COMPRESSION
from hipress.operations import Operations, Pending, memory_of

SERVER = (sys.executable, "-c", "from hipress.node import Node; Node().serve()")

PRELUDE = """
import numpy as np
from hipress.node import HipressError, Node

node = Node()
rank, workers = node.rank, node.num_workers

def gradient(n, iteration, r):
    return np.random.default_rng([n, iteration, r]).standard_normal(n).astype(np.float32)

def gradients(n, iteration):
    return [gradient(n, iteration, r) for r in range(workers)]

def in_rank_order(arrays):
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total
"""

END = """
node.barrier()
node.stop()
print("finished")
"""


def test_memory_is_found_whoever_may_write_it():
    array = np.arange(4, dtype=np.float32)
    found = (array.ctypes.data, 4, 0)
    assert memory_of(array) == found
    array.flags.writeable = False
    assert memory_of(array) == found
    assert memory_of(array[:0])[1] == 0


def test_ends_of_operations_reach_whoever_waits_one_by_one_or_together():
    operations = Operations()
    pending = [Pending(ValueError) for _ in range(4)]
    contexts = [operations.add(each) for each in pending]
    together = (ctypes.c_void_p * 2)(contexts[0], contexts[2])
    operations.on_done_together(together, 2)
    operations.on_done(contexts[1], b"worker 1 died")
    pending[0].wait(0)
    pending[2].wait(0)
    with pytest.raises(ValueError, match="worker 1 died"):
        pending[1].wait(0)
    with pytest.raises(TimeoutError):
        pending[3].wait(0)
    waiting = [threading.Thread(target=pending[3].wait, args=[20]) for _ in range(3)]
    for thread in waiting:
        thread.start()
    operations.on_done(contexts[3], None)
    for thread in waiting:
        thread.join(20)
        assert not thread.is_alive()
    pending[3].wait(0)


def run(body: str, **options):
    """Runs `body` on every worker and checks that all reach the end."""
    options.setdefault("server_command", SERVER)
    results = run_cluster(PRELUDE + body + END, **options)
    outputs = worker_outputs(results)
    assert all("finished" in output for output in outputs)
    return outputs


def test_values_without_compression():
    run(
        """
sizes = [1, 7, 64, 1000, 4097, 300_001]
for key, n in enumerate(sizes):
    node.init_array(key, np.full(n, 10.0 * key + rank, np.float32))
for key, n in enumerate(sizes):
    out = np.zeros(n, np.float32)
    node.pull(key, out).wait(20)
    assert (out == 10.0 * key).all(), "rank 0's initial value"
for iteration in range(3):
    for key, n in enumerate(sizes):
        out = np.zeros(n, np.float32)
        node.push(key, gradient(n, iteration, rank)).wait(20)
        for _ in range(2):  # the second pull has no push of its own
            node.pull(key, out).wait(20)
            np.testing.assert_array_equal(out, in_rank_order(gradients(n, iteration)))
# Many pushes without a pull; then in place.
for iteration in range(20):
    node.push(5, gradient(sizes[5], iteration, rank))
node.wait_all()
node.pull(5, out).wait(20)
np.testing.assert_array_equal(out, in_rank_order(gradients(sizes[5], 19)))
x = gradient(sizes[5], 99, rank)
node.pushpull(5, x).wait(20)
np.testing.assert_array_equal(x, in_rank_order(gradients(sizes[5], 99)))
""",
        workers=3,
        servers=2,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "4000", "HIPRESS_PARTITION_ELEMENTS": "65536"},
    )


def test_float16():
    run(
        """
node.init_array(0, np.full(1001, 3, np.float16))
out = np.zeros(1001, np.float16)
node.pull(0, out).wait(20)
assert (out == 3).all()
for params in ({"type": "none"}, {"type": "2bit", "threshold": 0.5, "min_size": 0}):
    node.set_gradient_compression(params)
    x = np.full(1001, 0.5 + rank, np.float16)
    node.push(0, x).wait(20)
    node.pull(0, out).wait(20)
    assert (out == (2.0 if params["type"] == "none" else 1.0)).all(), out
"""
    )


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "params",
    [
        {"type": "2bit", "threshold": 0.75},
        {"type": "1bit"},
        {"type": "onebit"},
    ],
    ids=lambda p: p["type"],
)
def test_every_codec_equals_the_numpy_reference(params):
    run(
        f"""
params = {params!r}
"""
        + """
from hipress.casync.graph import worker
from hipress.casync.reference import Reference, compression

n = 10_000
graph = node.init_array(0, np.zeros(n, np.float32))
node.set_gradient_compression({**params, "min_size": 0})

reference = Reference(graph, compression(**params))
for iteration in range(5):
    out = np.zeros(n, np.float32)
    node.pushpull(0, gradient(n, iteration, rank), out).wait(20)
    expected = reference.step({worker(r): gradient(n, iteration, r) for r in range(workers)})
    np.testing.assert_array_equal(out, expected[worker(rank)])
""",
        workers=3,
        servers=2,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "1024"},
    )


def test_compression_can_change_in_mid_training_and_nothing_is_lost():
    # Workers switch at different iterations, so servers merge payloads of different codecs. In the
    # end, uncompressed, everything that residuals held back has arrived.
    run(
        CHANGE_COMPRESSION,
        workers=3,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "1024"},
    )


def test_bytes_on_the_wire_are_what_the_format_says():
    outputs = run(
        """
n = 1 << 20
node.init_array(0, np.zeros(n, np.float32))
for kind, bits in (("none", 32), ("2bit", 2), ("1bit", 1), ("onebit", 1)):
    node.set_gradient_compression({"type": kind})
    node.pushpull(0, gradient(n, 0, rank)).wait(20)
    node.barrier()
    before = node.stats()
    for iteration in range(4):
        node.pushpull(0, gradient(n, iteration, rank)).wait(20)
    node.barrier()
    after = node.stats()
    expected = 4 * n * bits // 8
    for way in ("pushed", "pulled"):
        moved = after[way + "_bytes"] - before[way + "_bytes"]
        assert abs(moved / expected - 1) < 0.02, (kind, way, moved, expected)
        assert after[way + "_raw_bytes"] - before[way + "_raw_bytes"] == 4 * n * 4
    # The transport counts the same, apart from barriers and heartbeats.
    assert after["data_bytes_sent"] - before["data_bytes_sent"] == (
        after["pushed_bytes"] - before["pushed_bytes"])
print("checked")
"""
    )
    assert all("checked" in output for output in outputs)


def test_pull_can_stay_uncompressed():
    run(
        """
n = 4096
node.init_array(0, np.zeros(n, np.float32))
node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "min_size": 0, "pull": "none"})
out = np.zeros(n, np.float32)
x = np.full(n, 0.5, np.float32)
node.pushpull(0, x, out).wait(20)
assert (out == 0.5 * workers).all()
stats = node.stats()
assert stats["pulled_bytes"] >= 4 * n
"""
    )


OPTIMIZER = """
import numpy as np
from hipress.node import Node

def sgd(key, name, gradient, weight):
    weight -= np.float32(0.5) * gradient

def controller(worker, head, body):
    node.set_updater(sgd if body == b"sgd" else None)
    return b"set by " + str(worker).encode()

node = Node()
node.serve(controller)
"""


def test_optimizer_on_servers():
    run(
        """
n = 3000
node.init_array(0, np.full(n, 1, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        assert node.command(server, 0, b"sgd") == b"set by 0"
node.barrier()
weight = np.full(n, 1, np.float32)
out = np.zeros(n, np.float32)
for params in ({"type": "none"}, {"type": "2bit", "threshold": 0.5, "min_size": 0}):
    node.set_gradient_compression(params)
    for iteration in range(5):
        node.push(0, np.full(n, 0.5, np.float32)).wait(20)
        weight -= np.float32(0.5) * np.float32(0.5 * workers)
        node.pull(0, out).wait(20)
        np.testing.assert_array_equal(out, weight)
        node.pull(0, out).wait(20)
        np.testing.assert_array_equal(out, weight)
""",
        server_command=(sys.executable, "-c", OPTIMIZER),
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "512"},
    )


def test_asynchronous_mode():
    run(
        """
n = 3000
node.set_sync(False)
node.init_array(0, np.full(n, 8, np.float32))
node.init_array(1, np.zeros(10, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        node.command(server, 0, b"sgd")
node.barrier()
out = np.zeros(n, np.float32)
for iteration in range(10 + rank):  # workers need not push equally often
    node.push(0, np.full(n, 1, np.float32)).wait(20)
    node.pull(0, out).wait(20)
    assert out.max() <= 8 - 0.5 * (iteration + 1), "a worker sees its own pushes"
node.barrier()
node.pull(0, out).wait(20)
np.testing.assert_array_equal(out, np.full(n, 8 - 0.5 * sum(10 + r for r in range(workers))))
""",
        server_command=(sys.executable, "-c", OPTIMIZER),
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "512"},
    )


def test_a_run_repeated_gives_the_same_bits():
    body = """
import hashlib
n = 50_000
digest = hashlib.sha256()
node.init_array(0, np.zeros(n, np.float32))
for iteration in range(10):
    out = np.zeros(n, np.float32)
    node.pushpull(0, gradient(n, iteration, rank) * 1e6, out).wait(20)
    digest.update(out.tobytes())
print("digest", digest.hexdigest())
"""
    digests = set()
    for _ in range(2):
        for output in run(body, workers=4):
            digests.add(next(x for x in output.splitlines() if x.startswith("digest")))
    assert len(digests) == 1


def test_a_push_is_over_when_its_memory_is_free_not_when_others_have_pushed():
    # Large and uncompressed: what lies on the same host is shared, not sent.
    worker_outputs(
        run_cluster(
            """
import numpy as np
from hipress.node import Node

node = Node()
x, out = np.ones(300_000, np.float32), np.zeros(300_000, np.float32)
for key in (0, 1):
    node.init_array(key, x)
for step in range(4):
    order = (0, 1) if node.rank == 0 else (1, 0)
    for key in order:
        node.push(key, x).wait(20)
    for key in order:
        node.pull(key, out).wait(20)
        assert (out == 2).all()
assert node.stats()["lent_bytes"] > 5 * x.nbytes
node.stop()
""",
            server_command=SERVER,
        )
    )


def test_a_worker_that_leaves_has_sent_what_it_pushed():
    """Nobody has pulled it, and a push waits for the one before."""
    run(
        """
import time
n, keys, pushes = 1 << 18, 12, 6
node.set_sync(False)
for key in range(keys):
    node.init_array(key, np.zeros(n, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        node.command(server, 0, b"sgd")
node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "min_size": 0})
node.barrier()
if rank == 1:
    gradient = np.full(n, 0.5, np.float32)
    for iteration in range(pushes):
        for key in range(keys):
            node.push(key, gradient)
    node.wait_all()
else:
    out = np.zeros(n, np.float32)
    until = time.monotonic() + 10
    for key in range(keys):
        while time.monotonic() < until and out.min() > -0.25 * pushes or out.max() == 0:
            node.pull(key, out).wait(20)
        np.testing.assert_array_equal(out, np.full(n, -0.25 * pushes, np.float32))
        out[:] = 0
node.stop()
print("finished")
raise SystemExit  # without a barrier
""",
        server_command=(sys.executable, "-c", OPTIMIZER), workers=2,
    )  # fmt: skip


HANGING = OPTIMIZER.replace("weight -=", "time.sleep(25 if gradient[0] > 100 else 0); weight -=")


@pytest.mark.slow
def test_an_optimizer_that_hangs_is_named():
    outputs = run(
        """
import os, time
node.init_array(0, np.zeros(3000, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        assert node.command(server, 0, b"sgd") == b"set by 0"
node.barrier()
out = np.zeros(3000, np.float32)
for value in (1, 1000):
    began = time.monotonic()
    try:
        node.push(0, np.full(3000, value, np.float32)).wait(40)
        node.pull(0, out).wait(40)
    except HipressError as error:
        assert value == 1000 and time.monotonic() - began < 20
        print("said", error)
print("finished", flush=True)
os._exit(0)
""",
        server_command=(sys.executable, "-c", "import os, time" + HANGING), workers=2,
        env={"HIPRESS_TIMEOUT": "6"}, check=False,
    )  # fmt: skip
    for output in outputs:
        assert "waited 6 s for the optimizer of server" in output
        assert "to end iteration 2 of key" in output
