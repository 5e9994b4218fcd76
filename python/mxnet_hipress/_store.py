"""Interface to MXNet that all stores of HiPress share."""

from __future__ import annotations

import ctypes

from mxnet.base import _LIB, KVStoreHandle, check_call
from mxnet.kvstore import KVStore as MXNetKVStore
from mxnet.profiler import set_kvstore_handle

from mxnet_hipress._keys import group


class Store(MXNetKVStore):
    """Distributed store with a type, which can run optimizers.

    Args:
        name: The store's type as scripts see it, for example "dist_sync".
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # MXNet's C functions, such as the profiler, need an MXNet store. A local one does no harm.
        handle = KVStoreHandle()
        check_call(_LIB.MXKVStoreCreate(b"local", ctypes.byref(handle)))
        super().__init__(handle)
        set_kvstore_handle(self.handle)

    @property
    def type(self) -> str:
        """Type with which this store was created."""
        return self._name

    def broadcast(self, key: object, value: object, out: object, priority: int = 0) -> None:
        """Initialize keys, then pull into every array of `out`."""
        values = group(key, value)
        self.init([k for k, _ in values], [arrays[0] for _, arrays in values])
        self.pull(key, out=out, priority=priority)

    def is_capable(self, capability: str) -> bool:
        """Return True: the store can run an optimizer, its only capability."""
        if capability.lower() == self.OPTIMIZER:
            return True
        raise ValueError(f"unknown capability {capability!r}: the only one is {self.OPTIMIZER!r}")

    def get_num_dead_node(self, node_id: int = 7, timeout: int = 60) -> int:
        """Return num_dead_node under its older name. `timeout` is ignored."""
        return self.num_dead_node(node_id)
