"""Front end for NumPy, as a template for other frameworks.

A front end turns a framework's gradients into keys of a :class:`hipress.runtime.node.Node`. This
one sums them over all workers after the backward pass. Import it first: in a server or scheduler of
a job the import serves until the job ends.

>>> import numpy_frontend as hvd
>>> averager = hvd.Averager({"weight": weight}, "onebit")
>>> averager.average({"weight": gradient})       # in place, the same bits on all workers
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

import numpy as np

from hipress.runtime.node import HipressError, Node

if os.environ.get("DMLC_ROLE") in ("server", "scheduler"):
    try:
        with Node() as _node:
            _node.serve()
    except HipressError as error:
        sys.exit(f"hipress {os.environ['DMLC_ROLE']}: {error}")
    sys.exit(0)


class Averager:
    """Average of gradients over the workers of the job that the environment describes.

    Args:
        weights: Parameters by name, float32. All workers get rank 0's values, in place.
        compression: A type, or a mapping of a type and its parameters.

    Raises:
        HipressError: If a worker is missing or the workers disagree.
    """

    def __init__(
        self, weights: Mapping[str, np.ndarray], compression: str | Mapping[str, object] = "none"
    ) -> None:
        params = {"type": compression} if isinstance(compression, str) else dict(compression)
        self.node = Node()  # joins the job, which the process leaves at its end
        self.node.set_gradient_compression(params)
        self._keys = {name: key for key, name in enumerate(weights)}
        # A key's first value is worker 0's, and all workers pull it. Weights are therefore equal.
        for name, key in self._keys.items():
            self.node.init_array(key, weights[name], name)
            self.node.pull(key, weights[name]).wait()
        self._group, self._addresses = None, None

    def average(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Replace gradients by their means over all workers, which call it equally often."""
        arrays = [gradients[name] for name in self._keys]
        addresses = [array.ctypes.data for array in arrays]
        if addresses != self._addresses:  # a group checks its arrays once, and is then reused
            self._group = self.node.group(list(self._keys.values()), arrays)
            self._addresses = addresses
        self._group.pushpull().wait()
        for array in arrays:
            array /= self.node.num_workers
