"""CaSync: gradient synchronization as a task graph.

:mod:`.topologies` builds the :class:`~hipress.topology.graph.Graph` of one gradient for any
topology (one file per topology). :mod:`.check` proves that a graph is correct, :mod:`.reference`
runs it in NumPy, and :mod:`.program` flattens each node's part for the native executor. Only the
last two import NumPy, so that the launcher can list topologies without it.
"""

from hipress.topology.graph import Graph, Node, Op, Partition, Role, Task
from hipress.topology.topologies import TOPOLOGIES, build

__all__ = ["TOPOLOGIES", "Graph", "Node", "Op", "Partition", "Role", "Task", "build"]
