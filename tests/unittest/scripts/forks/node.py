"""Worker 1 forks with an operation of a node in progress."""

import numpy as np

import forked_children
from common import await_worker_1, fork_all, go_on
from hipress.runtime.node import Node

with Node() as node:
    node.init_array(0, np.zeros(4, np.float32))
    out = np.zeros(4, np.float32)
    if node.rank == 0:
        await_worker_1()
    pending = node.pushpull(0, np.ones(4, np.float32), out)
    if node.rank == 1:
        fork_all()
        for name in ("left", "num_dead_node", "debug"):
            forked_children.call(name, getattr(node, name))
        forked_children.call("fail", lambda: node.fail_job("of the child"))
        go_on.touch()
    pending.wait(30)
    print("result", out[0], flush=True)
