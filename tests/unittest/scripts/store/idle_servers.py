"""Trains by the ring topology in a job that also has servers."""

import numpy as np

from common import leave, node, workers

node.set_gradient_compression({"type": "2bit", "topology": "ring"})
node.init_array(0, np.zeros(5000, np.float32))
x = np.full(5000, 0.5, np.float32)
node.pushpull(0, x).wait(20)
assert (x == 0.5 * workers).all()
leave()
