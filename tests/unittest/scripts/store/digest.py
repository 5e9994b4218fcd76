"""Prints a digest of all sums."""

import hashlib

import numpy as np

from common import finish, gradient, node, rank

n = 50_000
digest = hashlib.sha256()
node.init_array(0, np.zeros(n, np.float32))
for iteration in range(10):
    out = np.zeros(n, np.float32)
    node.pushpull(0, gradient(n, iteration, rank) * 1e6, out).wait(20)
    digest.update(out.tobytes())
print("digest", digest.hexdigest())
finish()
