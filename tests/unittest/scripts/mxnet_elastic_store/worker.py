"""Trains with the store; the first process of slot 2 dies.

Ends when its second process has taken part for 8 steps; that one would continue for longer.
"""

import json
import os
import signal
import time

import mxnet as mx
import numpy as np

kv = mx.kv.create("dist_sync")
first = os.environ["HIPRESS_ELASTIC_RESTART"] == "0"
optimizer = mx.optimizer.SGD(momentum=0.9, rescale_grad=1 / kv.num_workers)
kv.set_optimizer(optimizer)
keys = ["a", "b", "not pushed"]
kv.init(keys, [mx.nd.full((5, 8), kv.rank + at) for at in range(3)])
out = [mx.nd.zeros((5, 8)) for key in keys]
kv.pull(keys, out=out)
together = 0
for step in range(1 << 30):
    optimizer.set_learning_rate(0.1 / (1 + step // 4))  # a worker's own, after a restart
    gradient = np.random.RandomState(1000 * kv.rank + step).randn(5, 8)
    kv.push("a", mx.nd.array(gradient))
    if kv.rank == 2 and first and step == 9:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    kv.push("b", [mx.nd.array(gradient), mx.nd.array(-2 * gradient)])  # of two devices
    kv.pull(keys, out=out)
    print(
        json.dumps(
            {
                **kv.stats(),
                "step": step,
                "a": out[0].asnumpy().tolist(),
                "b": out[1].asnumpy().tolist(),
            }
        ),
        flush=True,
    )
    together += kv.stats()["workers"] == 3 and kv.stats()["epoch"] > 2
    if together == (8 if first else 12):
        break
    time.sleep(0.02)
kv.barrier()
print("done", kv.num_dead_node(), flush=True)
