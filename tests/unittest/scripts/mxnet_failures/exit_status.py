"""Pushes and ends by sys.exit(3) ('exit') or SystemExit(3) ('raise')."""

import sys

import mxnet as mx

kv = mx.kv.create("dist_sync")
out = mx.nd.zeros(10)
kv.init(0, out)
if kv.rank == 1:
    if sys.argv[1] == "exit":
        sys.exit(3)
    raise SystemExit(3)
kv.pushpull(0, out)
out.wait_to_read()
