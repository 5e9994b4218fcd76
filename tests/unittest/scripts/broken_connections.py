"""Trains STEPS steps on a node and prints a digest of all sums."""

import hashlib
import os
import time

import numpy as np

from hipress.runtime.node import Node

with Node() as node:
    size, digest = 300_000, hashlib.sha256()
    dice = np.random.default_rng(node.rank)
    node.init_array(0, np.zeros(size, np.float32))
    node.set_gradient_compression({"type": "onebit"})
    out = np.zeros(size, np.float32)
    node.barrier()
    print("running", flush=True)
    for _step in range(int(os.environ["STEPS"])):
        node.pushpull(0, dice.standard_normal(size, np.float32), out).wait(120)
        digest.update(out.tobytes())
        time.sleep(0.03)
    node.barrier()
    print("resumed", node.stats()["resumed_connections"])
    print("digest", digest.hexdigest(), flush=True)
