"""A scheduler or server, which adds gradients if CHAOS_OPTIMIZER is set."""

import os

from hipress.runtime.node import Node

node = Node()
if node.role == "server" and os.environ["CHAOS_OPTIMIZER"]:
    node.set_updater(lambda key, name, gradient, weight: weight.__iadd__(gradient))
node.serve()
