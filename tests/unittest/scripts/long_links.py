"""Sums an array; arguments: elements, and how often."""

import sys

import numpy as np

from hipress.runtime.node import Node

node = Node()
if node.role != "worker":
    node.serve()
else:
    size = int(sys.argv[1])
    gradient = np.arange(size, dtype=np.float32) % 97 + node.rank
    total = np.zeros(size, np.float32)
    node.init_array(0, total)
    for _ in range(int(sys.argv[2])):
        node.pushpull(0, gradient, total).wait(100)
    assert (total == 2 * (np.arange(size, dtype=np.float32) % 97) + 1).all()
    node.barrier()
    node.stop()
    print("right")
