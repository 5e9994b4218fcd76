"""Joins the job when file "go" exists: a stranger comes first."""

import os
import time

import numpy as np

from hipress.runtime.node import Node

while not os.path.exists("go"):  # the stranger comes first
    time.sleep(0.02)
with Node() as node:
    node.init_array(0, np.ones(4, np.float32))
    print("trained as", node.rank)
