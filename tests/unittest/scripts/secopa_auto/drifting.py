"""The link becomes fast at step 7; argument: the topology."""

import sys

import numpy as np

from common import link, node
from hipress.autotune import plan_controller as auto_plan

auto_plan.FIRST_CHECK_STEPS = auto_plan.MAX_CHECK_STEPS = 4
node.set_gradient_compression(
    {"type": "tbq", "threshold": 0.5, "plan": "auto", "topology": sys.argv[1]}
)
N = 100_000
for key in range(2):
    node.init_array(key, np.zeros(N, np.float32))
random = np.random.default_rng(7)  # the same numbers on all workers; multiples of 1/64
gradients = [random.integers(-64, 65, N).astype(np.float32) / 64 for _ in range(2)]
totals = [np.zeros(N), np.zeros(N)]
kinds = []
for step in range(20):
    if step == 7:
        link["bytes_per_second"] = 1e12
    out = [np.empty(N, np.float32) for _ in gradients]
    before = node.stats()["pushed_bytes"]
    pending = [node.pushpull(k, gradients[k], out[k], priority=-k) for k in range(2)]
    for operation in pending:
        operation.wait(30)
    node.wait_all()
    for k in range(2):
        totals[k] += out[k]
    kinds.append(node.auto.chosen.type)
# Everything that was left out while gradients were compressed has come with the later ones.
for k in range(2):
    assert (totals[k] == 20 * node.num_workers * gradients[k].astype(np.float64)).all(), k
print("kinds", kinds)
node.stop()
