"""Makes groups that are refused."""

import numpy as np

from common import node
from hipress.runtime.node import HipressError

for key in range(3):
    node.init_array(key, np.zeros(8, np.float32))
x = [np.ones(8, np.float32) for _ in range(3)]


def refused(sentence, make):
    try:
        make()
    except HipressError as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"not refused: {sentence}")


refused("one gradient, output and priority for each key", lambda: node.group([0, 1], x))
refused("each key once", lambda: node.group([0, 1, 1], x))
refused("same size and dtype", lambda: node.group([0], [x[0]], [np.zeros(9, np.float32)]))
refused("float32 or float16", lambda: node.group([0], [np.zeros(8)]))
refused("it has not been initialized", lambda: node.group([0, 1, 5], x).pushpull())
wrong = [x[0], x[1], np.zeros(9, np.float32)]
refused("it was initialized with 8 float32", lambda: node.group([0, 1, 2], wrong).pushpull())
node.group([], []).pushpull().wait(5)
node.group([0, 1, 2], x).pushpull().wait(20)
assert all((a == 2).all() for a in x), x  # what was refused had pushed nothing before
node.barrier()
node.stop()
