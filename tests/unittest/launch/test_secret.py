"""Secret of a job: a process without it neither joins nor has its messages accepted."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.cluster import Cluster
from harness.marks import needs_tensorflow
from harness.processes import base_environment, free_port
from scripts import SCRIPTS

NODE = "from hipress.runtime.node import Node\nNode()"
MXNET = "import mxnet_hipress, mxnet as mx\nmx.kv.create('dist_sync_hipress')"
TENSORFLOW = "import hipress.tensorflow.worker_job as hvd\nhvd.init()"
SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")


def start(code: str, role: str, port: int, **env: str) -> subprocess.CompletedProcess:
    """Run one process of a job of one worker and one server."""
    job = {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": "1",
        "DMLC_NUM_SERVER": "1",
        "HIPRESS_START_TIMEOUT": "30",
    }
    clean = {k: v for k, v in base_environment().items() if k != "HIPRESS_SECRET"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **job, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("secret", [None, "", "fifteen letters"])
@pytest.mark.parametrize(
    ("code", "role"),
    [
        (NODE, "worker"),
        (NODE, "server"),
        (NODE, "scheduler"),
        (MXNET, "worker"),
        ("import mxnet_hipress", "server"),
        pytest.param(TENSORFLOW, "worker", marks=needs_tensorflow),
    ],
    ids=["node", "server", "scheduler", "mxnet", "mxnet server", "tensorflow"],
)
def test_a_process_without_a_secret_does_not_start(code, role, secret):
    ended = start(code, role, free_port(), **({} if secret is None else {"HIPRESS_SECRET": secret}))
    assert ended.returncode == 1, ended.stderr
    what = "has 15 characters, but must have at least 16" if secret else "is not set"
    assert f"HIPRESS_SECRET {what}" in ended.stderr.splitlines()[-1]
    assert "openssl rand -hex 32" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize("env", [{"HIPRESS_ALLOW_NO_SECRET": "1"}, {"HIPRESS_SECRET": "x" * 32}])
def test_a_stranger_cannot_register_as_a_worker(env):
    """A stranger cannot register as a worker. It is refused with a message, and the job, which
    waits for its worker, continues."""
    script = SCRIPTS / "secret" / "waits_for_stranger.py"
    with Cluster(script, workers=1, servers=1, server_command=SERVER) as cluster:
        stranger = start(NODE, "worker", cluster.port, DMLC_WORKER_ID="0", **env)
        (cluster.path / "go").touch()
        results = {result.name: result for result in cluster.wait(120)}
    assert stranger.returncode == 1, stranger.stderr
    assert "another job secret" in stranger.stderr, stranger.stderr
    assert "trained as 0" in results["worker 0"].output
    assert [result.returncode for result in results.values()] == [0, 0, 0], results


def test_a_job_may_do_without_where_that_is_said():
    script = SCRIPTS / "secret" / "trains.py"
    env = {"HIPRESS_SECRET": "", "HIPRESS_ALLOW_NO_SECRET": "1"}
    with Cluster(script, workers=1, servers=1, server_command=SERVER, env=env) as cluster:
        results = {result.name: result for result in cluster.wait(120)}
    assert "trained" in results["worker 0"].output
    assert "every user of this machine can join the job" in results["worker 0"].output


def test_nothing_shows_the_secret():
    """The secret is not visible: arguments, which every user of a machine can read, output and
    dumps do not contain it."""
    secret = "a-secret-that-can-be-found-again"
    script = SCRIPTS / "secret" / "shows_secret.py"
    env = {"HIPRESS_SECRET": secret, "HIPRESS_LOG": "debug"}
    with Cluster(script, workers=1, servers=1, server_command=SERVER, env=env) as cluster:
        results = {result.name: result for result in cluster.wait(120)}
    assert "arguments show it: False" in results["worker 0"].output
    assert "dump shows it: False" in results["worker 0"].output
    assert not [name for name, result in results.items() if secret in result.output]
