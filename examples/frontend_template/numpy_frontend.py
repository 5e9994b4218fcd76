"""A front end for NumPy: the template of one for another framework.

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
    """Averages gradients over the workers of the job that the environment describes.

    :param weights: the parameters by name, float32; all workers get rank 0's values, in place
    :param compression: a type, or a mapping of a type and its parameters
    :raises HipressError: in one sentence, if somebody is missing or the workers disagree
    """

    def __init__(
        self, weights: Mapping[str, np.ndarray], compression: str | Mapping[str, object] = "none"
    ) -> None:
        params = {"type": compression} if isinstance(compression, str) else dict(compression)
        self.node = Node()  # joins the job; the process leaves it when it ends
        self.node.set_gradient_compression(params)
        self._keys = {name: key for key, name in enumerate(weights)}
        # What a key holds at first is worker 0's, and all pull it: so weights begin alike.
        for name, key in self._keys.items():
            self.node.init_array(key, weights[name], name)
            self.node.pull(key, weights[name]).wait()
        self._group, self._addresses = None, None

    def average(self, gradients: Mapping[str, np.ndarray]) -> None:
        """Replace gradients by their means over all workers; all workers call it equally often."""
        arrays = [gradients[name] for name in self._keys]
        addresses = [array.ctypes.data for array in arrays]
        if addresses != self._addresses:  # a group looks at its arrays once, and is used again
            self._group = self.node.group(list(self._keys.values()), arrays)
            self._addresses = addresses
        self._group.pushpull().wait()
        for array in arrays:
            array /= self.node.num_workers
