"""Keys of a store: numbers, shapes, checks of every call, and the arrays of each device."""

from __future__ import annotations

import numbers
from ctypes import c_void_p
from dataclasses import dataclass, field
from math import prod
from typing import Union

import mxnet as mx
import numpy as np
from mxnet.base import MXNetError
from mxnet.ndarray.ndarray import _DTYPE_MX_TO_NP

from hipress.dtypes import NAMES
from mxnet_hipress._commands import STORE_SHIFT
from mxnet_hipress._engine import dtype_flag

UserKey = Union[int, str]


@dataclass
class Key:
    """One initialized key."""

    store: int
    """Number of the key's store."""
    index: int
    """Number of the key for the store's optimizer."""
    user_key: UserKey
    shape: tuple[int, ...]
    dtype: int
    """MXNet's type flag."""
    sparse: bool
    """Whether the key is row_sparse; see mxnet_hipress._sparse."""
    size: int = field(init=False)
    name: bytes = field(init=False)
    handle: c_void_p | None = field(init=False, default=None)
    """The handle for :mod:`mxnet_hipress._engine`, once the key is initialized."""
    _buffer: mx.nd.NDArray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.size = prod(self.shape)
        self.name = repr(self.user_key).encode()

    @property
    def number(self) -> int:
        """Number of the key on the servers."""
        return self.store << STORE_SHIFT | self.index

    @property
    def buffer(self) -> mx.nd.NDArray:
        """CPU array of the key's shape, for sums over devices and for pulled results."""
        if self._buffer is None:
            self._buffer = self.new_array()
        return self._buffer

    def new_array(self) -> mx.nd.NDArray:
        """Return an uninitialized CPU array of the key's shape and dtype."""
        return mx.nd.empty(self.shape, mx.cpu(), _DTYPE_MX_TO_NP[self.dtype])

    def check(self, arrays: list[mx.nd.NDArray], verb: str) -> None:
        """Check that arrays have the dtype and size with which the key was initialized."""
        for array in arrays:
            flag = dtype_flag(array)
            if flag != self.dtype:
                dtype = NAMES.get(flag, getattr(array.dtype, "__name__", str(array.dtype)))
                raise MXNetError(
                    f"cannot {verb} {dtype} for key {self.user_key!r}: "
                    f"it was initialized as {NAMES[self.dtype]}"
                )
            if prod(array.shape) != self.size:
                raise MXNetError(
                    f"cannot {verb} shape {array.shape} for key {self.user_key!r}: "
                    f"it was initialized with shape {self.shape}"
                )

    def check_dense(self, arrays: list[mx.nd.NDArray]) -> None:
        """Check that this dense key can be pulled into the arrays."""
        self.check(arrays, "pull")
        for array in arrays:
            if array.stype != "default":
                raise MXNetError(
                    f"cannot pull dense key {self.user_key!r} into a {array.stype} array"
                )

    def total(self, arrays: list[mx.nd.NDArray]) -> mx.nd.NDArray:
        """Return the sum over devices: the array itself if there is one and it is on the CPU."""
        self.check(arrays, "push")
        arrays = [a if a.stype == "default" else a.tostype("default") for a in arrays]
        if len(arrays) == 1 and on_cpu(arrays[0]):
            return arrays[0]
        arrays = [array.as_nd_ndarray() for array in arrays]
        if len(arrays) == 1:
            return arrays[0].copyto(self.buffer)
        arrays = [array.as_in_context(mx.cpu()).reshape(self.shape) for array in arrays]
        return mx.nd.add_n(*arrays, out=self.buffer)


