"""Creates a key whose number, dtype or name (the argument) differs on rank 1."""

import sys

import numpy as np

from hipress.runtime.node import HipressError, Node

node = Node()
rank, n, dtype, name = node.rank, 100, np.float32, "w"
if sys.argv[1] == "size":
    n += rank
elif sys.argv[1] == "dtype" and rank:
    dtype = np.float16
elif sys.argv[1] == "name":
    name = f"w{rank}"
try:
    node.init_array(0, np.zeros(n, dtype), name)
except HipressError as error:
    print("error:", error)
node.init_array(1, np.zeros(10, np.float32))  # the job can continue
node.stop()
