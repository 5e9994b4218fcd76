"""Trains an elastic job of Gluon with the settings in HELD_UP, as JSON."""

import hashlib
import json
import os

import mxnet as mx
from mxnet import autograd, gluon

import mxnet_hipress.elastic as elastic

settings = json.loads(os.environ["HELD_UP"])
mx.random.seed(0)
net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Dense(96, in_units=64), gluon.nn.Dense(4, in_units=96))
net.initialize(mx.init.Normal(0.1))
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=None)
state = elastic.State(
    net, trainer, {"type": settings["type"], "min_size": 256}, check_every=5, timeout=60
)


@elastic.run
def train(state):
    while state.step < settings["steps"]:
        with autograd.record():
            loss = net(mx.nd.ones((8, 64))).square().mean()
        loss.backward()
        state.trainer.step(8)
        state.commit()


train(state)
arrays = [parameter.data().asnumpy() for parameter in net.collect_params().values()]
found = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
print("result", state.epoch, found.hexdigest(), flush=True)
