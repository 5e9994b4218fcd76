"""Partitions keys by the plan whose path is the argument."""

import sys

import numpy as np

from common import leave, node, workers

node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "plan": sys.argv[1]})
graphs = {
    name: node.init_array(key, np.zeros(8192, np.float32), name)
    for key, name in enumerate(["big", "other", "unknown"])
}
assert [len(g.partitions) for g in graphs.values()] == [3, 2, 1]
for key, expected in enumerate([0.5, 0.625, 0.5]):
    x = np.full(8192, 0.625, np.float32)
    node.pushpull(key, x).wait(20)
    assert (x == expected * workers).all(), (key, x)
leave()
