"""row_sparse keys, in the same job as dense ones, compared with MXNet's own store."""

import json
import threading
import time

import numpy as np
import pytest

from harness.cluster import Cluster, run_cluster
from harness.processes import wait_until

pytest.importorskip("mxnet")
from test_mxnet_dist import FILLED, OURS, STOCK

PREFIX = OURS["worker_prefix"]


def program():
    import mxnet as mx
    import numpy as np

    kv = mx.kv.create("dist_sync")
    kv.set_gradient_compression({"type": "2bit", "min_size": 0})
    shape = (50, 8)
    start = np.arange(400, dtype=np.float32).reshape(shape)
    kv.init("dense", mx.nd.zeros(shape))
    kv.init("embedding", mx.nd.array(start).tostype("row_sparse"))

    def rows(*wanted, key="embedding"):
        out = mx.nd.sparse.zeros("row_sparse", shape)
        kv.row_sparse_pull(key, out=out, row_ids=mx.nd.array(wanted))
        found = out.asnumpy()
        others = [row for row in range(50) if row not in wanted]
        assert not found[others].any()
        return found[list(wanted)]

    kv.init("two rows", mx.nd.sparse.row_sparse_array((start[[3, 7]], [3, 7]), shape=shape))
    kv.init("no rows", mx.nd.sparse.zeros("row_sparse", shape))

    assert np.array_equal(rows(0, 7, 49), start[[0, 7, 49]])
    assert np.array_equal(rows(3, 7, key="two rows"), start[[3, 7]])
    assert not rows(0, 3, 49, key="no rows").any() and not rows(0, 49, key="two rows").any()

    def gradient(*indices):
        data = np.full((len(indices), 8), kv.rank + 1, np.float32)
        return mx.nd.sparse.row_sparse_array((data, np.array(indices)), shape=shape)

    # Two copies, as from two devices, and an optimizer that both kinds of keys share.
    dense = mx.nd.zeros(shape)
    try:
        kv.push("embedding", gradient(3))
        raise AssertionError("pushed without an optimizer")
    except mx.MXNetError as error:
        assert "row_sparse key 'embedding' needs an optimizer" in str(error), error
    kv.barrier()
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    kv.push("embedding", [gradient(3), gradient(4)])
    kv.push("two rows", gradient(49))
    kv.push("dense", mx.nd.ones(shape))
    kv.pull("dense", out=dense)
    assert (dense.asnumpy() == -0.5).all()  # 2 workers that sent 0.5, the threshold
    assert np.array_equal(rows(3, 4, 10), start[[3, 4, 10]] - 0.5 * np.array([[3], [3], [0]]))
    assert (rows(49, key="two rows") == -1.5).all()
    kv.barrier()
    kv.push("embedding", gradient(5 + kv.rank))
    assert np.array_equal(rows(5, 6), start[[5, 6]] - 0.5 * np.array([[1], [2]]))
    kv.barrier()
    print("right")


@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.parametrize("servers", [1, 2])
def test_row_sparse_keys_beside_compressed_dense_ones(servers):
    results = run_cluster(
        program,
        workers=2,
        servers=servers,
        timeout=100,
        worker_prefix=PREFIX,
    )
    assert sum("right" in result.output for result in results) == 2


