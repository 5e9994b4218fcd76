"""Worker 1 leaves after two steps; worker 0 prints the error."""

import numpy as np

from hipress.runtime.node import HipressError, Node

node = Node()
node.init_array(0, np.zeros(10, np.float32), "weight")
x = np.ones(10, np.float32)
try:
    for _step in range(3 - node.rank):
        node.pushpull(0, x, np.zeros_like(x)).wait(30)
    node.stop()
except HipressError as error:
    print("error:", error)
    node.stop()
