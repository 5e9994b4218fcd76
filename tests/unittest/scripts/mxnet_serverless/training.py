"""Trains and prints digests of weights; the first argument is the compression, as JSON.

Further arguments: both, where updates are on the store, too; entropy, to push to the store first;
plan, where a plan is checked soon.
"""

import json
import logging
import os
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_hipress
from common import digest
from hipress.autotune import plan_controller as auto_plan
from hipress.autotune import trial

mxnet_hipress.install()
compression = json.loads(sys.argv[1])
options = sys.argv[2:]
if "plan" in options:
    auto_plan.FIRST_CHECK_STEPS = auto_plan.MAX_CHECK_STEPS = 12
    auto_plan.MAX_DRIFT = 1.0  # never twice the same: planned again each time
    auto_plan.MAX_PREDICTED_RATIO = float("inf")
    # With any times, three plans are tried: all, the first weights alone, and nothing.
    auto_plan.BLOCK_STEPS = trial.BLOCK_STEPS = trial.MAX_BLOCK_STEPS = auto_plan.MAX_BLOCKS = 1
    logging.basicConfig(stream=sys.stdout, level=logging.INFO)
if "entropy" in options:
    kv = mx.kv.create("dist_sync")
    kv.set_gradient_compression({**compression, "threshold": 1.0})
    kv.init("big", mx.nd.zeros((300, 100)))
    out, rng = mx.nd.zeros((300, 100)), np.random.default_rng(kv.rank)
    for _ in range(3):
        kv.pushpull("big", mx.nd.array(rng.standard_normal((300, 100))), out=out)
    print("digest", digest([out]))


def train(update_on_kvstore):
    mx.random.seed(1)
    np.random.seed(1)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(4))
    net.initialize(mx.init.Xavier())
    params = net.collect_params()
    trainer = gluon.Trainer(
        params,
        "adam",
        {"learning_rate": 0.01},
        kvstore="dist_sync",
        update_on_kvstore=update_on_kvstore,
        compression_params=compression,
    )
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    rng = np.random.default_rng(int(os.environ["DMLC_WORKER_ID"]))
    centers = np.random.default_rng(99).standard_normal((4, 20)) * 2
    losses = []
    for _step in range(30):
        label = rng.integers(0, 4, 16)
        data = mx.nd.array(centers[label] + rng.standard_normal((16, 20)))
        with autograd.record():
            loss = loss_of(net(data), mx.nd.array(label))
        loss.backward()
        trainer.step(16)
        losses.append(float(loss.mean().asscalar()))
    assert losses[-1] < 0.5 * losses[0], losses
    print("digest", update_on_kvstore, digest([p.data() for p in params.values()]))


for update_on_kvstore in (True, False) if "both" in options else (False,):
    train(update_on_kvstore)
