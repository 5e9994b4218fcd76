"""Forks while gradients travel."""

import os

import mxnet as mx

kv = mx.kv.create("dist_sync")
values = [mx.nd.ones(300_000) for _ in range(20)]
kv.set_gradient_compression({"type": "onebit"})
kv.init(list(range(20)), values)
for _step in range(5):
    kv.push(list(range(20)), values)
    kv.pull(list(range(20)), out=values)
    if not (child := os.fork()):
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
mx.nd.waitall()
kv.barrier()
