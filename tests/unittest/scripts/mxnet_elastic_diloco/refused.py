"""Loads a checkpoint, makes states that are refused, and prints the errors."""

import pickle

import mxnet as mx
import numpy as np

import mxnet_hipress.elastic as elastic
from common import backward, weights
from mxnet_network import network


def state(seed=0, inner=None, **options):
    net = network(seed)
    inner = inner or mx.optimizer.SGD()
    return net, elastic.State(net, inner, {"type": "onebit"}, **options)


net, saved = state(sync_every=5, outer_optimizer="nag")
saved.outer_steps.begin()
outer = weights(net)
backward(net, 0, 0)
saved.trainer.wrapped.step(16)  # in the middle of an outer step
other, loaded = state(1, sync_every=5, outer_optimizer="nag")
loaded.load_state_dict(pickle.loads(pickle.dumps(saved.state_dict())))
assert all(map(np.array_equal, weights(other), weights(net)))
loaded.outer_steps.begin()
assert all(map(np.array_equal, weights(other), outer))
assert not any(map(np.array_equal, weights(net), outer))

sgd, local = mx.optimizer.SGD(), mx.optimizer.SGD(lr_scheduler=lambda step: 0.1)
for wrong in (
    {"sync_every": 5},
    {"outer_optimizer": "nag"},
    {"outer_optimizer_params": {"learning_rate": 1.0}},
    {"sync_every": 0, "outer_optimizer": "nag"},
    {"sync_every": 5, "outer_optimizer": 3},
    {"sync_every": 5, "outer_optimizer": sgd, "inner": sgd},
    {"sync_every": 5, "outer_optimizer": sgd, "outer_optimizer_params": {"momentum": 0.9}},
    {"sync_every": 5, "outer_optimizer": local},
    {"sync_every": 5, "outer_optimizer": "nag", "fragments": 4},
):
    try:
        state(**wrong)
    except Exception as error:
        print(str(error).splitlines()[0])
