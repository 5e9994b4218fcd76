"""Leaves while pushes are in progress that no worker has pulled."""

import time

import numpy as np

from common import node, rank

n, keys, pushes = 1 << 18, 12, 6
node.set_sync(False)
for key in range(keys):
    node.init_array(key, np.zeros(n, np.float32))
if rank == 0:
    for server in range(node.num_servers):
        node.command(server, 0, b"sgd")
node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "min_size": 0})
node.barrier()
if rank == 1:
    gradient = np.full(n, 0.5, np.float32)
    for _iteration in range(pushes):
        for key in range(keys):
            node.push(key, gradient)
    node.wait_all()
else:
    out = np.zeros(n, np.float32)
    until = time.monotonic() + 10
    for key in range(keys):
        while time.monotonic() < until and out.min() > -0.25 * pushes or out.max() == 0:
            node.pull(key, out).wait(20)
        np.testing.assert_array_equal(out, np.full(n, -0.25 * pushes, np.float32))
        out[:] = 0
node.stop()
print("finished")
raise SystemExit  # without a barrier
