"""Pushes keys as a group and one by one, and prints the bytes of each."""

import numpy as np

from common import gradient, node

node.set_gradient_compression({"type": "2bit", "min_size": 300})
sizes = [1, 7, 64, 250, 999, 1024, 1025, 5000, 40_000] * 8
count = len(sizes)  # a multiple of 6, so that both halves have the same homes and trees
for key in range(2 * count):
    node.init_array(key, np.zeros(sizes[key % count], np.float32))
gradients = [np.zeros(n, np.float32) for n in sizes]
together = [np.zeros(n, np.float32) for n in sizes]
separate = [np.zeros(n, np.float32) for n in sizes]
group = node.group(range(count), gradients, together, [-key for key in range(count)])
for iteration in range(4):
    for key, array in enumerate(gradients):
        array[:] = gradient(key, array.size, iteration)
    group.pushpull().wait(30)
    for key in range(count):
        node.pushpull(count + key, gradients[key], separate[key]).wait(30)
    for key in range(count):
        assert together[key].tobytes() == separate[key].tobytes(), (iteration, key, sizes[key])
        assert iteration < 2 or together[key].any(), key
counts = [node.stats()["messages_sent"]]
group.pushpull().wait(30)
counts.append(node.stats()["messages_sent"])
for key in range(count):
    node.pushpull(count + key, gradients[key], separate[key]).wait(30)
counts.append(node.stats()["messages_sent"])
assert node.stats()["refused_messages"] == 0
print("sent", counts[1] - counts[0], counts[2] - counts[1])
node.barrier()
node.stop()
