"""Trains a Module without servers."""

import mxnet as mx
import numpy as np

import mxnet_hipress
from common import digest

mxnet_hipress.install()
kv = mx.kv.create("dist_sync")
kv.set_gradient_compression({"type": "2bit", "threshold": 0.01, "topology": "butterfly"})
rng = np.random.default_rng(kv.rank)
centers = np.random.default_rng(99).standard_normal((4, 20)) * 2
label = rng.integers(0, 4, 256)
data = centers[label] + rng.standard_normal((256, 20))
batches = mx.io.NDArrayIter(data.astype("float32"), label.astype("float32"), 32)
x = mx.sym.Variable("data")
x = mx.sym.FullyConnected(x, num_hidden=64, name="first")
x = mx.sym.Activation(x, act_type="relu")
x = mx.sym.FullyConnected(x, num_hidden=4, name="last")
module = mx.mod.Module(mx.sym.SoftmaxOutput(x, name="softmax"))
mx.random.seed(3)
module.fit(
    batches,
    num_epoch=3,
    kvstore=kv,
    optimizer="sgd",
    optimizer_params={"learning_rate": 0.1},
    initializer=mx.init.Xavier(),
)
score = dict(module.score(batches, "acc"))["accuracy"]
assert score > 0.9, score
arguments, _ = module.get_params()
print("digest", digest([arguments[name] for name in sorted(arguments)]))
