"""Saves and loads optimizer states in the folder that is the argument."""

import sys

import mxnet as mx
import numpy as np

import mxnet_hipress

mxnet_hipress.install()
kv = mx.kv.create("dist_sync")
rank = kv.rank
kv.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.9))
kv.init(0, mx.nd.ones((100,)))
w = mx.nd.zeros((100,))
for _step in range(2):
    kv.push(0, mx.nd.ones((100,)))
    kv.pull(0, out=w)
first = w.asnumpy().copy()
name = f"{sys.argv[1]}/states-{rank}"
kv.save_optimizer_states(name)
kv.push(0, mx.nd.ones((100,)))
kv.pull(0, out=w)
second = w.asnumpy().copy()
kv.load_optimizer_states(name)
kv.push(0, mx.nd.ones((100,)))
kv.pull(0, out=w)
# The same momentum as before the second-last push gives the same change again.
np.testing.assert_allclose(second - first, w.asnumpy() - second, rtol=1e-6)