@pytest.mark.slow(keep=1)
@pytest.mark.timeout(150)
@pytest.mark.parametrize("waits_in", ["init", "pull"])
def test_who_waits_for_a_worker_that_dies_gets_its_name(waits_in):
    def program():
        import sys

        import mxnet as mx

        kv = mx.kv.create("dist_sync")
        shape = (50, 8)
        value = mx.nd.zeros(shape).tostype("row_sparse")
        if sys.argv[1] == "pull":
            kv.init("embedding", value)
            kv.set_optimizer(mx.optimizer.SGD())
        print("waits")
        if kv.rank == 1:
            kv.barrier()  # which worker 0 never comes to, as worker 1 never comes to this:
        if sys.argv[1] == "init":
            kv.init("embedding", value)
        kv.push("embedding", value)
        kv.row_sparse_pull("embedding", out=value, row_ids=mx.nd.array([3]))
        value.wait_to_read()

    with Cluster(program, 2, 1, worker_prefix=PREFIX, args=[waits_in]) as cluster:
        for worker in ("worker 0", "worker 1"):
            cluster.wait_for(worker, "waits", timeout=60)
        time.sleep(1)
        cluster.processes["worker 1"].kill()
        results = {result.name: result for result in cluster.wait(30)}
    assert results["worker 0"].returncode == 1, results
    assert "worker 1 (" in results["worker 0"].output, results


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_gradient_that_failed_is_told_though_a_pull_waits_for_another_worker():
    def program():
        import mxnet as mx

        kv = mx.kv.create("dist_sync")
        dense, shape = mx.nd.zeros(10), (50, 8)
        kv.init("dense", dense)
        kv.init("embedding", mx.nd.zeros(shape).tostype("row_sparse"))
        kv.set_optimizer(mx.optimizer.SGD())
        if kv.rank == 0:
            kv.barrier()  # so MXNet's servers wait for worker 0's gradient
        data = mx.nd.ones((1, 8))
        kv.push("embedding", mx.nd.sparse.row_sparse_array((data, [3]), shape=shape))
        kv.push("dense", mx.nd.random.normal(0, -1, shape=10))  # fails when it is computed
        try:  # the pull refuses if it comes after the failure, waiting does if it came before
            kv.pull("dense", dense)
            dense.wait_to_read()
        except mx.MXNetError as error:
            print("first:", error)
        kv.push("dense", mx.nd.zeros(10))

    with Cluster(program, 2, 1, worker_prefix=PREFIX) as cluster:
        results = {result.name: result for result in cluster.wait(120)}
    assert all(result.returncode == 1 for result in results.values()), results
    output = results["worker 1"].output
    assert output.count("gradient of key 'dense' was not pushed") == 2, output
    assert "worker 1 (" in results["worker 0"].output, results["worker 0"]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("program", ["left_while_pushing", "left_before_init"])
def test_a_worker_that_has_left_in_peace_is_named_by_those_who_wait_for_it(program):
    def left_while_pushing():
        import mxnet as mx

        kv = mx.kv.create("dist_sync")
        shape = (50, 8)
        kv.init("embedding", mx.nd.zeros(shape).tostype("row_sparse"))
        kv.set_optimizer(mx.optimizer.SGD())
        rows = mx.nd.array([3])
        out = mx.nd.sparse.zeros("row_sparse", shape)
        for _ in range(4 if kv.rank == 1 else 9):
            gradient = mx.nd.sparse.row_sparse_array((mx.nd.ones((1, 8)), rows), shape=shape)
            kv.push("embedding", gradient)
            kv.row_sparse_pull("embedding", out=out, row_ids=rows)
            out.wait_to_read()

    def left_before_init():
        import mxnet as mx

        kv = mx.kv.create("dist_sync")
        if kv.rank != 1:
            kv.init("embedding", mx.nd.zeros((50, 8)).tostype("row_sparse"))

    with Cluster(locals()[program], 3, 2, worker_prefix=PREFIX) as cluster:
        results = {result.name: result for result in cluster.wait(200)}
    assert results["worker 1"].returncode == 0, results
    survivors = [results["worker 0"], results["worker 2"]]
    assert all(survivor.returncode == 1 for survivor in survivors), results
    # The first worker that fails ends at once, and the other one may notice that end before its
    # next request.
    named = [s.output for s in survivors if "worker 1 left the job" in s.output]
    assert named, results
    for output in named:
        assert program == "left_before_init" or "push 5 of row_sparse key 'embedding'" in output


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_a_worker_that_does_not_push_is_named_when_the_time_is_over():
    def program():
        import mxnet as mx

        kv = mx.kv.create("dist_sync")
        shape = (50, 8)
        value = mx.nd.zeros(shape).tostype("row_sparse")
        kv.init("embedding", value)
        kv.set_optimizer(mx.optimizer.SGD())
        if kv.rank == 0:
            kv.push("embedding", value)
            kv.row_sparse_pull("embedding", out=value, row_ids=mx.nd.array([3]))
            value.wait_to_read()
        kv.barrier()

    environment = {"HIPRESS_TIMEOUT": "10"}
    results = Cluster(program, 2, 1, worker_prefix=PREFIX, env=environment)
    with results as cluster:
        results = {result.name: result for result in cluster.wait(120)}
    output = results["worker 0"].output
    assert "waited 10 s for worker 1 to push row_sparse key 'embedding', push 1" in output, output


