"""Trains with the optimizer on servers."""

import numpy as np

from common import finish, node, rank, workers

n = 3000
node.init_array(0, np.full(n, 1, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        assert node.command(server, 0, b"sgd") == b"set by 0"
node.barrier()
weight = np.full(n, 1, np.float32)
out = np.zeros(n, np.float32)
for params in ({"type": "none"}, {"type": "2bit", "threshold": 0.5, "min_size": 0}):
    node.set_gradient_compression(params)
    for _iteration in range(5):
        node.push(0, np.full(n, 0.5, np.float32)).wait(20)
        weight -= np.float32(0.5) * np.float32(0.5 * workers)
        node.pull(0, out).wait(20)
        np.testing.assert_array_equal(out, weight)
        node.pull(0, out).wait(20)
        np.testing.assert_array_equal(out, weight)
finish()
