"""CaSync: gradient synchronization as a task graph.

What belongs here: which task follows which task, on which node. What does not: codecs, networks
and frameworks. The graph knows none of them.

There is one file for each topology. It fills a :class:`~hipress.topology.graph.Graph`, the only
description of that topology. These parts use it::

    ring.py, tree.py, ... --> Graph --+--> flat_program.py  one node's part, for the native engine
                                      +--> hipress.torch.executors.cuda   runs it on GPUs
                                      +--> hipress.simulator              times it
                                      +--> tests         prove it, and compute it in NumPy

Tests compare their results bit for bit. All workers end with the same bits: the node that
makes the final sum of a partition sends what it encoded, and decodes that itself.

:mod:`.topologies` lists all topologies, and :mod:`.topology` is what one of them can declare.
:mod:`.origins` finds out whose gradients a task's result contains. Only :mod:`.flat_program`
imports NumPy, so the launcher can list topologies without it.
"""

import warnings

from hipress.topology.graph import Graph, NodeId, Op, Partition, Role, Task
from hipress.topology.topologies import TOPOLOGIES, build

__all__ = ["TOPOLOGIES", "Graph", "NodeId", "Op", "Partition", "Role", "Task", "build"]


def __getattr__(name: str) -> object:
    if name == "Node":  # its old name
        message = "hipress.topology.Node is now hipress.topology.NodeId"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return NodeId
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