def large_tables():
    import mxnet as mx
    import numpy as np

    kv = mx.kv.create("dist_sync")
    shape = (300_000, 8)  # on both servers, in several messages
    start = np.random.RandomState(1).uniform(-1, 1, shape).astype(np.float32)
    kv.init("large", mx.nd.array(start).tostype("row_sparse"))
    kv.init("small", mx.nd.zeros((50, 8)).tostype("row_sparse"))
    other = mx.kv.create("dist_sync")  # a second store, with keys of the same names
    other.init("small", mx.nd.ones((50, 8)).tostype("row_sparse"))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    kv.push("large", mx.nd.ones(shape).tostype("row_sparse"))
    kv.push("large", mx.nd.sparse.zeros("row_sparse", shape))
    kv.push("small", mx.nd.sparse.zeros("row_sparse", (50, 8)))
    first, second = (mx.nd.sparse.zeros("row_sparse", shape) for _ in range(2))
    kv.row_sparse_pull("large", out=[first, second], row_ids=mx.nd.arange(300_000))
    for out in (first, second):
        assert np.array_equal(out.asnumpy(), start - 1)  # two workers, half of the gradient
    some = mx.nd.array([[299_999, 5], [5, 0]])  # neither in order nor once each
    kv.row_sparse_pull("large", out=first, row_ids=some)
    assert first.indices.asnumpy().tolist() == [0, 5, 299_999]
    rows = mx.nd.sparse.zeros("row_sparse", (50, 8))
    for store, expected in ((kv, 0), (other, 1)):
        store.row_sparse_pull("small", out=rows, row_ids=mx.nd.array([7]))
        assert (rows.data.asnumpy() == expected).all()
    for ids in ([-1], [300_000]):
        try:
            kv.row_sparse_pull("large", out=first, row_ids=mx.nd.array(ids))
            raise AssertionError("pulled a row that is not there")
        except mx.MXNetError as error:
            assert "has rows 0 to 299999" in str(error), error
    print("trained")


@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.parametrize("engine", ["ThreadedEnginePerDevice", "NaiveEngine"])
def test_large_tables_and_rows_in_any_order(engine):
    results = run_cluster(
        large_tables,
        workers=2,
        servers=2,
        timeout=100,
        worker_prefix=PREFIX,
        env={"MXNET_ENGINE_TYPE": engine},
    )
    assert sum("trained" in result.output for result in results) == 2


