"""Network of ones, with MXNet's or, if NUMPY is set, NumPy's arrays, and its training."""

import os

import mxnet as mx
from mxnet import autograd, gluon

numpy = os.environ.get("NUMPY")
if numpy:
    mx.npx.set_np()
ones = mx.np.ones if numpy else mx.nd.ones
net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.Dense(2, in_units=3))
net.initialize(mx.init.One())
net(ones((1, 4)))


def train(trainer, steps):
    for _ in range(steps):
        with autograd.record():
            loss = net(ones((1, 4))).sum()
        loss.backward()
        trainer.step(2)


def weight():
    return net[0].weight.data().asnumpy().ravel()[:2].tolist()