class KeyTable:
    """All keys of one store, in the order of their initialization.

    An integer key is its own number. String keys are numbered in order, dense and sparse ones
    together, as optimizers' `idx2name` requires.
    """

    def __init__(self, store: int) -> None:
        self._store = store
        self._keys: dict[UserKey, Key] = {}
        self._type: type | None = None

    def get(self, user_key: UserKey, verb: str) -> Key:
        """Return an initialized key."""
        key = self._keys.get(user_key)
        if key is None:
            self._check_type(user_key)
            raise MXNetError(f"cannot {verb} key {user_key!r}: init it first")
        return key

    def new(self, user_key: UserKey, value: mx.nd.NDArray) -> Key:
        """Return a key for `value` that is not yet in the table."""
        self._check_type(user_key)
        if user_key in self._keys:
            raise MXNetError(f"key {user_key!r} is initialized already")
        if isinstance(user_key, int) and not 0 <= user_key < 1 << STORE_SHIFT:
            raise MXNetError(f"int keys must be from 0 to {(1 << STORE_SHIFT) - 1}, got {user_key}")
        flag = dtype_flag(value)
        if flag not in NAMES:
            raise MXNetError(
                f"key {user_key!r} has dtype {np.dtype(value.dtype).name}; a distributed store "
                f"holds {', '.join(NAMES.values())}"
            )
        index = user_key if isinstance(user_key, int) else len(self._keys)
        sparse = value.stype == "row_sparse"
        return Key(self._store, index, user_key, value.shape, flag, sparse)

    def add(self, key: Key) -> None:
        """Add a newly initialized key to the table."""
        self._keys[key.user_key] = key
        self._type = type(key.user_key)

    def _check_type(self, user_key: UserKey) -> None:
        if self._type is not None and type(user_key) is not self._type:
            raise MXNetError(
                f"keys must be all int or all str: got {user_key!r}, and the others are "
                f"{self._type.__name__}"
            )


def group(keys: object, values: object) -> list[tuple[UserKey, list[mx.nd.NDArray]]]:
    """Pair keys with their arrays, as MXNet does: one key or several, one array or several per key.

    The arrays of a repeated key are joined.
    """
    if type(keys) is int or type(keys) is str:  # as in a Trainer's call for each parameter
        return [(keys, _arrays(keys, values))]
    if not isinstance(keys, (list, tuple)):
        keys, values = [keys], [values]
    elif not isinstance(values, (list, tuple)) or len(values) != len(keys):
        count = len(values) if isinstance(values, (list, tuple)) else "no list of them"
        raise MXNetError(f"there must be a value for each of the {len(keys)} keys, got {count}")
    grouped: dict[UserKey, list[mx.nd.NDArray]] = {}
    for user_key, value in zip(keys, values):
        grouped.setdefault(_plain(user_key), []).extend(_arrays(user_key, value))
    if len({type(key) for key in grouped}) > 1:
        raise MXNetError(f"keys must be all int or all str, got {list(grouped)}")
    return list(grouped.items())


def with_row_ids(
    keys: object, outs: object, row_ids: object
) -> list[tuple[UserKey, list[mx.nd.NDArray], mx.nd.NDArray]]:
    """Pair keys with the arrays and the row indices of a row_sparse_pull."""
    grouped = group(keys, outs)
    count = sum(len(arrays) for _, arrays in grouped)
    row_ids = _arrays("of row_ids", row_ids)
    if len(row_ids) == 1 and len(grouped) == 1:
        return [(*grouped[0], row_ids[0])]
    if len(row_ids) != count:
        raise MXNetError(
            f"row_sparse_pull needs row_ids for each of {count} arrays, got {len(row_ids)}"
        )
    flat = [(user_key, [array]) for user_key, arrays in grouped for array in arrays]
    return [(*pair, ids) for pair, ids in zip(flat, row_ids)]


def _plain(user_key: object) -> UserKey:
    if isinstance(user_key, str):
        return user_key
    if isinstance(user_key, numbers.Integral) and not isinstance(user_key, bool):
        return int(user_key)
    raise MXNetError(f"a key must be an int or a str, got {user_key!r}")


def _arrays(user_key: object, value: object) -> list[mx.nd.NDArray]:
    arrays = list(value) if isinstance(value, (list, tuple)) else [value]
    for array in arrays:
        if not isinstance(array, mx.nd.NDArray):
            raise MXNetError(
                f"the value of key {user_key!r} must be an NDArray or a list of them, "
                f"got {type(array).__name__}"
            )
    if not arrays:
        raise MXNetError(f"the value of key {user_key!r} is an empty list")
    return arrays


def spread(source: mx.nd.NDArray, arrays: list[mx.nd.NDArray]) -> None:
    """Copy an array into all other arrays of a list. The list may contain the array itself."""
    source = source.as_nd_ndarray()
    for array in arrays:
        target = array.as_nd_ndarray()
        if target.handle.value != source.handle.value:
            source.reshape(target.shape).copyto(target)


def on_cpu(array: mx.nd.NDArray) -> bool:
    """Return whether native code can read the array in place."""
    return array.context.device_type != "gpu"
