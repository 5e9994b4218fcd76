"""Pushes a group until a worker fails, and prints the error."""

import numpy as np

from common import node
from hipress.runtime.node import HipressError

for key in range(50):
    node.init_array(key, np.zeros(16, np.float32))
group = node.group(range(50), [np.ones(16, np.float32) for _ in range(50)])
print("running", flush=True)
try:
    while True:
        group.pushpull().wait(30)
except HipressError as error:
    print("failed:", error, flush=True)
    node.abort()
