"""Worker 1 pushes the last of 40 keys late; results of all others arrive."""

import time

import numpy as np

from common import node, rank

keys = list(range(40))
for key in keys:
    node.init_array(key, np.zeros(10, np.float32))
ones = [np.ones(10, np.float32) for _ in keys]
outs = [np.zeros(10, np.float32) for _ in keys]
if rank == 0:
    everything = node.group(keys, ones, outs).pushpull()
    node.barrier()  # worker 1 has all its results, of which none needs key 39
    try:
        everything.wait(0.2)
        raise AssertionError("key 39 is over, though worker 1 has not pushed it")
    except TimeoutError:
        pass
    end = time.monotonic() + 20
    while not all((out == 2).all() for out in outs[:39]):
        assert time.monotonic() < end, "not all results but key 39's have come"
        time.sleep(0.01)
    node.barrier()
    everything.wait(20)
else:
    node.group(keys[:39], ones[:39], outs[:39]).pushpull().wait(20)
    node.barrier()
    node.barrier()
    node.pushpull(39, ones[39], outs[39]).wait(20)
assert all((out == 2).all() for out in outs)
node.barrier()
node.stop()
