"""CaSync: gradient synchronisation as a task graph.

A topology (:mod:`hipress.casync.ps`) builds a :class:`~hipress.casync.graph.Graph` for one
gradient; :mod:`hipress.casync.check` proves it right; :mod:`hipress.casync.reference` runs it in
NumPy; and :mod:`hipress.casync.program` flattens each node's part for the native executor.
"""

from hipress.casync import ps
from hipress.casync.graph import Graph, Node, Op, Partition, Role, Task
from hipress.casync.program import flatten

__all__ = ["Graph", "Node", "Op", "Partition", "Role", "Task", "flatten", "ps"]
