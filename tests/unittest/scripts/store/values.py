"""Exchanges arrays of many sizes without compression."""

import numpy as np

from common import finish, gradient, gradients, in_rank_order, node, rank

sizes = [1, 7, 64, 1000, 4097, 300_001]
for key, n in enumerate(sizes):
    node.init_array(key, np.full(n, 10.0 * key + rank, np.float32))
for key, n in enumerate(sizes):
    out = np.zeros(n, np.float32)
    node.pull(key, out).wait(20)
    assert (out == 10.0 * key).all(), "rank 0's initial value"
for iteration in range(3):
    for key, n in enumerate(sizes):
        out = np.zeros(n, np.float32)
        node.push(key, gradient(n, iteration, rank)).wait(20)
        for _ in range(2):  # the second pull has no push before it
            node.pull(key, out).wait(20)
            np.testing.assert_array_equal(out, in_rank_order(gradients(n, iteration)))
# Many pushes without a pull; then in place.
for iteration in range(20):
    node.push(5, gradient(sizes[5], iteration, rank))
node.wait_all()
node.pull(5, out).wait(20)
np.testing.assert_array_equal(out, in_rank_order(gradients(sizes[5], 19)))
x = gradient(sizes[5], 99, rank)
node.pushpull(5, x).wait(20)
np.testing.assert_array_equal(x, in_rank_order(gradients(sizes[5], 99)))
finish()