def test_keys_that_come_at_the_same_time_share_a_servers_thread(monkeypatch):
    """Keys that come at the same time share a server's thread: two threads would change the order
    in which a key's pushes are sent."""
    from types import SimpleNamespace

    from mxnet_hipress import _sparse

    made, real = [], _sparse._Lane

    def lane():
        time.sleep(0.2)
        made.append(real())
        return made[-1]

    monkeypatch.setattr(_sparse, "_Lane", lane)
    store = _sparse.SparseStore(SimpleNamespace(num_servers=1), sync=True)
    key, lanes, ended = SimpleNamespace(shape=(4, 2), size=8, index=0), {}, []
    threads = [
        threading.Thread(
            target=store._each, args=(lanes, key, lambda share: None, lambda error: ended.append(1))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in made:
        each.add(None)
    wait_until(lambda: len(ended) == 3, 10, "all work to be done")
    assert len(made) == 1


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_an_optimizer_that_fails_ends_the_job_with_its_words():
    def program():
        import mxnet as mx

        kv = mx.kv.create("dist_sync")
        value = mx.nd.ones((50, 8)).tostype("row_sparse")
        kv.init("embedding", value)
        kv.set_optimizer(mx.optimizer.SGD(learning_rate="fast"))
        kv.push("embedding", value)
        kv.row_sparse_pull("embedding", out=value, row_ids=mx.nd.array([3]))
        value.wait_to_read()

    with Cluster(program, 2, 1, worker_prefix=PREFIX) as cluster:
        results = {result.name: result for result in cluster.wait(120)}
    for worker in ("worker 0", "worker 1"):
        output = results[worker].output
        assert "server 0 cannot update row_sparse key 'embedding': " in output, output


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_rows_open_no_port_and_a_stranger_can_do_no_harm():
    def program():
        import os
        import socket

        import mxnet as mx
        import numpy as np

        def listening():
            own = {
                os.readlink(f"/proc/self/fd/{fd}")
                for fd in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{fd}")
            }
            ports = set()
            for table in ("tcp", "tcp6"):
                for line in open(f"/proc/net/{table}").readlines()[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                        ports.add(int(fields[1].rsplit(":", 1)[1], 16))
            return ports

        kv = mx.kv.create("dist_sync")
        before = listening()
        shape = (50, 8)
        kv.init("embedding", mx.nd.zeros(shape).tostype("row_sparse"))
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        out = mx.nd.sparse.zeros("row_sparse", shape)
        for step in range(3):
            assert listening() == before
            for port in before:
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    stranger.sendall(b"\x08\0\0\0\0\0\0\0")
            row = mx.nd.sparse.row_sparse_array((np.ones((1, 8), "float32"), [3]), shape=shape)
            kv.push("embedding", row)
            kv.row_sparse_pull("embedding", out=out, row_ids=mx.nd.array([3]))
            assert (out.data.asnumpy() == -2 * (step + 1)).all()
        print("unharmed")

    results = run_cluster(program, workers=2, servers=1, timeout=100, worker_prefix=PREFIX)
    assert sum("unharmed" in result.output for result in results) == 2


def test_every_row_of_a_large_table_has_its_own_index():
    import mxnet as mx

    from mxnet_hipress._commands import TableShape
    from mxnet_hipress.server import _Table

    rows = 2**24 + 3  # float32 does not distinguish the last indices
    values = np.arange(rows, dtype=np.float32).reshape(-1, 1)
    table = _Table(mx, TableShape("t", rows, 1, "float16", True), values)
    assert table._weight.indices[-3:].asnumpy().tolist() == [2**24, 2**24 + 1, 2**24 + 2]
    assert np.array_equal(table.values(), values)


class FakeNode:
    """Server's node, of a job of two workers."""

    rank, num_workers, timeout = 0, 2, 300

    def __init__(self):
        self.failure = ""

    def nodes_left(self):
        return []

    def fail_job(self, sentence):
        self.failure = sentence


def test_messages_that_no_worker_of_ours_sends_are_refused_in_a_sentence():
    import mxnet as mx

    from hipress.runtime.node import LATER, HipressError
    from mxnet_hipress._commands import Head, Rows, TableShape
    from mxnet_hipress.server import SparseServer

    updates = []
    server = SparseServer(FakeNode(), lambda: mx, lambda *update: updates.append(update))

    def refused(head, body, *words, worker=1):
        with pytest.raises(HipressError) as error:
            server.control(worker, 0, head, body)
        assert all(word in str(error.value) for word in words), error.value

    shape = TableShape("rows", 10, 2, "float32", True)
    for body in (b"", b"[" * 100_000, b"{}", b"3", shape.pack(-1), shape.pack(5)[:-9]):
        refused(Head.INIT_ROWS, body, "worker 1", "malformed")
    for wrong in (
        TableShape("rows", -1, 2, "float32", True),
        TableShape("rows", 2**60, 2, "float32", True),
        TableShape("rows", 10, 0, "float32", True),
        TableShape("rows", 10, 2, "object", True),
        TableShape("rows", 10, 2.5, "float32", True),
    ):
        refused(Head.INIT_ROWS, wrong.pack(5), "malformed")
    refused(
        Head.PUSH_ROWS, Rows(5, np.array([1]), np.ones((1, 2), np.float32)).pack(), "initialize"
    )
    # Workers that disagree both receive an error, and may try again.
    assert (
        server.control(1, 0, Head.INIT_ROWS, TableShape("rows", 9, 2, "float32", True).pack(5))
        is LATER
    )
    for worker in (0, 1):
        body = (shape if worker == 0 else TableShape("rows", 9, 2, "float32", True)).pack(5)
        refused(Head.INIT_ROWS, body, "10 rows of 2", "9 rows of 2", worker=worker)
    assert server.control(1, 0, Head.INIT_ROWS, shape.pack(5)) is LATER
    assert server.control(0, 0, Head.INIT_ROWS, shape.pack(5)) == b""
    assert server.control(1, 0, Head.INIT_ROWS, shape.pack(5)) == b""

    def rows(*ids, columns=2, **more):
        return Rows(5, np.array(ids), np.ones((len(ids), columns), np.float32), **more).pack()

    refused(Head.PULL_ROWS, b"", "worker 1", "0")
    for bad in (rows(3, 3), rows(4, 3), rows(-1), rows(10)):
        refused(Head.PUSH_ROWS, bad, "worker 1", "must ascend from 0 to 9")
    for bad in (rows(3)[:-1], rows(3) + b"x", rows(3, columns=3), rows()[:-1] + b"\xff"):
        refused(Head.PUSH_ROWS, bad, "worker 1", "'rows'")
    assert server.control(1, 0, Head.PUSH_ROWS, rows(3, 4, last=False)) == b""
    refused(Head.PUSH_ROWS, rows(4), "order of their indices")
    assert not updates


def test_a_worker_far_ahead_has_to_wait():
    import mxnet as mx

    from hipress.runtime.node import LATER
    from mxnet_hipress import server as servers
    from mxnet_hipress._commands import Head, Rows, TableShape

    updates = []
    server = servers.SparseServer(FakeNode(), lambda: mx, lambda *update: updates.append(update))
    for worker in (0, 1, 0):
        server.control(worker, 0, Head.INIT_ROWS, TableShape("r", 10, 2, "float32", True).pack(5))
    push = Rows(5, np.array([3]), np.ones((1, 2), np.float32)).pack()
    for _ in range(servers._AHEAD):
        assert server.control(0, 0, Head.PUSH_ROWS, push) == b""
    assert server.control(0, 0, Head.PUSH_ROWS, push) is LATER
    assert server.control(1, 0, Head.PUSH_ROWS, push) == b"" and len(updates) == 1
    assert server.control(0, 0, Head.PUSH_ROWS, push) == b""


def same_as_stock():
    import json
    import sys

    import mxnet as mx
    import numpy as np

    folder, options, who = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
    kv = mx.kv.create(options["store"])
    dtype, results = options["dtype"], {}
    shapes = {"small": (40, 5), "large": (500, 3, 2), "lines": (200, 8)}
    for i, (key, shape) in enumerate(shapes.items()):
        start = np.random.RandomState(i).uniform(-1, 1, shape)
        kv.init(key, mx.nd.array(start, dtype=dtype).tostype("row_sparse"))
    settings = {"learning_rate": 0.1, "wd": 0.01, "multi_precision": options["multi_precision"]}
    if options["optimizer"] == "sgd":
        settings["momentum"] = 0.9
    kv.set_optimizer(mx.optimizer.create(options["optimizer"], **settings))
    kv._barrier()
    numbers = np.random.RandomState(100 + kv.rank)
    for step in range(6):
        for worker in range(kv.num_workers):
            # Asynchronous updates one after another, so that their order is the same both times.
            if "async" in options["store"]:
                kv._barrier()
                if worker != kv.rank:
                    continue
            elif worker:
                break
            for key, shape in shapes.items():
                gradients = []
                for _ in range(1 + step % 2):  # devices
                    count = numbers.randint(0 if step == 3 else 1, shape[0] // 2)
                    ids = np.sort(numbers.choice(shape[0], count, replace=False))
                    values = numbers.uniform(-2, 2, (count, *shape[1:]))
                    gradient = mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype)
                    if count:
                        gradient = mx.nd.sparse.row_sparse_array(
                            (mx.nd.array(values, dtype=dtype), ids), shape=shape, dtype=dtype
                        )
                    gradients.append(gradient)
                kv.push(key, gradients)
                out = mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype)
                ids = mx.nd.array(numbers.randint(0, shape[0], 30))
                kv.row_sparse_pull(key, out=out, row_ids=ids)
                results[f"{key} {step}"] = out.asnumpy()
        kv._barrier()
    for key, shape in shapes.items():
        out = mx.nd.sparse.zeros("row_sparse", shape, dtype=dtype)
        kv.row_sparse_pull(key, out=out, row_ids=mx.nd.arange(shape[0]))
        results[f"{key} at last"] = out.asnumpy()
    np.savez(f"{folder}/{who}-{kv.rank}.npz", **results)
    kv._barrier()


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        ("dist_sync", "sgd", "float32", False),
        ("dist_sync", "adam", "float32", False),
        ("dist_sync", "sgd", "float16", False),
        ("dist_sync", "sgd", "float16", True),
        ("dist_async", "sgd", "float32", False),
        ("dist_async", "sgd", "float16", True),
    ],
    ids=lambda options: "-".join(map(str, options)),
)
def test_rows_are_those_of_mxnets_own_store_bit_for_bit(tmp_path, options, servers):
    names = ("store", "optimizer", "dtype", "multi_precision")
    for who, how in (("stock", STOCK), ("ours", OURS)):
        run_cluster(
            same_as_stock,
            workers=2,
            servers=servers,
            timeout=100,
            env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", **FILLED},
            args=[str(tmp_path), json.dumps(dict(zip(names, options))), who],
            **how,
        )
    for rank in range(2):
        stock, ours = (np.load(tmp_path / f"{who}-{rank}.npz") for who in ("stock", "ours"))
        assert len(stock.files) == 21 and set(stock.files) == set(ours.files)
        for name in stock.files:
            assert stock[name].any()
            assert np.array_equal(stock[name], ours[name]), name
