"""Makes the CALL (barrier, pull or init) that worker 1 does not make."""

import os
import time

import numpy as np

from hipress.runtime.node import Node

node = Node()
node.init_array(0, np.zeros(10, np.float32), "first")
print("ready", flush=True)
if node.rank == 1:
    time.sleep(200)
out = np.zeros(10, np.float32)
if os.environ["CALL"] == "barrier":
    node.barrier()
elif os.environ["CALL"] == "pull":
    node.push(0, out.copy()).wait(30)
    pulls = [node.pull(0, out) for _ in range(2)]  # the second one fetches
    time.sleep(200)
else:
    node.init_array(1, np.zeros(10, np.float32), "second")
