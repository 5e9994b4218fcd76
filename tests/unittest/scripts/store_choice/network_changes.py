"""The network becomes slow at step 30 and fast for others at 60; argument: a file to explain in."""

import os
import sys

import numpy as np

from common import FAST, SLOW, bits, make, show, train
from hipress.autotune import journal
from known_times import measure_store

os.environ["HIPRESS_EXPLAIN"] = sys.argv[1]
journal.EVERY = 20
now = dict(FAST)
lines = measure_store(lambda method_name: now.get(method_name, 5 * max(now.values())))
node = make()


def change(step):
    if step == 30:
        now.clear()
        now.update({**SLOW, "uncompressed": 50.0, "maxminef bits=2": 1.0})
    if step == 60:
        now.clear()
        now.update({"uncompressed": 30.0, "maxminef bits=2": 50.0})


method_names, got, wanted = train(node, 90, change)
show(
    method_names=method_names,
    lines=lines,
    bits=bits(got),
    said=str(node.explain()),
    exact=[float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(got, wanted)],
)
