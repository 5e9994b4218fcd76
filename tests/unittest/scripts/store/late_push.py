"""Pushes end when their memory is free, although worker 1 has not pushed."""

import numpy as np

from hipress.runtime.node import Node

node = Node()
x, out = np.ones(300_000, np.float32), np.zeros(300_000, np.float32)
for key in (0, 1):
    node.init_array(key, x)
for _step in range(4):
    order = (0, 1) if node.rank == 0 else (1, 0)
    for key in order:
        node.push(key, x).wait(20)
    for key in order:
        node.pull(key, out).wait(20)
        assert (out == 2).all()
assert node.stats()["lent_bytes"] > 5 * x.nbytes
node.stop()
