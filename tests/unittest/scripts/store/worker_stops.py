"""Three steps; before the last, worker 1 leaves ('leave') or sleeps ('sleep')."""

import sys
import time

import numpy as np

from hipress.runtime.node import HipressError, Node

node = Node()
node.init_array(0, np.zeros(10, np.float32), "weight")
x = np.ones(10, np.float32)
try:
    for step in range(3):
        if node.rank == 1 and step == 2:
            if sys.argv[1] == "leave":
                break
            time.sleep(11)
        node.pushpull(0, x, np.zeros_like(x)).wait(30)
    node.stop()
except HipressError as error:
    print("error:", error)
    node.abort()
