"""Exchanges float16 arrays, compressed and not."""

import numpy as np

from common import finish, node, rank

node.init_array(0, np.full(1001, 3, np.float16))
out = np.zeros(1001, np.float16)
node.pull(0, out).wait(20)
assert (out == 3).all()
for params in ({"type": "none"}, {"type": "2bit", "threshold": 0.5, "min_size": 0}):
    node.set_gradient_compression(params)
    x = np.full(1001, 0.5 + rank, np.float16)
    node.push(0, x).wait(20)
    node.pull(0, out).wait(20)
    assert (out == (2.0 if params["type"] == "none" else 1.0)).all(), out
finish()
