"""Exchanges arrays of many sizes without compression and without servers."""

import numpy as np

from common import gradient, gradients, leave, node, rank
from hipress.runtime.node import HipressError

sizes = [1, 7, 64, 1000, 4097, 300_001]
for key, n in enumerate(sizes):
    node.init_array(key, np.full(n, 10.0 * key + rank, np.float32))
for key, n in enumerate(sizes):
    out = np.zeros(n, np.float32)
    node.pull(key, out).wait(20)
    assert (out == 10.0 * key).all(), "worker 0's initial value"
for iteration in range(3):
    for key, n in enumerate(sizes):
        out = np.zeros(n, np.float32)
        node.push(key, gradient(n, iteration, rank)).wait(20)
        for _ in range(2):  # the second pull has no push before it
            out[:] = 0
            node.pull(key, out).wait(20)
            np.testing.assert_allclose(out, sum(gradients(n, iteration)), atol=1e-5)
# Many pushes without a pull; then in place; then a pull of what pushpull has not kept.
for iteration in range(20):
    node.push(5, gradient(sizes[5], iteration, rank))
node.wait_all()
node.pull(5, out).wait(20)
np.testing.assert_allclose(out, sum(gradients(sizes[5], 19)), atol=1e-5)
x = gradient(sizes[5], 99, rank)
node.pushpull(5, x).wait(20)
np.testing.assert_allclose(x, sum(gradients(sizes[5], 99)), atol=1e-5)
try:
    node.pull(5, out).wait(20)
except HipressError as error:
    assert "is not kept: to pull it again, push and pull instead" in str(error), error
else:
    raise AssertionError("a pull after pushpull")
node.set_gradient_compression({"type": "2bit"})
node.pushpull(5, x).wait(20)
node.pull(5, out).wait(20)  # a payload is kept in any case
np.testing.assert_array_equal(out, x)
leave()
