"""Compares a job of topology `end` with the NumPy reference."""

import numpy as np

from graph_reference import Reference, compression
from hipress.runtime.node import Node
from hipress.topology.graph import worker

node = Node()
if node.role != "worker":
    node.serve()
    raise SystemExit
assert node.topology == "end" and node.serverless
node.set_gradient_compression({"type": "onebit", "topology": "End"})
n, workers = 40_000, node.num_workers
graph = node.init_array(0, np.zeros(n, np.float32))
assert {task.peer for task in graph.tasks[worker(0)] if task.peer} == {worker(workers - 1)}
reference = Reference(graph, compression("onebit"))
for step in range(3):
    given = [
        np.random.default_rng([step, w]).standard_normal(n).astype(np.float32)
        for w in range(workers)
    ]
    out = np.zeros(n, np.float32)
    node.pushpull(0, given[node.rank], out).wait(20)
    expected = reference.step({worker(w): g for w, g in enumerate(given)})
    np.testing.assert_array_equal(out, expected[worker(0)])
print("equal")
node.stop()
