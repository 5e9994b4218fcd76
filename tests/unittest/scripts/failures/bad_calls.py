"""Evaluates the calls that are the arguments and prints their errors."""

import sys

import numpy as np

from hipress.runtime.node import HipressError, Node

node = Node()
x = np.ones(100, np.float32)
node.init_array(0, x)
for call in sys.argv[1:]:
    try:
        eval(call)
        print(f"{call} -> no error")
    except HipressError as error:
        print(f"{call} -> {error}")
node.barrier()
out = np.zeros(100, np.float32)
node.pushpull(0, x, out).wait(20)
assert (out == 2).all()
node.stop()
