"""Loads and saves residuals in the file that is the argument; the second job chooses otherwise."""

import os
import sys

from common import make, show, train
from hipress.runtime import states
from known_times import measure_store

path = sys.argv[1]
first = not os.path.exists(path + ".worker-0")
measure_store(
    lambda method_name: (
        1.0 if method_name == ("maxminef bits=2" if first else "uncompressed") else 9.0
    )
)
node = make()
if not first:
    states.load(node, states.read(node, path), 0, 2)
method_names, got, wanted = train(node, 5)
node.barrier()
states.save(node, path, 0, 2)
show(method_names=method_names, off=[(a - b).tolist() for a, b in zip(got, wanted)][0])
