"""Checks that keys, partitions and workers round with different random numbers."""

import numpy as np

from hipress.runtime.node import Node

n = 4096
node = Node()
node.set_gradient_compression({"type": "terngrad", "min_size": 0, "pull": "none"})
sums = []
for key in (0, 1):
    node.init_array(key, np.zeros(2 * n, np.float32))
for key in (0, 1):
    # Levels are 0, 1/3, 2/3, 1: between them chance decides.
    x = np.tile(np.array([0, 1, 0.5, 0.5], np.float32), n // 2)
    out = np.zeros_like(x)
    node.pushpull(key, x, out).wait(20)
    sums += [out[:n].reshape(-1, 4)[:, 2:], out[n:].reshape(-1, 4)[:, 2:]]
levels = [set(np.round(part.ravel() * 3).astype(int)) for part in sums]
# Two workers that drew the same numbers would only ever make 2/3 and 4/3.
assert all(level == {2, 3, 4} for level in levels), levels
agree = [np.mean(a == b) for i, a in enumerate(sums) for b in sums[:i]]
assert max(agree) < 0.5, agree  # 3/8 for independent numbers
print("finished")
node.stop()
