"""Failures as MXNet users see them: an MXNetError that names the culprit, and an end."""

import ctypes
import signal
import sys

import pytest

from harness.cluster import Cluster, run_cluster
from scripts import SCRIPTS

pytest.importorskip("mxnet")


def training():
    import mxnet as mx

    import mxnet_hipress  # noqa: F401

    kv = mx.kv.create("dist_sync_hipress")
    weight = mx.nd.zeros(200_000)
    kv.init(0, weight)
    kv.init(1, weight)
    gradient = mx.nd.ones(200_000)
    for step in range(1_000_000):
        try:
            kv.push(0, gradient)
            kv.pull(0, weight)
            kv.pushpull(1, gradient.copy())
            weight.wait_to_read()
        except mx.MXNetError as error:
            print("first:", str(error).strip())
            try:
                kv.push(0, gradient)
            except mx.MXNetError as again:
                print("again:", again)
            raise
        if step == 10:
            print("training")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("victim", ["worker 1", "server 0", "scheduler"])
def test_a_dead_process_is_named_by_all_others(victim, number):
    with Cluster(training) as cluster:
        cluster.wait_for("worker 0", "training")
        cluster.wait_for("worker 1", "training")
        cluster.signal(victim, number)
        results = cluster.wait(120)
    for result in results:
        if result.name == victim:
            assert result.returncode == -number
            continue
        assert result.returncode == 1, result
        assert f"{victim} (" in result.output and "died" in result.output, result
        if result.name.startswith("worker"):
            assert result.output.count("first:") == result.output.count("again:") == 1, result


def test_a_failing_script_ends_at_once_and_takes_the_job_with_it():
    def program():
        import mxnet as mx

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        out = mx.nd.zeros(10)
        kv.init(0, out)
        if kv.rank == 1:
            raise ValueError("a mistake of the user's")
        kv.push(0, out)
        kv.pull(0, out)
        out.wait_to_read()

    results = run_cluster(program, check=False)
    assert all(result.returncode == 1 for result in results), results
    by_name = {result.name: result.output for result in results}
    assert "a mistake of the user's" in by_name["worker 1"]
    for name in ("scheduler", "server 0", "server 1", "worker 0"):
        assert "worker 1 (" in by_name[name] and "died" in by_name[name], by_name[name]


@pytest.mark.parametrize("how", ["exit", "raise"])
def test_exit_status_of_an_unmodified_script(how):
    script = SCRIPTS / "mxnet_failures" / "exit_status.py"
    prefix = [sys.executable, "-m", "mxnet_hipress"]
    results = run_cluster(script, check=False, worker_prefix=prefix, args=[how])
    by_name = {result.name: result for result in results}
    assert by_name["worker 1"].returncode == 3
    assert by_name["worker 0"].returncode == 1
    assert "worker 1 (" in by_name["worker 0"].output, by_name["worker 0"]


def test_a_gradient_that_could_not_be_computed_fails_everybody():
    def program():
        import mxnet as mx

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        out = mx.nd.zeros((3, 3))
        kv.init("w", out)
        gradient = mx.nd.ones((3, 3))
        if kv.rank == 1:
            gradient = mx.nd.random.normal(0, -1, shape=(3, 3))  # fails when it is computed
        kv.push("w", gradient)
        kv.pull("w", out)
        try:
            out.wait_to_read()
        except mx.MXNetError as error:
            print("waited:", error)
        kv.push("w", gradient)

    results = run_cluster(program, check=False)
    assert all(result.returncode != 0 for result in results), results
    by_name = {result.name: result.output for result in results}
    assert by_name["worker 1"].count("gradient of key 'w' was not pushed") == 2, by_name["worker 1"]
    # The second time with its cause.
    assert "scale parameter in gaussian has to be positive" in by_name["worker 1"], by_name
    assert "worker 1 (" in by_name["worker 0"], by_name["worker 0"]


def test_a_failure_that_nobody_waited_for_shows_in_the_exit_status():
    def program():
        import os

        import mxnet as mx

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        out = mx.nd.zeros(10)
        kv.init(0, out)
        kv.barrier()
        if kv.rank == 1:
            os._exit(7)
        kv.push(0, out)
        kv.pull(0, out)

    results = run_cluster(program, check=False)
    by_name = {result.name: result for result in results}
    assert by_name["worker 0"].returncode == 1
    assert "worker 1 (" in by_name["worker 0"].output, by_name["worker 0"]


