"""Changes codecs in mid-training; workers do so at different steps.

When compression has ended, the sum of all results equals the sum of all gradients.
"""

import numpy as np

from common import finish, gradient, gradients, node, rank

n = 5000
node.init_array(0, np.zeros(n, np.float32))
plan = {
    0: {"type": "2bit", "threshold": 1.5},
    5 + rank: {"type": "onebit"},
    10 + rank: {"type": "2bit", "threshold": 0.25},
    15 + rank: {"type": "none"},
}
received = np.zeros(n)
pushed = np.zeros(n)
for iteration in range(25):
    if iteration in plan:
        node.set_gradient_compression({**plan[iteration], "min_size": 0})
    out = np.zeros(n, np.float32)
    node.push(0, gradient(n, iteration, rank)).wait(20)
    node.pull(0, out).wait(20)
    received += out
    pushed += sum(gradients(n, iteration))
np.testing.assert_allclose(received, pushed, atol=1e-3)
finish()
