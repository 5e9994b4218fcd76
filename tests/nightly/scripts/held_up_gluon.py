"""Trains Gluon with the settings in HELD_UP, as JSON."""

import hashlib
import json
import os

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

settings = json.loads(os.environ["HELD_UP"])
mx.random.seed(0)
net = gluon.nn.HybridSequential()
for width in [settings["width"]] * settings["layers"]:
    net.add(gluon.nn.Dense(width, in_units=width))
net.initialize(mx.init.Normal(0.05))
net.hybridize()
store = mx.kv.create("dist_sync")
trainer = gluon.Trainer(
    net.collect_params(),
    "sgd",
    {"learning_rate": 1e-3, "momentum": 0.5},
    kvstore=store,
    update_on_kvstore=settings["on_server"],
    compression_params={"type": settings["type"], "min_size": 1000},
)
dice = np.random.RandomState(store.rank)
for _step in range(settings["steps"]):
    values = mx.nd.array(dice.randn(4, settings["width"]))
    with autograd.record():
        loss = net(values).square().mean()
    loss.backward()
    trainer.step(4 * store.num_workers)
store.barrier()
arrays = [parameter.data().asnumpy() for parameter in net.collect_params().values()]
found = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
print("result", found.hexdigest(), flush=True)
