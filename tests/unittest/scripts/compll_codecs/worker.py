"""Trains three steps by the codec that is the argument, and prints results."""

import sys

import numpy as np

from hipress.runtime.node import Node

node = Node()
node.set_gradient_compression({"type": sys.argv[1], "min_size": 0})
node.init_array(0, np.zeros(1000, np.float32))
total = np.zeros(1000, np.float32)
for step in range(3):
    out = np.zeros(1000, np.float32)
    g = np.random.default_rng([step, node.rank]).normal(0, 1, 1000).astype(np.float32)
    node.push(0, g).wait(20)
    node.pull(0, out).wait(20)
    print("value", step, out.tobytes().hex()[:64], float(abs(out).sum()))
node.barrier()
node.stop()
print("finished")
