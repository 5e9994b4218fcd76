"""Compresses pushes only: `pull` is none."""

import numpy as np

from common import finish, node, workers

n = 4096
node.init_array(0, np.zeros(n, np.float32))
node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "min_size": 0, "pull": "none"})
out = np.zeros(n, np.float32)
x = np.full(n, 0.5, np.float32)
node.pushpull(0, x, out).wait(20)
assert (out == 0.5 * workers).all()
stats = node.stats()
assert stats["pulled_bytes"] >= 4 * n
finish()
