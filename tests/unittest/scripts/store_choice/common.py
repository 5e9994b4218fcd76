"""A node of type auto, its training and what is compared: methods, bits and log lines."""

import hashlib
import json

import numpy as np

from hipress.runtime.node import Node

SLOW = {"uncompressed": 8.0, "bf16": 4.0, "maxmin bits=8": 2.0}
FAST = {"uncompressed": 1.0, "bf16": 1.0, "maxmin bits=8": 1.2}
sizes, shapes = [40_000, 12_000, 300], [(200, 200), (12_000, 1), (300,)]


def make(config=None, sees=True, feedback=True):
    node = Node()
    node.compares_results = sees
    node.allows_feedback = lambda: feedback
    node.set_gradient_compression({"type": "auto", **(config or {})})
    for key, (size, shape) in enumerate(zip(sizes, shapes)):
        compress = node.compresses_shape(shape)
        node.init_array(key, np.zeros(size, np.float32), f"g{key}", compress)
    return node


def gradients(rank, step):
    random = np.random.default_rng([rank, step])
    return [random.standard_normal(size, dtype=np.float32) for size in sizes]


def train(node, steps, before=lambda step: None, each=gradients):
    """Train; return the methods of all steps, the sums of all results, and the expected sums."""
    method_names, got, wanted = [], [0.0] * 3, [0.0] * 3
    for step in range(steps):
        before(step)
        mine = each(node.rank, step)
        group = node.group(range(3), mine)
        group.pushpull().wait()
        node.observe_results(group.keys, mine, 0.0)
        method_names.append(node.auto.controller.method.name if node.auto.controller else "")
        for i in range(3):
            got[i] = got[i] + mine[i]
            wanted[i] = wanted[i] + sum(each(r, step)[i] for r in range(node.num_workers))
    return method_names, got, wanted


def show(**values):
    print("found", json.dumps(values), flush=True)


def bits(arrays):
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
