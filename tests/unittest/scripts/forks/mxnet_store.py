"""Worker 1 forks after an operation of MXNet's store."""

import mxnet as mx

import mxnet_hipress  # noqa: F401  # registers its stores
from common import fork_all, go_on

kv = mx.kv.create("dist_sync_hipress")
out = mx.nd.zeros(4)
kv.init(0, out)
kv.pushpull(0, mx.nd.ones(4), out=out)
if kv.rank == 1:
    fork_all()
    go_on.touch()
print("result", out.asnumpy()[0], flush=True)
