"""Network, data, and digests."""

import hashlib

import keras
import numpy as np

import hipress.tensorflow as hvd

rank, size = hvd.rank(), hvd.size()


def network(seed=0):
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.Input((32,)),
            keras.layers.Dense(48, "tanh"),
            keras.layers.Dense(64),
            keras.layers.Dense(8),
        ]
    )


def batch(worker, step):
    inputs = np.random.RandomState(1000 * worker + step).randn(16, 32).astype(np.float32)
    return inputs, inputs[:, :8]


def weights(model):
    return [np.array(v) for v in model.trainable_variables]


def print_digest(arrays):
    print("digest", hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()[:16])


def assign(net, i, values):
    net.trainable_variables[i].assign(values)
