"""Another model in the same job; argument: whether the node sees results."""

import sys

import numpy as np

from common import gradients, make, show, sizes, train
from known_times import measure_store

sees = sys.argv[1] == "True"
known = {"maxminef bits=2": 1.0, "maxmin bits=8": 2.0}
lines = measure_store(lambda method_name: known.get(method_name, 9.0), watched=sees)
node = make(sees=sees)
method_names, _, _ = train(node, 6)
node.allows_feedback = lambda: False
for key in range(3, 6):
    node.init_array(key, np.zeros(sizes[key - 3], np.float32), f"h{key}")
for step in range(6):
    mine = gradients(node.rank, step)
    group = node.group(range(3, 6), mine)
    group.pushpull().wait()
    node.observe_results(group.keys, mine, 0.0)
    method_names.append(node.auto.controller.method.name)
node.set_gradient_compression({"type": "none"})
node.set_gradient_compression({"type": "auto"})
again, _, _ = train(node, 3)
show(method_names=method_names + again, lines=lines)
