"""Trains when file "crowded" exists."""

import os
import time

import numpy as np

from hipress.runtime.node import Node

while not os.path.exists("crowded"):
    time.sleep(0.02)
with Node() as node:
    node.init_array(0, np.zeros(1000, np.float32))
    out = np.zeros(1000, np.float32)
    for _step in range(20):
        node.pushpull(0, np.ones(1000, np.float32), out).wait(30)
    print("sum", out[0], flush=True)
