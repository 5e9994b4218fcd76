"""One worker of a store without servers: prints its peers' traffic as JSON."""

import json

import numpy as np

from hipress.runtime.node import Node

node = Node()
size = 1 << 20
node.init_array(0, np.zeros(size, np.float32))
total = np.zeros(size, np.float32)
for _ in range(3):
    node.pushpull(0, np.full(size, node.rank + 1, np.float32), total).wait(30)
print(json.dumps({"total": float(total.max()), **node.stats()}))
node.leave()
