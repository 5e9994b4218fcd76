"""Trains until another process fails, and prints when and why."""

import time

import numpy as np

from hipress.runtime.node import HipressError, Node

node = Node()
try:
    node.init_array(0, np.zeros(100_000, np.float32))
    node.set_gradient_compression({"type": "2bit"})
    x = np.ones(100_000, np.float32)
    print("running", flush=True)
    while True:
        node.pushpull(0, x, np.zeros_like(x)).wait(30)
except HipressError as error:
    print(f"failed at {time.time()}: {error}", flush=True)
    node.abort()
