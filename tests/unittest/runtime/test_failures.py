"""Deaths, strangers, bad input: no hang, and always one sentence that names the cause."""

import random
import re
import signal
import socket
import sys
import time

import pytest

from harness.cluster import Cluster, run_cluster, worker_outputs
from scripts import SCRIPTS
from survivors import TRAIN_UNTIL_FAILURE, check_that_survivors_name_the_dead

SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("victim", ["worker 1", "server 0", "scheduler"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_death_is_an_error_that_names_the_dead(victim, number):
    with Cluster(TRAIN_UNTIL_FAILURE, workers=3, servers=2, server_command=SERVER) as cluster:
        check_that_survivors_name_the_dead(cluster, 3, victim, number)


def test_a_worker_that_leaves_early_is_named():
    outputs = worker_outputs(
        run_cluster(
            SCRIPTS / "failures" / "leaves_early.py",
            server_command=SERVER,
            check=False,
        )
    )
    assert "worker 1 left the job while iteration 3 of key 'weight'" in outputs[0]
    assert "error" not in outputs[1]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("servers", [1, 0])
@pytest.mark.parametrize("late", [0, 2], ids=["asked before it left", "asked after"])
def test_a_worker_that_has_left_initialises_no_key_and_is_named(servers, late):
    outputs = worker_outputs(
        run_cluster(
            SCRIPTS / "failures" / "late_key.py",
            workers=3,
            servers=servers,
            server_command=SERVER,
            check=False,
            args=[str(late)],
            env={"HIPRESS_TOPOLOGY": "ps" if servers else "colocated"},
            timeout=60,
        )
    )
    for rank in (0, 2):
        said = re.search("error: (.*) after ([0-9]+)", outputs[rank])
        assert said, outputs
        expected = r"worker 1 has left the job and will not initialize key 'bias'"
        if rank == 2:  # worker 0 may have ended before this request
            expected += "|worker 0 has left the job.*"
        assert re.fullmatch(expected, said[1]), outputs
        assert int(said[2]) < 10


def test_all_operations_have_ended_when_a_node_has_left():
    """All operations in progress have ended when a node has left. A later callback could meet an
    interpreter that is ending, and crash the process."""
    script = SCRIPTS / "failures" / "operations_running.py"
    with Cluster(script, workers=2, servers=1, server_command=SERVER) as cluster:
        for rank in range(2):
            cluster.wait_for(f"worker {rank}", "running")
        time.sleep(0.3)
        cluster.signal("server 0")
        results = cluster.wait(20)
        for output in worker_outputs(results):
            assert "running: 0" in output, cluster.report()
        assert all(result.returncode == 0 for result in results[2:]), cluster.report()


@pytest.mark.slow
def test_strangers_are_refused_and_training_goes_on():
    with Cluster(
        SCRIPTS / "failures" / "training.py",
        server_command=SERVER,
        env={"HIPRESS_VERBOSE": "1"},
    ) as cluster:
        for rank in range(2):
            cluster.wait_for(f"worker {rank}", "running")
        sent = random.Random(5)
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", cluster.port), timeout=5) as stranger:
                stranger.sendall(sent.randbytes(sent.randrange(1, 3000)))
        with socket.create_connection(("127.0.0.1", cluster.port), timeout=5) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        results = cluster.wait(40)
        assert not any(result.returncode for result in results), cluster.report()
        assert "127.0.0.1" in cluster.output("scheduler")


BAD_CALLS = [
    ('node.set_gradient_compression({"type": "zip"})', '"zip"'),
    ('node.set_gradient_compression({"type": "2bit", "threshold": 0})', "threshold"),
    ('node.set_gradient_compression({"type": "2bit", "threshold": -1})', "threshold"),
    ('node.set_gradient_compression({"type": "2bit", "threshold": "nan"})', "threshold"),
    ('node.set_gradient_compression({"type": "2bit", "treshold": 1})', "treshold"),
    ('node.set_gradient_compression({"type": "2bit", "min_size": "many"})', "min_size"),
    ('node.set_gradient_compression({"type": "2bit", "topology": "mesh"})', "topology"),
    ('node.set_gradient_compression({"type": "2bit", "pull": "maybe"})', "pull"),
    ("node.push(9, x)", "key 9: it has not been initialized"),
    ("node.pull(9, x)", "key 9: it has not been initialized"),
    ("node.push(0, x[:50].copy())", "50 float32 elements: it was initialized with 100"),
    ("node.push(0, x.astype(np.float16))", "100 float16 elements"),
    ("node.push(0, x.astype(np.int32))", "must be float32 or float16, not int32"),
    ("node.push(0, x[::2])", "C-contiguous"),
    ("node.init_array(0, x)", "already initialized"),
    ("node.set_sync(False)", "before the first key"),
    ("node.command(7, 0, b'')", "no server 7"),
    ("node.command(0, 0, b'')", "server 0"),
    ("node.set_updater(None)", "only a server"),
    ("node.serve()", "does not serve"),
]


def test_bad_calls_say_what_is_wrong_and_harm_nothing():
    outputs = worker_outputs(
        run_cluster(
            SCRIPTS / "failures" / "bad_calls.py",
            args=[call for call, _ in BAD_CALLS],
            server_command=(
                sys.executable,
                "-c",
                "from hipress.runtime.node import Node\nNode().serve(lambda w, h, b: 1 / 0)",
            ),
        )
    )
    lines = dict(line.split(" -> ", 1) for line in outputs[0].splitlines() if " -> " in line)
    for call, expected in BAD_CALLS:
        assert expected in lines[call], f"{call}: {lines[call]}"
        assert "\n" not in lines[call]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("size", "101 float32 elements"),
        ("dtype", "100 float16 elements"),
        ("name", "disagree on key"),
    ],
)
def test_workers_that_disagree_on_a_key_all_hear_of_it(change, expected):
    outputs = worker_outputs(
        run_cluster(
            SCRIPTS / "failures" / "different_keys.py",
            args=[change],
            server_command=SERVER,
        )
    )
    for output in outputs:
        assert expected in output


