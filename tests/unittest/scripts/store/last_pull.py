"""Worker 0 pulls the last sum late, when all others have left."""

import time

import numpy as np

from common import leave, node, rank, workers

node.init_array(0, np.zeros(100_000, np.float32))
x = np.ones(100_000, np.float32)
node.push(0, x)
if rank == 0:
    time.sleep(1)
    out = np.zeros(100_000, np.float32)
    node.pull(0, out).wait(20)
    assert (out == workers).all()
leave()
