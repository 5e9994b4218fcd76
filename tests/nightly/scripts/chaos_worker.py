"""Trains with the settings in CHAOS, as JSON."""

import json
import os
import time

import numpy as np

from hipress.runtime.node import HipressError, Node

node = None
try:
    node = Node()
    settings = json.loads(os.environ["CHAOS"])
    node.set_gradient_compression(settings["compression"])
    keys = {}
    for key, size in enumerate(settings["sizes"]):
        keys[key] = np.ones(size, np.float32), np.zeros(size, np.float32)
        node.init_array(key, np.zeros(size, np.float32))
    print("running", flush=True)
    for step in range(settings["steps"]):
        waiting = [node.pushpull(key, *arrays) for key, arrays in keys.items()]
        for each in waiting:
            each.wait(30)
        if settings["nap"]:
            time.sleep(settings["nap"])
            print("step", step, flush=True)
        exact = settings["compression"]["type"] in ("none", "fp16")
        if exact and not os.environ["CHAOS_OPTIMIZER"]:
            for _gradient, total in keys.values():
                assert (total == node.num_workers).all(), total
    node.stop()
    print("done", flush=True)
except HipressError as error:
    print("failed:", error, flush=True)
    if node:
        node.abort()
