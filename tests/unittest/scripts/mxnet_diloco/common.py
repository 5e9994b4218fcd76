"""Network, DiLoCo trainer and inner steps; the first argument has the options, as JSON."""

import hashlib
import json
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_hipress

H = 4
options = json.loads(sys.argv[1])


def trained(net, **more):
    return mxnet_hipress.DiLoCoTrainer(
        net.collect_params(),
        "adam",
        {"learning_rate": 0.01},
        **{"sync_every": H, **options, **more},
    )


def train(net, trainer, rank, step):
    inputs = mx.nd.array(np.random.RandomState(1000 * rank + step).randn(16, 32))
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(inputs), inputs[:, :8])
    loss.backward()
    trainer.step(16)


def weights(net):
    return [p.data().asnumpy() for p in net.collect_params().values()]


def digest(net):
    return hashlib.sha256(b"".join(w.tobytes() for w in weights(net))).hexdigest()[:16]
