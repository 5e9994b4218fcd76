"""Pushes a group of keys that an optimizer updates."""

import numpy as np

from common import node

for key in range(30):
    node.init_array(key, np.full(6, 100, np.float32))
ones = [np.ones(6, np.float32) for _ in range(30)]
outs = [np.zeros(6, np.float32) for _ in range(30)]
group = node.group(range(30), ones, outs)
for step in range(1, 4):
    group.pushpull().wait(20)
    for key, out in enumerate(outs):
        assert (out == 100 - 2 * step * (key + 1)).all(), (step, key, out)
again = np.zeros(6, np.float32)
node.pull(7, again).wait(20)
assert (again == outs[7]).all()
node.barrier()
node.stop()
