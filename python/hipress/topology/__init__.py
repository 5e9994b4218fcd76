"""CaSync: gradient synchronisation as a task graph.

:mod:`hipress.topology.topologies` builds, for any topology, a
:class:`~hipress.topology.graph.Graph` for one gradient (one file per topology);
:mod:`hipress.topology.check` proves it right; :mod:`hipress.topology.reference` runs it in NumPy; and
:mod:`hipress.topology.program` flattens each node's part for the native executor. Only those two need
NumPy, so that the launcher can ask for topologies without it.
"""

from hipress.topology.graph import Graph, Node, Op, Partition, Role, Task
from hipress.topology.topologies import TOPOLOGIES, build

__all__ = ["TOPOLOGIES", "Graph", "Node", "Op", "Partition", "Role", "Task", "build"]
