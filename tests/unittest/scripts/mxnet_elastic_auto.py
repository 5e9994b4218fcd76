"""Elastic training of type auto; argument: gradients, store, adam or rounds."""

import sys
import time

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_hipress.elastic as elastic
from elastic_choice import FakeTimes

times, kind = FakeTimes(), sys.argv[1]
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(96, in_units=64, activation="relu"), gluon.nn.Dense(4, in_units=96))
net.initialize(mx.init.Uniform(0.1))
loss_of = gluon.loss.L2Loss()


def backward(step, rank, size):
    values = np.random.RandomState(step).randn(48, 64).astype(np.float32)[rank::size]
    inputs = mx.nd.array(values)
    with autograd.record():
        loss = loss_of(net(inputs), inputs[:, :4] * 2)
    loss.backward()


if kind == "store":
    kv = mx.kv.create("dist_sync_hipress")
    trainer = gluon.Trainer(
        net.collect_params(),
        "sgd",
        {"learning_rate": 0.05, "momentum": 0.9},
        kvstore=kv,
        compression_params={"type": "auto", "min_size": 256},
    )
    while True:
        backward(kv.stats()["steps"], kv.rank, kv.num_workers)
        trainer.step(48)
        times.say(kv._state, kv.stats()["steps"])
        if kv.stats()["steps"] == 60:
            print(kv.explain(), flush=True)
        time.sleep(0.01)

more = {"sync_every": 5, "outer_optimizer": "nag"} if kind == "rounds" else {}
sgd = mx.optimizer.SGD(learning_rate=0.05, momentum=0.9)
optimizer = sgd if kind == "gradients" else mx.optimizer.Adam(0.001)
state = elastic.State(
    net, optimizer, {"type": "auto", "min_size": 256}, check_every=1, timeout=60, **more
)


@elastic.run
def train(state):
    while True:
        backward(state.step, state.rank, state.size)
        state.trainer.step(48 if kind != "rounds" else 48 // state.size)
        times.say(state, state.step)
        state.commit()
        if state.step == 60:
            print(state.explain(), flush=True)
        time.sleep(0.01)


train(state)
