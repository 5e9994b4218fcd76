"""Sets another optimizer after a push, which the first one still handles."""

import time

import mxnet as mx

kv = mx.kv.create("dist_sync")
kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
out = mx.nd.zeros(50)
kv.init(3, out)
if kv.rank == 1:
    time.sleep(2)
kv.push(3, mx.nd.ones(50))
kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.0))
kv.push(3, mx.nd.ones(50))
kv.pull(3, out=out)
assert out.asnumpy()[0] == -2, out
