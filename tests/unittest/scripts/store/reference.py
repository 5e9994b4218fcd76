"""Compares the codec that is the argument, as JSON, with the NumPy reference."""

import json
import sys

import numpy as np

from common import finish, gradient, node, rank, workers
from graph_reference import Reference, compression
from hipress.topology.graph import worker

params = json.loads(sys.argv[1])

n = 10_000
graph = node.init_array(0, np.zeros(n, np.float32))
node.set_gradient_compression({**params, "min_size": 0})

reference = Reference(graph, compression(**params))
for iteration in range(5):
    out = np.zeros(n, np.float32)
    node.pushpull(0, gradient(n, iteration, rank), out).wait(20)
    expected = reference.step({worker(r): gradient(n, iteration, r) for r in range(workers)})
    np.testing.assert_array_equal(out, expected[worker(rank)])
finish()
