"""Trains asynchronously with the optimizer on servers."""

import numpy as np

from common import finish, node, rank, workers

n = 3000
node.set_sync(False)
node.init_array(0, np.full(n, 8, np.float32))
node.init_array(1, np.zeros(10, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        node.command(server, 0, b"sgd")
node.barrier()
out = np.zeros(n, np.float32)
for iteration in range(10 + rank):  # workers need not push equally often
    node.push(0, np.full(n, 1, np.float32)).wait(20)
    node.pull(0, out).wait(20)
    assert out.max() <= 8 - 0.5 * (iteration + 1), "a worker sees its own pushes"
node.barrier()
node.pull(0, out).wait(20)
np.testing.assert_array_equal(out, np.full(n, 8 - 0.5 * sum(10 + r for r in range(workers))))
finish()
