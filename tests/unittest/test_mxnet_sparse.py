"""row_sparse keys: MXNet's own store keeps them, in the same job as our dense ones."""

import os
import signal
import sys
import time

import pytest

from cluster import Cluster, run_cluster
from hipress.launcher.supervisor import parents

pytest.importorskip("mxnet")


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


@pytest.mark.timeout(150)
@pytest.mark.parametrize("servers", [1, 2])
def test_row_sparse_keys_beside_compressed_dense_ones(servers):
    results = run_cluster(
        program,
        workers=2,
        servers=servers,
        timeout=100,
        worker_prefix=[sys.executable, "-m", "mxnet_hipress"],
    )
    assert sum("right" in result.output for result in results) == 2


@pytest.mark.timeout(150)
def test_nobody_waits_for_ever_in_mxnets_own_store():
    def program():
        import mxnet as mx

        kv = mx.kv.create("dist_sync")
        value = mx.nd.zeros((50, 8)).tostype("row_sparse")
        kv.init("dense", mx.nd.zeros(10))
        print("waits")
        if kv.rank == 1:
            kv.barrier()  # which worker 0 never comes to, as worker 1 never comes to this:
        kv.init("embedding", value)

    prefix = [sys.executable, "-m", "mxnet_hipress"]
    with Cluster(program, 2, 1, worker_prefix=prefix) as cluster:
        for worker in ("worker 0", "worker 1"):
            cluster.wait_for(worker, "waits", timeout=60)
        server, deadline = cluster.processes["server 0"].pid, time.monotonic() + 60
        schedulers = []
        while not schedulers and time.monotonic() < deadline:
            time.sleep(0.1)
            schedulers = [pid for pid, parent in parents().items() if parent == server]
        time.sleep(2)  # worker 0 is in MXNet's code by then
        os.kill(schedulers[0], signal.SIGKILL)
        results = {result.name: result for result in cluster.wait(30)}
    assert "MXNet's scheduler" in results["server 0"].output, results["server 0"]
    for name, result in results.items():
        assert result.returncode == 1, result
        assert name == "server 0" or "server 0 (" in result.output, result
    output = results["worker 0"].output
    assert "was probably waiting in MXNet's own store" in output, output


@pytest.mark.timeout(150)
def test_a_gradient_that_failed_is_told_though_mxnets_own_store_waits_for_ever():
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

    prefix = [sys.executable, "-m", "mxnet_hipress"]
    with Cluster(program, 2, 1, worker_prefix=prefix) as cluster:
        results = {result.name: result for result in cluster.wait(60)}
    assert all(result.returncode == 1 for result in results.values()), results
    output = results["worker 1"].output
    assert output.count("gradient of key 'dense' was not pushed") == 2, output
    assert "worker 1 (" in results["worker 0"].output, results["worker 0"]


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

    prefix = [sys.executable, "-m", "mxnet_hipress"]
    with Cluster(locals()[program], 3, 2, worker_prefix=prefix) as cluster:
        results = {result.name: result for result in cluster.wait(200)}
    assert results["worker 1"].returncode == 0, results
    for survivor in ("worker 0", "worker 2"):
        assert results[survivor].returncode == 1, results
        output = results[survivor].output
        assert "worker 1 left the job" in output and "Traceback" not in output, results
        assert program == "left_before_init" or "push 5 of row_sparse key 'embedding'" in output


@pytest.mark.timeout(150)
def test_workers_may_end_long_before_others_do():
    def program():
        import mxnet as mx

        from mxnet_hipress import _sparse_watch

        _sparse_watch.PATIENCE = 1
        kv = mx.kv.create("dist_sync")
        shape = (300_000, 8)  # on both servers
        kv.init("large", mx.nd.zeros(shape).tostype("row_sparse"))
        kv.init("small", mx.nd.zeros((50, 8)).tostype("row_sparse"))
        kv.set_optimizer(mx.optimizer.SGD())
        row = mx.nd.sparse.row_sparse_array(([[1.0] * 8], [3]), shape=shape)
        kv.push("large", row)
        kv.push("large", mx.nd.sparse.zeros("row_sparse", shape))
        kv.push("small", mx.nd.sparse.zeros("row_sparse", (50, 8)))
        out = mx.nd.sparse.zeros("row_sparse", shape)
        kv.row_sparse_pull("large", out=out, row_ids=mx.nd.array([3]))
        out.wait_to_read()
        print("trained")
        if kv.rank == 0:  # MXNet is busy with a validation, say
            exec(compile("import time; time.sleep(4)", mx.__file__, "exec"))
            print("validated")

    prefix = [sys.executable, "-m", "mxnet_hipress"]
    results = run_cluster(program, workers=2, servers=2, timeout=100, worker_prefix=prefix)
    assert sum("trained" in result.output for result in results) == 2
    assert sum("validated" in result.output for result in results) == 1


def test_only_a_worker_that_stays_in_mxnet_is_ended(monkeypatch):
    import mxnet as mx

    from mxnet_hipress import _sparse_watch

    class Survivor:
        Error = mx.MXNetError

        def failure(self):
            return died

    def stay():
        exec(compile("import time; time.sleep(2.5)", mx.__file__, "exec"))

    died, left, told, ended = "", "", [], []
    monkeypatch.setattr(_sparse_watch, "PATIENCE", 0.5)
    monkeypatch.setattr(_sparse_watch.SparseWatch, "_leave", lambda _, what: ended.append(what))
    watch = _sparse_watch.SparseWatch(Survivor(), lambda: left, told.append)
    try:
        stay()
        left = "worker 2 left"
        time.sleep(2.5)  # a checkpoint, say
        assert not ended
        stay()
        assert ended[0] == told[0] == "worker 2 left"
        left, ended[:] = "", []
        died = "worker 1 died"
        time.sleep(2.5)
        assert not ended
        stay()
        assert "worker 1 died; this worker was probably waiting in MXNet" in ended[0]
    finally:
        watch.close()


def test_every_row_of_a_large_table_has_its_own_index():
    import mxnet as mx

    from mxnet_hipress._sparse import _all_rows

    rows = _all_rows(mx.nd.zeros((2**24 + 3, 1), dtype="float16").tostype("row_sparse"))
    assert rows.indices[-3:].asnumpy().tolist() == [2**24, 2**24 + 1, 2**24 + 2]
