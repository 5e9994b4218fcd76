"""Servers get an optimizer before the first gradient; the plan is made again."""

import numpy as np

from common import node
from hipress.autotune import plan_controller as auto_plan

real, decided = auto_plan.PlanController._decide, []
auto_plan.PlanController._decide = lambda self: decided.append(real(self))
node.set_gradient_compression({"type": "tbq", "threshold": 0.5, "plan": "auto"})
node.init_array(0, np.zeros(1000, np.float32))
assert len(decided) == 1
if node.rank == 1:  # a worker may do so for all
    for server in range(node.num_servers):
        node.command(server, 0, b"")
    node.auto.values_change()
out = np.empty(1000, np.float32)
for step in range(1, 4):
    node.pushpull(0, np.ones(1000, np.float32), out).wait(30)
    assert (out == -node.num_workers * step).all(), out
    assert len(decided) == 2
node.barrier()
node.stop()
