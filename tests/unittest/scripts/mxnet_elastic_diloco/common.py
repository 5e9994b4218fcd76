"""Network, its inner trainer and outer optimizer, and inner steps."""

import hashlib

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_hipress  # noqa: F401  # registers its stores


def backward(net, slot, step):
    inputs = mx.nd.array(np.random.RandomState(1000 * slot + step).randn(16, 32))
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(inputs), inputs[:, :8])
    loss.backward()


def weights(net):
    return [p.data().asnumpy() for p in net.collect_params().values()]


def assign(net, i, values):
    list(net.collect_params().values())[i].set_data(mx.nd.array(values))


def digest(net):
    return hashlib.sha256(b"".join(w.tobytes() for w in weights(net))).hexdigest()[:16]
