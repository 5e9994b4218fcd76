"""Compares weights with Adam by MXNet and everything else by NumPy."""

import hashlib
import os

import mxnet as mx
import numpy as np
from mxnet import gluon

from common import H, digest, options, train, trained, weights
from diloco_reference import Reference
from mxnet_network import network

# The middle of all 5240 numbers is in the second layer's weights.
turns = [(2, range(2)), (0, range(2, 6))] if "fragments" in options else [(0, range(6))]
compressed = options["compression_params"]["type"] != "none"
nets = [network() for _ in range(int(os.environ["DMLC_NUM_WORKER"]))]
inner = [
    gluon.Trainer(each.collect_params(), "adam", {"learning_rate": 0.01}, None) for each in nets
]


def step_of(net, worker, step):
    train(net, inner[worker], worker, step)


def assign(net, i, values):
    list(net.collect_params().values())[i].set_data(mx.nd.array(values))


net = network(seed=int(os.environ["DMLC_WORKER_ID"]))  # the first one's become everybody's
trainer = trained(net)
rank = trainer.store.rank
rate, factor = (1, 0) if compressed else (0.7, 0.9)
delay, alpha = options.get("fragment_sync_delay", 0), options.get("fragment_update_alpha", 0)
params = options["compression_params"]
reference = Reference(
    nets,
    step_of,
    turns,
    delay,
    alpha,
    rate,
    factor,
    params["type"],
    params["min_size"],
    [2, 4, 5] if "early_steps" in options else [],
    weights=weights,
    assign=assign,
)


def compare():
    for mine, theirs in zip(weights(net), weights(reference.nets[rank])):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=0 if compressed else 3e-7)


for step in range(1, 3 * H + 2):
    train(net, trainer, rank, step)
    reference.advance(step)
    compare()
    if step > reference.first and (step - reference.first) % H == 0:
        print(
            "digest",
            digest(net)
            if not alpha
            else hashlib.sha256(
                b"".join(
                    outer.tobytes()
                    for fragment in trainer._diloco.outer.fragments
                    for outer in fragment.outer.values()
                )
            ).hexdigest(),
        )
trainer.finish()
for step in list(reference.pending):
    reference.take(step)
compare()
stats = trainer.store.stats()
assert compressed == (stats["pushed_bytes"] < stats["pushed_raw_bytes"]), stats
