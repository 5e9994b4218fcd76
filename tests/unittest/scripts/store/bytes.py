"""Counts the bytes that each codec sends."""

import numpy as np

from common import finish, gradient, node, rank

n = 1 << 20
node.init_array(0, np.zeros(n, np.float32))
for kind, bits in (("none", 32), ("2bit", 2), ("1bit", 1), ("onebit", 1)):
    node.set_gradient_compression({"type": kind})
    node.pushpull(0, gradient(n, 0, rank)).wait(20)
    node.barrier()
    before = node.stats()
    for iteration in range(4):
        node.pushpull(0, gradient(n, iteration, rank)).wait(20)
    node.barrier()
    after = node.stats()
    expected = 4 * n * bits // 8
    for direction in ("pushed", "pulled"):
        moved = after[direction + "_bytes"] - before[direction + "_bytes"]
        assert abs(moved / expected - 1) < 0.02, (kind, direction, moved, expected)
        assert after[direction + "_raw_bytes"] - before[direction + "_raw_bytes"] == 4 * n * 4
    # The transport counts the same, apart from barriers and heartbeats.
    assert after["data_bytes_sent"] - before["data_bytes_sent"] == (
        after["pushed_bytes"] - before["pushed_bytes"]
    )
print("checked")
finish()
