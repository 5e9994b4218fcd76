"""Prints whether arguments of processes or a dump show the secret."""

import pathlib

import numpy as np

from hipress.runtime.node import Node

node = Node()
lines = []
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        lines.append(path.read_bytes())
    except OSError:
        pass  # that process has ended
assert lines
print("arguments show it:", any(b"that-can-be-found-" + b"again" in line for line in lines))
node.init_array(0, np.ones(4, np.float32))
dump = str(node.debug())
print("dump shows it:", "that-can-be-found-" + "again" in dump, "of", len(dump))
raise RuntimeError("so that all say something")