def test_later_error_has_the_cause_and_rank_of_a_death():
    script = SCRIPTS / "mxnet_failures" / "error_after_death.py"
    results = run_cluster(script, check=False, workers=2, servers=0)
    by_name = {result.name: result.output for result in results}
    assert "later: JOB DIED worker 1" in by_name["worker 0"], by_name


def test_operations_that_fail_at_once():
    """Operations can fail at the same time, as all do when a process dies: MXNet's list of
    exceptions has no lock."""

    def program():
        import threading

        import mxnet as mx

        import mxnet_hipress  # noqa: F401
        from mxnet_hipress import _engine, _job

        mx.kv.create("dist_sync_hipress")
        arrays, endings = [mx.nd.zeros(1) for _ in range(8000)], []
        key = _engine.key_handle(_job.current().handle, 0, b"w", 1, 0)
        for array in arrays:
            _engine.schedule(key, array, True, 0, endings.append)
        while len(endings) < len(arrays):
            pass
        gate = threading.Barrier(4)

        def fail(mine):
            gate.wait()
            for end in mine:
                end("server 0 died")

        threads = [threading.Thread(target=fail, args=(endings[i::4],)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failed = 0
        for array in arrays:
            try:
                array.wait_to_read()
            except mx.MXNetError:
                failed += 1
        print("failed:", failed)

    *_, worker = run_cluster(program, workers=1, servers=0, timeout=60)
    assert worker.output.count("failed: 8000") == 1, worker


def test_workers_that_disagree_are_told():
    def program():
        import mxnet as mx

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        try:
            kv.init("w", mx.nd.zeros(10 + kv.rank))
        except mx.MXNetError as error:
            print("refused:", error)

    results = run_cluster(program)
    for result in results[-2:]:
        refused = [line for line in result.output.splitlines() if line.startswith("refused:")]
        assert len(refused) == 1 and "w" in refused[0], result


@pytest.mark.slow
def test_importing_mxnet_first_is_explained():
    program = "import mxnet, mxnet_hipress"
    boot = [sys.executable, "-c", "pass"]
    results = run_cluster(program, 1, 1, check=False, launched=False, server_command=boot)
    assert results[-1].returncode == 1
    assert "import mxnet_hipress before mxnet" in results[-1].output
    results = run_cluster(program, 1, 1, server_command=boot)  # HIPRESS_LAUNCHED: all is well
    assert results[-1].returncode == 0
    # In a script that runs on all nodes, the first import serves.
    script = SCRIPTS / "mxnet_failures" / "same_script.py"
    roles = [sys.executable, str(script)]
    results = run_cluster(script, 2, 1, launched=False, server_command=roles)
    assert [r.returncode for r in results] == [0] * 4
    assert results[-1].output.strip() == "8.0"


def test_a_mistyped_store_is_an_error_and_no_wait():
    def program():
        import mxnet as mx

        import mxnet_hipress  # noqa: F401

        for name in ("dist_sink_hipress", "dist_sync"):
            try:
                mx.kv.create(name)
            except mx.MXNetError as error:
                print(error)
        out = mx.nd.zeros(3)
        mx.kv.create("dist_sync_hipress").init(0, out)

    outputs = [result.output for result in run_cluster(program, 1, 1, timeout=60)]
    assert "has no store 'dist_sink_hipress'; there are dist_sync_hipress" in outputs[-1], outputs
    assert "and has no store 'dist_sync'; there are dist_sync_hipress" in outputs[-1], outputs


def test_what_the_node_waits_for_fails_as_mxnets_users_expect():
    """Errors of the node's waits are MXNetErrors, also where plan "auto" measures inside a script
    that catches MXNetError."""
    import mxnet as mx
    import numpy as np

    from hipress.errors import Cause, Code
    from hipress.native.library import abi
    from hipress.runtime.operations import Operations
    from mxnet_hipress._job import WorkerNode

    node = WorkerNode.__new__(WorkerNode)
    node._handle, node._operations = None, Operations()
    numbers = []

    def start(*arguments):
        numbers.append(arguments[-1])
        return 0

    pending = node.start(start, None, 0)
    died = abi.HipressError(Code.JOB, Cause.DIED, 2, 1, b"worker 1 died")
    node._operations._ended(numbers[0], ctypes.pointer(died))
    with pytest.raises(mx.MXNetError, match="worker 1 died") as caught:
        pending.wait(1)
    assert (caught.value.cause, caught.value.role, caught.value.rank) == (Cause.DIED, "worker", 1)
    with pytest.raises(mx.MXNetError, match="same size and dtype"):
        node.auto = None
        node.pushpull(0, np.zeros(2, np.float32), np.zeros(3, np.float32))