START = "from hipress.runtime.node import Node\nNode()"
BASE = {
    "DMLC_ROLE": "worker",
    "DMLC_PS_ROOT_URI": "127.0.0.1",
    "DMLC_PS_ROOT_PORT": "{port}",
    "DMLC_NUM_WORKER": "1",
    "DMLC_NUM_SERVER": "1",
    "HIPRESS_SECRET": "0123456789abcdef",
    "HIPRESS_START_TIMEOUT": "2",
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"DMLC_ROLE": None}, "DMLC_ROLE"),
        ({"DMLC_ROLE": "boss"}, "boss"),
        ({"DMLC_NUM_WORKER": "none"}, "DMLC_NUM_WORKER"),
        ({"DMLC_NUM_WORKER": "0"}, "DMLC_NUM_WORKER"),
        ({"DMLC_PS_ROOT_PORT": "99999"}, "DMLC_PS_ROOT_PORT"),
        ({"DMLC_INTERFACE": "nic7"}, "nic7"),
        ({}, "scheduler"),  # no process listens there
        ({"DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_PORT": "{taken}"}, "in use"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_wrong_environment_is_one_sentence(changes, expected):
    import os
    import subprocess

    from harness.processes import base_environment, free_port

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        values = {**BASE, **changes}
        ports = {"port": free_port(), "taken": holder.getsockname()[1]}
        env = {k: v.format(**ports) for k, v in values.items() if v is not None}
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", START],
            env={**base_environment(), **env},
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert expected in last, last
    assert last.startswith("hipress.runtime.node.HipressError: "), last
    assert time.monotonic() - started < 15, os.linesep + done.stderr
