"""Trains ten steps on a slow link and prints what type auto chose."""

import hashlib

import mxnet as mx
import numpy as np

import mxnet_hipress  # noqa: F401  # registers its stores

kv = mx.kv.create("dist_sync_hipress")
kv.set_gradient_compression({"type": "auto"})
kv.init("weight", mx.nd.zeros((600, 300)))
kv.init("bias", mx.nd.zeros(3000))
assert not kv.is_settled
total = hashlib.sha256()
for step in range(14):
    for key, shape in (("weight", (600, 300)), ("bias", (3000,))):
        random = np.random.RandomState(100 * step + kv.rank)
        out = mx.nd.array(random.normal(size=shape))
        kv.pushpull(key, out)
        total.update(out.asnumpy().tobytes())
        exact = sum(np.random.RandomState(100 * step + rank).normal(size=shape) for rank in (0, 1))
        off = np.abs(out.asnumpy() - exact).max()
        assert (off > 1e-3) == (key == "weight"), (key, off)  # vectors are uncompressed
print("bits", total.hexdigest())
print(kv.explain())
