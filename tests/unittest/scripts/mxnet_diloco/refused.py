"""Constructs what a DiLoCoTrainer refuses, and makes an outer step with a NaN."""

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.base import MXNetError

import mxnet_hipress
from common import H, train, trained, weights
from mxnet_network import network


def refused(sentence, error=ValueError, net=None, **more):
    try:
        trained(net or network(), **more)
    except error as caught:
        assert sentence in str(caught), caught
    else:
        raise AssertionError(sentence)


used = mx.optimizer.SGD()
used.num_update = 3
empty = gluon.nn.Dense(3)
empty.initialize()
rows = gluon.nn.Embedding(8, 4, sparse_grad=True)
rows.initialize()
half = gluon.nn.Dense(3, in_units=3, dtype="float64")
half.initialize()
refused("sync_every must be 1 or more, not 0", sync_every=0)
refused("in [0, sync_every) = [0, 4), not 4", fragment_sync_delay=H)
refused("fragment_update_alpha must be in [0, 1)", fragment_update_alpha=1)
refused("too few steps for 5 fragments", fragments=5)
refused("has made steps before", outer_optimizer=used)
refused("an Optimizer or its name", outer_optimizer=3)
refused("needs a synchronous distributed store", kvstore="device")
refused("has no values yet", net=empty)
refused("is sparse, or of type float32", net=rows)
refused("of type float64", net=half)
narrow = gluon.nn.Dense(3, in_units=3, dtype="float16")
narrow.initialize()
try:
    mxnet_hipress.DiLoCoTrainer(
        narrow.collect_params(), "adam", {"multi_precision": True}, sync_every=H
    )
except ValueError as error:
    assert "train float32 weights" in str(error), error
else:
    raise AssertionError("multi_precision")
refused('unknown compression type "nonsense"', MXNetError, compression_params={"type": "nonsense"})

# 2bit has no code for a NaN.
net = network()
trainer = trained(net, compression_params={"type": "2bit", "threshold": 0.01, "min_size": 0})
rank = trainer.store.rank
for step in range(1, 2 * H + 1):
    if step == H + 1:
        before = weights(net)
    if step == 2 * H and rank == 1:
        net[0].weight.data()[3, 3] = float("nan")
    train(net, trainer, rank, step)
for mine, theirs in zip(weights(net), before):
    assert np.array_equal(mine, theirs)
for step in range(2 * H + 1, 3 * H + 1):  # the inner Adam's states also had the NaN
    train(net, trainer, rank, step)
assert all(np.isfinite(w).all() for w in weights(net))
assert not np.array_equal(weights(net)[0], before[0])
refused("every 4", MXNetError, sync_every=H + rank)
