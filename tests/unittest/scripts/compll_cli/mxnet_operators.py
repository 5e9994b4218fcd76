"""Runs the tutorial's codec as MXNet operators; argument: the line that loads them."""

import sys

import mxnet as mx
import numpy as np

import mxnet_hipress  # noqa: F401  # registers its stores

exec(sys.argv[1])
x, step = mx.nd.array(np.load("x.npy")), mx.nd.zeros(1, dtype="int64")
residual = mx.nd.zeros(x.shape)
payload = mx.nd.contrib.encode_signmean(x, residual, step, boost=0.5)
decoded = mx.nd.contrib.decode_signmean(payload, shape=x.shape)
total = mx.nd.contrib.decode_sum_signmean(payload, payload, num_args=2, shape=x.shape)
payload, decoded, total = (array.asnumpy() for array in (payload, decoded, total))
assert step.asscalar() == 1
np.savez("result.npz", payload=payload, decoded=decoded, total=total)
