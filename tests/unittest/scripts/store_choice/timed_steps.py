"""Steps whose results no one awaits are timed; they become slower at step 40."""

import time

import numpy as np

from common import bits, make, show, train
from known_times import measure_store

lines = measure_store(
    lambda method_name: {"maxmin bits=8": 1.0}.get(method_name, 9.0), watched=False
)


def slower(step):  # steps are long, so that other load does not count
    time.sleep(0.02 if step < 40 else 0.3)


node = make(sees=False)
method_names, got, wanted = train(node, 75, slower)
_, last, exact = train(node, 1)
show(
    method_names=method_names,
    lines=lines,
    bits=bits(got),
    off=float(np.abs(last[0] - exact[0]).max()),
)
