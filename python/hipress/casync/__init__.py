"""CaSync: gradient synchronisation as a task graph.

:mod:`hipress.casync.topologies` builds, for any topology, a
:class:`~hipress.casync.graph.Graph` for one gradient (one file per topology);
:mod:`hipress.casync.check` proves it right; :mod:`hipress.casync.reference` runs it in NumPy; and
:mod:`hipress.casync.program` flattens each node's part for the native executor. Only those two need
NumPy, so that the launcher can ask for topologies without it.
"""

from hipress.casync.graph import Graph, Node, Op, Partition, Role, Task
from hipress.casync.topologies import TOPOLOGIES, build

__all__ = ["TOPOLOGIES", "Graph", "Node", "Op", "Partition", "Role", "Task", "build"]
