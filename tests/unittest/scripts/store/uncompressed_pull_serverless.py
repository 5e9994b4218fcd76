"""Compresses pushes only: `pull` is none."""

import numpy as np

from common import leave, node, workers

n = 4096
node.init_array(0, np.zeros(n, np.float32))
node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "pull": "none"})
out = np.zeros(n, np.float32)
node.pushpull(0, np.full(n, 0.6, np.float32), out).wait(20)
# Each worker's payload decodes to 0.5; their sum is not encoded again.
assert (out == 0.5 * workers).all()
leave()
