"""Worker 0 makes one step of MXNet's store less than worker 1, which waits for it."""

import mxnet as mx

import mxnet_hipress  # noqa: F401  # registers its stores
from common import await_failure, interrupt

kv = mx.kv.create("dist_sync_hipress")
weight = mx.nd.zeros(200)
kv.init(0, weight)


def step():
    kv.pushpull(0, mx.nd.ones(200), out=weight)
    weight.wait_to_read()


step()
if kv.rank == 0:
    await_failure(kv._node.failure)
else:
    interrupt(step)
