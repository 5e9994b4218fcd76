"""Several keys that are pushed and pulled in one call, again and again.

A call for each of some hundred small gradients takes longer than all else that is done for them.
So a group looks at its arrays once, as MPI's persistent requests do, and hands them over in one
call. What becomes ready together travels together (``src/kvstore/fused.h``); each key is
still summed by itself: other workers may push the same keys one by one, or in other groups.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from hipress.native.library import lib
from hipress.runtime.operations import Pending, memory_of


class Store(Protocol):
    """The node whose keys a group has."""

    Error: type[Exception]

    def before_push(self, keys: Sequence[int]) -> None: ...

    def observe(self, keys: Sequence[int], gradients: Sequence[np.ndarray]) -> None: ...

    def start(self, function: Callable[..., int], keeps: object, *what: int) -> Pending: ...


class Group:
    """Keys with their gradients and outputs; :meth:`hipress.runtime.node.Node.group` makes it.

    The arrays' memory must stay where it is for as long as the group is used; numpy's does.
    """

    def __init__(
        self,
        node: Store,
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
        """Push all gradients and pulls into the outputs; the end of all of them.

        :raises HipressError: at once, and then nothing was pushed, if a key is not initialized or
            has another size or dtype, or the job has failed
        """
        node = self._node
        node.before_push(self.keys)
        node.observe(self.keys, self._keeps[0])
        return node.start(lib.HipressPushPullAll, self, len(self.keys), *self._pointers)
