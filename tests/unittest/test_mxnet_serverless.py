"""MXNet jobs without servers: kvstore, Gluon Trainer, Module; the same weights everywhere."""

from __future__ import annotations

import pytest

from harness.cluster import run_cluster, worker_outputs

pytest.importorskip("mxnet", reason="MXNet is not installed")

HEAD = """
import mxnet_hipress
import hashlib
import os
import mxnet as mx
import numpy as np
from mxnet.base import MXNetError

mxnet_hipress.install()

def digest(arrays):
    return hashlib.sha256(b"".join(a.asnumpy().tobytes() for a in arrays)).hexdigest()
"""


def run(body: str, workers: int = 3, **options) -> list[str]:
    results = run_cluster(HEAD + body, workers=workers, servers=0, timeout=120, **options)
    return worker_outputs(results)


@pytest.mark.slow
def test_kvstore_calls():
    run(
        """
kv = mx.kv.create("dist_sync")
kv.set_gradient_compression({"type": "2bit", "threshold": 0.5, "topology": "ring"})
workers, rank = kv.num_workers, kv.rank
assert kv.num_servers == 0
shape = (40, 50)
kv.init(3, mx.nd.ones(shape) * (7 + rank))
kv.init(9, mx.nd.zeros((5,)))
out = mx.nd.zeros(shape)
kv.pull(3, out=out)
assert (out.asnumpy() == 7).all()
a, b = mx.nd.zeros(shape), mx.nd.zeros(shape)
for _ in range(3):
    # Two device arrays are summed first; 0.625 leaves a residual.
    kv.push(3, [mx.nd.ones(shape) * 0.5, mx.nd.ones(shape) * 0.5])
    kv.pull(3, out=[a, b])
    assert (a.asnumpy() == b.asnumpy()).all()
    kv.pull(3, out=b)
    assert (a.asnumpy() == b.asnumpy()).all()
    kv.push(9, mx.nd.ones((5,)))
    small = mx.nd.zeros((5,))
    kv.pull(9, out=small)
    assert (small.asnumpy() == workers).all()  # below min_size
    kv.pull(9, out=small)
    assert (small.asnumpy() == workers).all()
x = mx.nd.ones((5,)) * 2
kv.pushpull(9, x)
assert (x.asnumpy() == 2 * workers).all()
kv.barrier()

def refused(call, *words):
    try:
        call()
    except MXNetError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(words)

sparse = mx.nd.sparse.zeros("row_sparse", (4, 2))
refused(lambda: kv.init(11, sparse), "row_sparse", "topology ring")
refused(lambda: kv.set_gradient_compression({"topology": "tree"}), "before the first key")
refused(lambda: kv.set_gradient_compression({"topology": "mesh"}), "there are ps")
refused(lambda: kv.save_optimizer_states("x"), "set_optimizer")
"""
    )


def test_async_needs_servers():
    outputs = worker_outputs(
        run_cluster(HEAD + 'mx.kv.create("dist_async")', workers=1, servers=0, check=False)
    )
    assert any("asynchronous training needs servers" in output for output in outputs)


TRAINING = """
from mxnet import autograd, gluon

def train(update_on_kvstore):
    mx.random.seed(1)
    np.random.seed(1)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(4))
    net.initialize(mx.init.Xavier())
    params = net.collect_params()
    trainer = gluon.Trainer(
        params, "adam", {"learning_rate": 0.01}, kvstore="dist_sync",
        update_on_kvstore=update_on_kvstore, compression_params=COMPRESSION,
    )
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    rng = np.random.default_rng(int(os.environ["DMLC_WORKER_ID"]))
    centres = np.random.default_rng(99).standard_normal((4, 20)) * 2
    losses = []
    for step in range(30):
        label = rng.integers(0, 4, 16)
        data = mx.nd.array(centres[label] + rng.standard_normal((16, 20)))
        with autograd.record():
            loss = loss_of(net(data), mx.nd.array(label))
        loss.backward()
        trainer.step(16)
        losses.append(float(loss.mean().asscalar()))
    assert losses[-1] < 0.5 * losses[0], losses
    print("digest", update_on_kvstore, digest([p.data() for p in params.values()]))

for update_on_kvstore in UPDATE:
    train(update_on_kvstore)
"""


def digests(outputs: list[str]) -> set[str]:
    return {line for out in outputs for line in out.splitlines() if line.startswith("digest")}


@pytest.mark.slow
def test_gluon_trainer_ends_with_the_same_weights_on_every_worker():
    compression = {"type": "tbq", "threshold": 0.002, "min_size": 0, "topology": "ring"}
    body = TRAINING.replace("UPDATE", "(True, False)").replace("COMPRESSION", repr(compression))
    outputs = run(body)
    assert len(digests(outputs)) == 2, outputs  # one a mode, the same on all workers


