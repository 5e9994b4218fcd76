"""Trains until a server fails, and prints how many operations are still in progress."""

import numpy as np

from hipress.runtime.node import HipressError, Node

node = Node()
node.set_gradient_compression({"type": "dgc"})
arrays = [np.ones(1_000_000, np.float32) for _ in range(8)]
for key, array in enumerate(arrays):
    node.init_array(key, array)
print("running", flush=True)
try:
    while True:
        started = [node.pushpull(key, array) for key, array in enumerate(arrays)]
        for each in started:
            each.wait(30)
except HipressError:
    node.abort()
    print("running:", len(node._operations._running))
