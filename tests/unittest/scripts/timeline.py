"""Pushes a key in each of three steps."""

import numpy as np

from hipress.runtime.node import Node

SIZE, STEPS = 1_200_000, 3

node = Node()
node.set_gradient_compression({"type": "tbq", "threshold": 0.5, "min_size": 0})
gradient = np.random.default_rng(node.rank).standard_normal(SIZE, dtype=np.float32)
node.init_array(0, np.zeros_like(gradient), 'the "key"')
for _ in range(STEPS):
    node.barrier()
    node.pushpull(0, gradient.copy()).wait(30)
node.stop()
