"""Trains with a Trainer of type auto; arguments: optimizer, and where it runs."""

import hashlib
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_hipress  # noqa: F401  # registers its stores
from known_times import measure_store

now = {"uncompressed": 1.0}
lines = measure_store(lambda method_name: now.get(method_name, 5 * max(now.values())))
np.random.seed(1)
mx.random.seed(1)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(200, activation="relu"), gluon.nn.Dense(200), gluon.nn.Dense(2))
net.initialize(mx.init.Xavier())
net(mx.nd.zeros((1, 64)))
trainer = gluon.Trainer(
    net.collect_params(),
    sys.argv[1],
    {"learning_rate": 0.001},
    kvstore="dist_sync_hipress",
    compression_params={"type": "auto"},
    update_on_kvstore=sys.argv[2] == "servers" or None,
)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
for step in range(60):
    if step == 25:
        now.clear()
        now.update({"uncompressed": 50.0, "maxminef bits=2": 5.0, "maxmin bits=8": 6.0})
    data = np.random.RandomState(100 * step + trainer._kvstore.rank if step else 0)
    x = mx.nd.array(data.normal(size=(8, 64)))
    with autograd.record():
        error = loss(net(x), x.sum(axis=1) > 0)
    error.backward()
    trainer.step(16)
kv = trainer._kvstore
print(kv.explain())
assert kv.is_settled
weights = [p.data().asnumpy() for p in net.collect_params().values()]
assert all(np.isfinite(w).all() for w in weights)
print("bits", hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest())
print("lines", len(lines))
