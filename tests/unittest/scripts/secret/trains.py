"""Initializes a key."""

import numpy as np

from hipress.runtime.node import Node

with Node() as node:
    node.init_array(0, np.ones(4, np.float32))
    print("trained")
