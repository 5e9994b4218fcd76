"""Compares sums by codec lossless with those of uncompressed gradients."""

import numpy as np

from hipress.runtime.node import Node

node = Node()
n, found, sent = 9_000, {}, {}
for key, dtype in enumerate((np.float32, np.float16)):
    node.init_array(key, np.zeros(n, dtype))
for type in ("none", "lossless"):
    node.set_gradient_compression({"type": type, "min_size": 0})
    for key, dtype in enumerate((np.float32, np.float16)):
        before = node.stats()["pushed_bytes"]
        for step in range(3):
            rng = np.random.default_rng([step, node.rank])
            x = np.where(rng.random(n) < 0.6, rng.normal(0, 1, n), 0).astype(dtype)
            x[:3] = np.array([-0.0, 1e-7, 6e4 if step else np.inf])  # some sums are too large
            out = np.zeros(n, dtype)
            node.pushpull(key, x, out).wait(30)
            found[type, dtype, step] = out.tobytes()
        sent[type, dtype] = node.stats()["pushed_bytes"] - before
for (_, dtype, step), data in found.items():
    assert data == found["none", dtype, step], (dtype, step)
assert len(set(found.values())) == 6
for dtype in (np.float32, np.float16):
    assert 0 < 1.1 * sent["lossless", dtype] < sent["none", dtype], sent
node.barrier()
node.stop()
print("equal")
