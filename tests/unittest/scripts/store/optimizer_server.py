"""A server with SGD as its optimizer. Argument 'hang': large gradients take 10 s."""

import sys
import time

import numpy as np

from hipress.runtime.node import Node


def sgd(key, name, gradient, weight):
    if hangs and gradient[0] > 100:
        time.sleep(10)
    weight -= np.float32(0.5) * gradient


def controller(worker, head, body):
    node.set_updater(sgd if body == b"sgd" else None)
    return b"set by " + str(worker).encode()


hangs = sys.argv[1:] == ["hang"]
node = Node()
node.serve(controller)
