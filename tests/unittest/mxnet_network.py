"""Network that scripts of tests of DiLoCo with MXNet train."""

import mxnet as mx
import numpy as np
from mxnet import gluon


def network(seed=0):
    mx.random.seed(seed)
    np.random.seed(seed)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            gluon.nn.Dense(48, activation="tanh", in_units=32),
            gluon.nn.Dense(64, in_units=48),
            gluon.nn.Dense(8, in_units=64),
        )
    net.initialize(mx.init.Normal(0.1))
    return net
