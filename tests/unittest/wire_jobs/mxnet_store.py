"""Trains one weight in MXNet's kvstore, whose optimizer runs on the servers."""

import mxnet as mx

import mxnet_hipress  # noqa: F401
from wire_jobs import VALUE
from wire_jobs.pause import pause

store = mx.kv.create("dist_sync_hipress")
gradient = mx.nd.full((4096,), VALUE)
store.init("weight", mx.nd.zeros_like(gradient))
store.set_optimizer(mx.optimizer.SGD(learning_rate=0.0))
out = mx.nd.zeros_like(gradient)
for _ in range(3):
    store.pushpull("weight", gradient, out=out)
    out.wait_to_read()
pause()
