"""Worker 1 leaves; all others create a key before ('before') or after that."""

import sys
import time

import numpy as np

from hipress.runtime.node import HipressError, Node

late = int(sys.argv[1])
node = Node()
node.init_array(0, np.zeros(60_000, np.float32), "weight")  # links all
if node.rank == 1:
    time.sleep(2 - late)
else:
    time.sleep(late)
    began = time.monotonic()
    try:
        node.init_array(1, np.zeros(10, np.float32), "bias")
    except HipressError as error:
        print("error:", error, "after", int(time.monotonic() - began))
node.stop()