@pytest.mark.slow
def test_a_trainers_plan_is_checked_while_it_trains():
    patience = """
import logging, sys
from hipress.autotune import plan as auto_plan
from hipress.autotune import trial
auto_plan.FIRST_CHECK_STEPS = auto_plan.MAX_CHECK_STEPS = 12
auto_plan.MAX_DRIFT = 1.0  # never twice the same: planned anew each time
auto_plan.MAX_PREDICTED_RATIO = float("inf")
# Whatever the times: all, the first weights alone, and nothing are tried.
auto_plan.BLOCK_STEPS = trial.BLOCK_STEPS = trial.MAX_BLOCK_STEPS = auto_plan.MAX_BLOCKS = 1
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
"""
    compression = {"type": "tbq", "threshold": 0.002, "plan": "auto", "topology": "ring"}
    body = TRAINING.replace("UPDATE", "(False,)").replace("COMPRESSION", repr(compression))
    outputs = run(patience + body)
    assert len(digests(outputs)) == 1
    assert any("at step 12" in out for out in outputs), outputs
    assert any("at step 18, steps were tried" in out for out in outputs), outputs


@pytest.mark.slow
def test_colocated_equals_a_server_per_worker_bit_for_bit():
    outputs = []
    for servers, topology in ((0, "colocated"), (2, "ps")):
        compression = {"type": "onebit", "min_size": 0, "topology": topology}
        body = TRAINING.replace("UPDATE", "(False,)").replace("COMPRESSION", repr(compression))
        outputs += worker_outputs(
            run_cluster(HEAD + body, workers=2, servers=servers, timeout=120)
        )
    assert len(digests(outputs)) == 1


def test_optimizer_states_survive_a_restart(tmp_path):
    body = """
kv = mx.kv.create("dist_sync")
rank = kv.rank
kv.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.9))
kv.init(0, mx.nd.ones((100,)))
w = mx.nd.zeros((100,))
for step in range(2):
    kv.push(0, mx.nd.ones((100,)))
    kv.pull(0, out=w)
first = w.asnumpy().copy()
name = "PATH/states-%d" % rank
kv.save_optimizer_states(name)
kv.push(0, mx.nd.ones((100,)))
kv.pull(0, out=w)
second = w.asnumpy().copy()
kv.load_optimizer_states(name)
kv.push(0, mx.nd.ones((100,)))
kv.pull(0, out=w)
# The same momentum as before the second-last push gives the same change again.
np.testing.assert_allclose(second - first, w.asnumpy() - second, rtol=1e-6)
""".replace("PATH", str(tmp_path))
    run(body, workers=2)


@pytest.mark.slow
def test_module_trains_without_servers():
    outputs = run(
        """
kv = mx.kv.create("dist_sync")
kv.set_gradient_compression({"type": "2bit", "threshold": 0.01, "topology": "butterfly"})
rng = np.random.default_rng(kv.rank)
centres = np.random.default_rng(99).standard_normal((4, 20)) * 2
label = rng.integers(0, 4, 256)
data = centres[label] + rng.standard_normal((256, 20))
batches = mx.io.NDArrayIter(data.astype("float32"), label.astype("float32"), 32)
x = mx.sym.Variable("data")
x = mx.sym.FullyConnected(x, num_hidden=64, name="first")
x = mx.sym.Activation(x, act_type="relu")
x = mx.sym.FullyConnected(x, num_hidden=4, name="last")
module = mx.mod.Module(mx.sym.SoftmaxOutput(x, name="softmax"))
mx.random.seed(3)
module.fit(batches, num_epoch=3, kvstore=kv, optimizer="sgd",
           optimizer_params={"learning_rate": 0.1}, initializer=mx.init.Xavier())
score = dict(module.score(batches, "acc"))["accuracy"]
assert score > 0.9, score
arguments, _ = module.get_params()
print("digest", digest([arguments[name] for name in sorted(arguments)]))
"""
    )
    assert len(digests(outputs)) == 1, outputs


@pytest.mark.slow
def test_an_entropy_stage_changes_no_bit():
    found = set()
    for entropy in (False, True):
        compression = {
            "type": "tbq", "threshold": 0.002, "min_size": 0, "topology": "ring", "entropy": entropy
        }  # fmt: skip
        body = """
kv = mx.kv.create("dist_sync")
kv.set_gradient_compression({**COMPRESSION, "threshold": 1.0})
kv.init("big", mx.nd.zeros((300, 100)))
out, rng = mx.nd.zeros((300, 100)), np.random.default_rng(kv.rank)
for _ in range(3):
    kv.pushpull("big", mx.nd.array(rng.standard_normal((300, 100))), out=out)
print("digest", digest([out]))
""" + TRAINING.replace("UPDATE", "(False,)")  # fmt: skip
        found |= digests(run(body.replace("COMPRESSION", repr(compression))))
    assert len(found) == 2
