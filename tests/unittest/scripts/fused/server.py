"""A server with an optimizer that depends on the key."""

from hipress.runtime.node import Node


def sgd(key, name, gradient, weight):
    weight -= (key + 1) * gradient


node = Node()
if node.role == "server":
    node.set_updater(sgd)
node.serve()
