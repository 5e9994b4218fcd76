"""What every store of ours is to MXNet."""

from __future__ import annotations

import ctypes

from mxnet.base import _LIB, KVStoreHandle, check_call
from mxnet.kvstore import KVStore as MXNetKVStore
from mxnet.profiler import set_kvstore_handle

from mxnet_hipress._keys import group


class Store(MXNetKVStore):
    """A distributed store with a type, which can run optimizers.

    :param name: the type that scripts see, e.g. "dist_sync"
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # MXNet's C functions (the profiler, say) want a store of its own; a local one does no harm.
        handle = KVStoreHandle()
        check_call(_LIB.MXKVStoreCreate(b"local", ctypes.byref(handle)))
        super().__init__(handle)
        set_kvstore_handle(self.handle)

    @property
    def type(self) -> str:
        """The type this store was created as."""
        return self._name

    def broadcast(self, key: object, value: object, out: object, priority: int = 0) -> None:
        """init, then pull into every array of `out`."""
        values = group(key, value)
        self.init([k for k, _ in values], [arrays[0] for _, arrays in values])
        self.pull(key, out=out, priority=priority)

    def is_capable(self, capability: str) -> bool:
        """Return whether the store can run an optimizer ("optimizer"): always."""
        if capability.lower() == self.OPTIMIZER:
            return True
        raise ValueError(f"unknown capability {capability!r}: the only one is {self.OPTIMIZER!r}")

    def get_num_dead_node(self, node_id: int = 7, timeout: int = 60) -> int:
        """num_dead_node under its older name; `timeout` plays no part."""
        return self.num_dead_node(node_id)
