"""Groups of keys that are pushed and pulled repeatedly in one call.

For small gradients, calls cost more time than all other work. A group therefore checks its arrays
once, as MPI's persistent requests do, and passes them on in one call. Keys that are ready at the
same time share messages (``src/kvstore/fused.h``). Each key is still summed by itself: other
workers may push the same keys one by one, or in other groups.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from hipress.native.library import lib
from hipress.runtime.operations import Pending, memory_of


class Group:
    """Keys with their gradients and outputs, made by :meth:`hipress.runtime.node.Node.group`.

    The arrays' memory must not move while the group is used; NumPy's does not.
    """

    def __init__(
        self,
        node: Any,
        keys: Sequence[int],
        gradients: Sequence[np.ndarray],
        outs: Sequence[np.ndarray] | None,
        priorities: Sequence[int] | None,
    ) -> None:
        outs = gradients if outs is None else outs
        priorities = [0] * len(keys) if priorities is None else priorities
        if not len(keys) == len(gradients) == len(outs) == len(priorities):
            raise node.Error(
                f"a group needs one gradient, output and priority for each key, but was given "
                f"{len(keys)} keys, {len(gradients)} gradients, {len(outs)} outputs and "
                f"{len(priorities)} priorities"
            )
        if len(set(keys)) < len(keys):
            raise node.Error("a group may have each key once")
        taken = [memory_of(array) for array in gradients]
        given = [memory_of(array) for array in outs]
        for key, ours, theirs in zip(keys, taken, given):
            if ours[1:] != theirs[1:]:
                raise node.Error(
                    f"gradient and output of key {key} must have the same size and dtype"
                )
        self._node = node
        self.keys = tuple(keys)
        self._keeps = (list(gradients), list(outs))
        self._arguments = [
            np.array(self.keys, np.uint64),
            np.array([address for address, _, _ in taken], np.uintp),
            np.array([address for address, _, _ in given], np.uintp),
            np.array([n for _, n, _ in taken], np.int64),
            np.array([flag for _, _, flag in taken], np.intc),
            np.array(priorities, np.intc),
        ]
        self._pointers = [ctypes.c_void_p(array.ctypes.data) for array in self._arguments]

    def pushpull(self) -> Pending:
        """Push all gradients, pull into the outputs, and return the end of all of them.

        Raises:
            HipressError: At once and without a push, if a key is not initialized or has another
                size or dtype, or the job has failed.
        """
        node = self._node
        node.before_push(self.keys)
        node.observe(self.keys, self._keeps[0])
        return node.start(lib.HipressPushPullAll, self, len(self.keys), *self._pointers)
