"""Forked children of a worker end by themselves, and do not affect its job, in every front end.

Worker 1 has an operation under way when it forks. Worker 0 takes part in it afterwards.
"""

from __future__ import annotations

import sys

import pytest

from forked_children import ENDS
from harness import ROOT
from harness.cluster import Cluster, run_cluster
from harness.marks import needs_tensorflow
from harness.processes import base_environment
from harness.torch_job import TorchJob

HEAD = f"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests" / "unittest")!r})
import forked_children

go_on = Path(os.environ["GO_ON"])

def await_worker_1():
    while not go_on.exists():
        time.sleep(0.02)
"""
NODE = """
import numpy as np
from hipress.node import Node

with Node() as node:
    node.init_array(0, np.zeros(4, np.float32))
    out = np.zeros(4, np.float32)
    if node.rank == 0:
        await_worker_1()
    pending = node.pushpull(0, np.ones(4, np.float32), out)
    if node.rank == 1:
        for name in forked_children.ENDS:
            forked_children.fork(name)
        forked_children.multiprocess()
        for name in ("left", "num_dead_node", "debug"):
            forked_children.call(name, getattr(node, name))
        forked_children.call("fail", lambda: node.fail_job("of the child"))
        go_on.touch()
    pending.wait(30)
    print("result", out[0], flush=True)
"""
TORCH = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import hipress.torch

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(200, 200))
compression = hipress.torch.compress(model, "onebit", min_size=1)

def step():
    model(torch.ones(2, 200)).sum().backward()

step()
step()
if dist.get_rank() == 0:
    await_worker_1()
    step()
else:
    import threading
    last = threading.Thread(target=step)  # waits for rank 0
    last.start()
    time.sleep(0.5)
    for name in forked_children.ENDS:
        forked_children.fork(name)
    forked_children.multiprocess()
    loader = torch.utils.data.DataLoader(
        range(8), num_workers=2, multiprocessing_context="fork", timeout=20
    )
    print("loader:", "ends" if len(list(loader)) == 8 else "lacks data", flush=True)
    go_on.touch()
    last.join()
print("result 2.0", flush=True)
dist.destroy_process_group()
"""
# MXNet's fork handler waits until its engine is idle: worker 0 must take part at once.
MXNET = """
import mxnet as mx
import mxnet_hipress

kv = mx.kv.create("dist_sync_hipress")
out = mx.nd.zeros(4)
kv.init(0, out)
kv.pushpull(0, mx.nd.ones(4), out=out)
if kv.rank == 1:
    for name in forked_children.ENDS:
        forked_children.fork(name)
    forked_children.multiprocess()
    go_on.touch()
print("result", out.asnumpy()[0], flush=True)
"""
TENSORFLOW = """
import hipress.tensorflow as hvd
import numpy as np
import tensorflow as tf
from hipress.tensorflow.job import join

node = join().node
node.init_array(0, np.zeros(4, np.float32))
out = np.zeros(4, np.float32)
if hvd.rank() == 0:
    await_worker_1()
pending = node.pushpull(0, np.ones(4, np.float32), out)
if hvd.rank() == 1:
    for name in forked_children.ENDS:
        forked_children.fork(name)
    forked_children.multiprocess()
    go_on.touch()
pending.wait(30)
print("result", out[0], flush=True)
"""


def check(results: list, name: str, loader: bool = False) -> None:
    """Check the output of the worker that forked, and that all workers have the result."""
    found = {result.name: result for result in results}
    wanted = [f"{end}: ends" for end in ENDS] + ["pool: ends", "process: ends"]
    for line in wanted + ["loader: ends"] * loader:
        assert line in found[name].output.splitlines(), found[name].output
    for result in results:
        assert result.returncode == 0, result
        assert "result 2.0" in result.output or "worker" not in result.name, result


def check_cluster(program: str, tmp_path, servers: int, **env: str) -> None:
    own = {"GO_ON": str(tmp_path / "go on"), **env}
    check(run_cluster(HEAD + program, 2, servers, env=own, check=False), "worker 1")


@pytest.mark.parametrize("servers", [0, 1])
def test_forked_children_of_a_node_end(tmp_path, servers):
    server = (sys.executable, "-c", "from hipress.node import Node; Node().serve()")
    env = {"GO_ON": str(tmp_path / "go on")}
    with Cluster(HEAD + NODE, 2, servers, server_command=server, env=env) as job:
        results = job.wait(120)
    check(results, "worker 1")
    (worker,) = (result for result in results if result.name == "worker 1")
    for name in ("left", "num_dead_node", "debug", "fail"):
        assert f"{name}: refused" in worker.output.splitlines(), worker.output


@pytest.mark.slow
def test_forked_children_of_a_rank_of_pytorch_end(tmp_path):
    pytest.importorskip("torch")
    env = base_environment({"GO_ON": str(tmp_path / "go on")})
    with TorchJob([sys.executable, "-c", HEAD + TORCH], 2, env) as job:
        check(job.wait(120), "rank 1", loader=True)


def test_forked_children_of_a_worker_of_mxnet_end(tmp_path):
    pytest.importorskip("mxnet")
    check_cluster(MXNET, tmp_path, 1)


@pytest.mark.slow
@needs_tensorflow
def test_forked_children_of_a_worker_of_tensorflow_end(tmp_path):
    check_cluster(TENSORFLOW, tmp_path, 0, TF_CPP_MIN_LOG_LEVEL="2")
