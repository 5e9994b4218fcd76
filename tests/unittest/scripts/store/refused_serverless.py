"""Makes calls that a job without servers refuses."""

import numpy as np

from common import leave, node, rank, workers
from hipress.runtime.node import HipressError


def refused(call, *words):
    try:
        call()
    except HipressError as error:
        assert all(word in str(error) for word in words), error
        assert "\n" not in str(error)
    else:
        raise AssertionError(f"accepted what should say {words}")


assert node.topology == "colocated" and node.serverless
refused(lambda: node.set_gradient_compression({"topology": "ps"}), "ps needs servers", "-s")
refused(lambda: node.set_gradient_compression({"topology": "mesh"}), "mesh", "ring", "butterfly")
refused(lambda: node.set_sync(False), "asynchronous training needs servers")
refused(lambda: node.set_gradient_compression({"topology": "hierarchical"}), "devices_per_host")
refused(lambda: node.set_gradient_compression({"plan": "/no/such.txt"}), "/no/such.txt")
refused(
    lambda: node.init_array(9, np.zeros(10 + rank, np.float32)),
    "initialized by worker 0 with 10 float32 elements, but by worker 1 with 11",
)
node.set_gradient_compression({"topology": "Ring", "type": "onebit"})
assert node.topology == "ring"
node.init_array(0, np.zeros(5, np.float32))
refused(lambda: node.init_array(0, np.zeros(5, np.float32)), "already initialized")
refused(lambda: node.set_gradient_compression({"topology": "tree"}), "before the first key", "ring")
node.set_gradient_compression({"topology": "ring", "type": "2bit"})
refused(lambda: node.command(0, 1, b""), "there is no server 0")
x = np.ones(5, np.float32)
node.pushpull(0, x).wait(20)
assert (x == workers).all()
leave()
