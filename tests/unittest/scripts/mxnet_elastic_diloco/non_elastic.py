"""The same outer steps without elasticity, by DiLoCoTrainer."""

import json
import os
import sys

import mxnet_hipress
from common import backward, digest
from diloco_reference import H
from mxnet_network import network

compression, steps, outer = json.loads(sys.argv[1])
net = network(int(os.environ["DMLC_WORKER_ID"]))
trainer = mxnet_hipress.DiLoCoTrainer(
    net.collect_params(),
    "adam",
    {"learning_rate": 0.01},
    H,
    compression_params=compression,
    **outer,
)
for step in range(steps):
    backward(net, trainer.store.rank, step)
    trainer.step(16)
trainer.finish()
outer = trainer._diloco.outer
for fragment in outer.fragments:  # a last outer step of fewer inner steps
    outer.start(fragment)
    outer.complete(fragment)
print("digest", digest(net))
