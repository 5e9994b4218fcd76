"""Trains; the first process of slot 2 dies in step 12, when all others have encoded.

Ends when its second process has taken part for 8 steps.
"""

import json
import os
import signal
import sys
import time
import zlib

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_hipress.elastic as elastic

BATCH, DIES, WARM_UP = 48, 12, 5


class Bits:
    data = b""  # some of which are those of NaNs of every kind

    def state_dict(self):
        return {"data": self.data}

    def load_state_dict(self, found):
        self.data = found["data"]


def parts(compression, seed=0):
    np.random.seed(seed)
    mx.random.seed(seed)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(96, activation="relu", in_units=64), gluon.nn.Dense(4, in_units=96))
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    schedule = mx.lr_scheduler.FactorScheduler(5, 0.9, base_lr=0.05)
    options = {"learning_rate": 0.05, "momentum": 0.9, "lr_scheduler": schedule}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options, kvstore=None)
    state = elastic.State(
        net, trainer, compression, check_every=1, timeout=60, notes="", bits=Bits()
    )
    if seed == 0:
        state.bits.data = np.random.bytes(6 << 20)
    return net, trainer, state


def backward(net, step, rank, size):
    values = np.random.RandomState(step).randn(BATCH, 64).astype(np.float32)[rank::size]
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(mx.nd.array(values)), mx.nd.array(values[:, :4] * 2))
    loss.backward()


def main():
    compression, slot = json.loads(sys.argv[1]), os.environ["HIPRESS_ELASTIC_SLOT"]
    first = os.environ["HIPRESS_ELASTIC_RESTART"] == "0"
    # Others' weights are copied.
    net, trainer, state = parts(compression, 0 if slot == "0" and first else os.getpid())

    @elastic.run
    def train(state):
        enough = state.size == 3 and state.step > DIES
        last = state.step + 8 if enough else 1 << 30
        while state.step < last:
            backward(net, state.step, state.rank, state.size)
            if first and slot == "2" and state.step == DIES:
                time.sleep(1.5)  # the other workers also begin this step
                os.kill(os.getpid(), signal.SIGKILL)
            state.trainer.step(BATCH)
            state.notes = f"step {state.step}"
            state.commit(rate=trainer.learning_rate, updates=trainer.optimizer.num_update)
            time.sleep(0.02)

    train(state)
    print(state.notes, zlib.crc32(state.bits.data))


if __name__ == "__main__":
    main()
