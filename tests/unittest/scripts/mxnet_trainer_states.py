"""Trains, and saves or loads the trainer's states; arguments: method, file."""

import sys
import warnings

import mxnet as mx

import mxnet_hipress  # noqa: F401  # registers its stores

kv = mx.kv.create("dist_sync_hipress")
net = mx.gluon.nn.Dense(64, in_units=64)
net.initialize(mx.init.One())
trainer = mx.gluon.Trainer(
    net.collect_params(),
    "sgd",
    {"momentum": 0.9},
    kvstore=kv,
    update_on_kvstore=False,
    compression_params={"type": "onebit", "min_size": 0},
)
for _step in range(2):
    with mx.autograd.record():
        loss = net(mx.nd.ones((2, 64))).sum()
    loss.backward()
    trainer.step(2)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    getattr(trainer, sys.argv[1])(sys.argv[2])
print("warned:", [str(w.message) for w in said if "compression" in str(w.message)])
