"""Trains with an optimizer that hangs, and prints the error."""

import os
import time

import numpy as np

from common import node, rank
from hipress.runtime.node import HipressError

node.init_array(0, np.zeros(3000, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        assert node.command(server, 0, b"sgd") == b"set by 0"
node.barrier()
out = np.zeros(3000, np.float32)
for value in (1, 1000):
    began = time.monotonic()
    try:
        node.push(0, np.full(3000, value, np.float32)).wait(40)
        node.pull(0, out).wait(40)
    except HipressError as error:
        assert value == 1000 and time.monotonic() - began < 20
        print("said", error)
print("finished", flush=True)
os._exit(0)
