"""Type "auto" of MXNet's stores and Gluon; test_store_choice.py has what all stores share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import netns
from harness.cluster import run_cluster, worker_outputs

pytest.importorskip("mxnet")
HERE = str(Path(__file__).parent)

GLUON = f"""
import sys
sys.path.insert(0, {HERE!r})
import hashlib
import mxnet as mx
import mxnet_hipress
import numpy as np
from mxnet import autograd, gluon
from known_times import measure_store

now = {{"uncompressed": 1.0}}
lines = measure_store(lambda way: now.get(way, 5 * max(now.values())))
np.random.seed(1)
mx.random.seed(1)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(200, activation="relu"), gluon.nn.Dense(200), gluon.nn.Dense(2))
net.initialize(mx.init.Xavier())
net(mx.nd.zeros((1, 64)))
trainer = gluon.Trainer(
    net.collect_params(), sys.argv[1], {{"learning_rate": 0.001}}, kvstore="dist_sync_hipress",
    compression_params={{"type": "auto"}}, update_on_kvstore=sys.argv[2] == "servers" or None)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
for step in range(60):
    if step == 25:
        now.clear()
        now.update({{"uncompressed": 50.0, "maxminef bits=2": 5.0, "maxmin bits=8": 6.0}})
    data = np.random.RandomState(100 * step + trainer._kvstore.rank if step else 0)
    x = mx.nd.array(data.normal(size=(8, 64)))
    with autograd.record():
        error = loss(net(x), x.sum(axis=1) > 0)
    error.backward()
    trainer.step(16)
kv = trainer._kvstore
print(kv.explain())
assert kv.is_settled
weights = [p.data().asnumpy() for p in net.collect_params().values()]
assert all(np.isfinite(w).all() for w in weights)
print("bits", hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest())
print("lines", len(lines))
"""


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("optimizer", "where", "second"),
    [("sgd", "servers", "maxminef bits=2"), ("adam", "workers", "maxmin bits=8")],
)
def test_a_trainer_follows_the_network_and_knows_its_optimizer(optimizer, where, second):
    servers = int(where == "servers")
    topology = {"HIPRESS_TOPOLOGY": "ps" if servers else "ring"}
    results = run_cluster(GLUON, 2, servers, 90, args=[optimizer, where], env=topology)
    outputs = worker_outputs(results)
    for rank, output in enumerate(outputs):
        assert "auto: uncompressed, the fastest: a step's gradients take" in output, output
        assert f"> {second}" in output and "times as long as they did; from step" in output, output
        assert rank == 0 or "lines 0" in output
    bits = [re.search(r"bits (\w{64})", output)[1] for output in outputs]
    assert bits[0] == bits[1]


SLOW = """
import hashlib
import mxnet as mx
import mxnet_hipress
import numpy as np

kv = mx.kv.create("dist_sync_hipress")
kv.set_gradient_compression({"type": "auto"})
kv.init("weight", mx.nd.zeros((600, 300)))
kv.init("bias", mx.nd.zeros(3000))
assert not kv.is_settled
total = hashlib.sha256()
for step in range(14):
    for key, shape in (("weight", (600, 300)), ("bias", (3000,))):
        random = np.random.RandomState(100 * step + kv.rank)
        out = mx.nd.array(random.normal(size=shape))
        kv.pushpull(key, out)
        total.update(out.asnumpy().tobytes())
        exact = sum(np.random.RandomState(100 * step + rank).normal(size=shape) for rank in (0, 1))
        off = np.abs(out.asnumpy() - exact).max()
        assert (off > 1e-3) == (key == "weight"), (key, off)  # of which vectors know nothing
print("bits", total.hexdigest())
print(kv.explain())
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_on_a_link_of_50_megabits_it_compresses():
    with netns.ShapedNetwork(3, rate="50mbit", burst="32kb", verify=False) as network:
        outputs = worker_outputs(run_cluster(SLOW, 2, 1, 90, network=network))
    for output in outputs:
        assert "auto: maxmin bits=" in output and "> maxmin bits=" in output, output
    bits = [re.search(r"bits (\w{64})", output)[1] for output in outputs]
    assert bits[0] == bits[1]
