"""Worker 1 ends without a goodbye. Worker 0 prints the numbers of the error of a later push."""

import os

import mxnet as mx

import mxnet_hipress  # noqa: F401

kv = mx.kv.create("dist_sync_hipress")
out = mx.nd.zeros(10)
kv.init(0, out)
kv.barrier()
if kv.rank == 1:
    os._exit(7)
try:
    kv.push(0, out)
    kv.pull(0, out)
    out.wait_to_read()
except mx.MXNetError:
    pass
try:
    kv.push(0, out)
except mx.MXNetError as error:
    print("later:", error.code.name, error.cause.name, error.role, error.rank)
