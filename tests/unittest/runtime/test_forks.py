"""Forked children of a worker, which end by themselves and do not affect its job, in every front
end.

Worker 1 has an operation in progress when it forks. Worker 0 takes part in it afterwards.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from forked_children import ENDINGS
from harness.cluster import Cluster, run_cluster
from harness.marks import needs_tensorflow
from harness.processes import base_environment
from harness.torch_job import TorchJob
from scripts import SCRIPTS

NODE = SCRIPTS / "forks" / "node.py"
TORCH = SCRIPTS / "forks" / "torch_ddp.py"
# MXNet's fork handler waits until its engine is idle: worker 0 must take part at once.
MXNET = SCRIPTS / "forks" / "mxnet_store.py"
TENSORFLOW = SCRIPTS / "forks" / "tensorflow_tape.py"


def check(results: list, name: str, loader: bool = False) -> None:
    """Check the output of the worker that forked, and that all workers have the result."""
    found = {result.name: result for result in results}
    wanted = [f"{end}: ends" for end in ENDINGS] + ["pool: ends", "process: ends"]
    for line in wanted + ["loader: ends"] * loader:
        assert line in found[name].output.splitlines(), found[name].output
    for result in results:
        assert result.returncode == 0, result
        assert "result 2.0" in result.output or "worker" not in result.name, result


def check_cluster(script: Path, tmp_path, servers: int, **env: str) -> None:
    own = {"GO_ON": str(tmp_path / "go on"), **env}
    check(run_cluster(script, 2, servers, env=own, check=False), "worker 1")


@pytest.mark.parametrize("servers", [0, 1])
def test_forked_children_of_a_node_end(tmp_path, servers):
    server = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")
    env = {"GO_ON": str(tmp_path / "go on")}
    with Cluster(NODE, 2, servers, server_command=server, env=env) as job:
        results = job.wait(120)
    check(results, "worker 1")
    (worker,) = (result for result in results if result.name == "worker 1")
    for name in ("left", "num_dead_node", "debug", "fail"):
        assert f"{name}: refused" in worker.output.splitlines(), worker.output


@pytest.mark.slow
def test_forked_children_of_a_rank_of_pytorch_end(tmp_path):
    pytest.importorskip("torch")
    env = base_environment({"GO_ON": str(tmp_path / "go on")})
    with TorchJob([sys.executable, str(TORCH)], 2, env) as job:
        check(job.wait(120), "rank 1", loader=True)


def test_forked_children_of_a_worker_of_mxnet_end(tmp_path):
    pytest.importorskip("mxnet")
    check_cluster(MXNET, tmp_path, 1)


@pytest.mark.slow
@needs_tensorflow
def test_forked_children_of_a_worker_of_tensorflow_end(tmp_path):
    check_cluster(TENSORFLOW, tmp_path, 0, TF_CPP_MIN_LOG_LEVEL="2")
