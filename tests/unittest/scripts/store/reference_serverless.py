"""Compares each codec with the NumPy reference, without servers."""

import numpy as np

from common import gradients, leave, node, rank
from graph_reference import Reference, compression
from hipress.topology.graph import worker

node_keys = []

n = 9_000
sizes = {0: n, 1: 700}
for type, params in (
    ("none", {}),
    ("2bit", {"threshold": 0.75}),
    ("1bit", {}),
    ("onebit", {}),
    ("topk", {}),
    ("tbq", {}),
    ("dgc", {"ratio": 0.05}),
):
    keys = {}
    for size in sizes.values():
        key = len(node_keys)
        node_keys.append(key)
        keys[key] = node.init_array(key, np.full(size, rank, np.float32))
    node.set_gradient_compression({"type": type, **params, "min_size": 0})
    references = {key: Reference(graph, compression(type, **params)) for key, graph in keys.items()}
    for iteration in range(4):
        given = {key: gradients(graph.n, iteration, key) for key, graph in keys.items()}
        outs = {key: np.zeros(graph.n, np.float32) for key, graph in keys.items()}
        waits = [node.pushpull(key, given[key][rank], outs[key]) for key in keys]
        for wait in waits:
            wait.wait(30)
        for key, reference in references.items():
            expected = reference.step({worker(r): g for r, g in enumerate(given[key])})
            np.testing.assert_array_equal(outs[key], expected[worker(rank)], err_msg=type)
leave()
