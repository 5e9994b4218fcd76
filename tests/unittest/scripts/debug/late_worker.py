"""Pushes three keys; worker LATE omits two of them and sleeps."""

import os
import time

import numpy as np

from hipress.runtime.node import HipressError, Node

node = Node()
node.set_gradient_compression({"type": "tbq", "threshold": 0.5, "min_size": 0})
names = [f"layer{k}.weight" for k in range(3)]
for key, name in enumerate(names):
    node.init_array(key, np.zeros(100_000, np.float32), name)
gradient = np.ones(100_000, np.float32)
for _ in range(2):
    for key in range(3):
        node.pushpull(key, gradient.copy()).wait(30)
late = node.rank == int(os.environ["LATE"])
if late:
    node.pushpull(0, gradient.copy())  # and none of the other keys
print("ready", flush=True)
if late:
    time.sleep(200)
try:
    for pending in [node.pushpull(key, gradient.copy()) for key in range(3)]:
        pending.wait(100)
except HipressError as error:
    print(f"failed: {error}", flush=True)
    time.sleep(1.0)
    node.abort()
