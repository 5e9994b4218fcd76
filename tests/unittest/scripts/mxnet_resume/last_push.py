"""Saves optimizer states after a push that no worker pulls; argument: a folder."""

import pickle
import sys
import time

import mxnet as mx

kv = mx.kv.create("dist_sync")
kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5))
weight, table = mx.nd.zeros(50_000), mx.nd.zeros((40, 5)).tostype("row_sparse")
kv.init([3, 4], [weight, table])
for step in range(3):
    kv.pull(3, out=weight)
    weight.wait_to_read()
    if step == 2 and kv.rank == 1:
        time.sleep(1)
    kv.push(3, mx.nd.ones(50_000))
    kv.push(4, mx.nd.ones((40, 5)).tostype("row_sparse"))
path = f"{sys.argv[1]}/{kv.rank}"
kv.save_optimizer_states(path)
states = pickle.loads(pickle.load(open(path, "rb"))["states"][0])
assert states[3].asnumpy()[0] == -3.5, states[3]
assert states[4].asnumpy()[0, 0] == -3.5, states[4]
kv.barrier()
