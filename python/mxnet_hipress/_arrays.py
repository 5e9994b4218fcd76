"""Arrays of a key, one per device: checks, their sum, and copies of the pulled result."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import mxnet as mx
from mxnet.base import MXNetError

from hipress.dtypes import NAMES
from mxnet_hipress import _engine

if TYPE_CHECKING:
    from mxnet_hipress._keys import Key


def check(key: Key, arrays: list[mx.nd.NDArray], verb: str) -> None:
    """Check that arrays have the dtype and size with which the key was initialized."""
    for array in arrays:
        flag = _engine.dtype_flag(array)
        if flag != key.dtype:
            dtype = NAMES.get(flag, getattr(array.dtype, "__name__", str(array.dtype)))
            raise MXNetError(
                f"cannot {verb} {dtype} for key {key.user_key!r}: "
                f"it was initialised as {NAMES[key.dtype]}"
            )
        if prod(array.shape) != key.size:
            raise MXNetError(
                f"cannot {verb} shape {array.shape} for key {key.user_key!r}: "
                f"it was initialised with shape {key.shape}"
            )


def check_dense(key: Key, arrays: list[mx.nd.NDArray]) -> None:
    """Check that a dense key can be pulled into the arrays."""
    check(key, arrays, "pull")
    for array in arrays:
        if array.stype != "default":
            raise MXNetError(f"cannot pull dense key {key.user_key!r} into a {array.stype} array")


def total(key: Key, arrays: list[mx.nd.NDArray]) -> mx.nd.NDArray:
    """Return the sum over devices, which is the array itself if there is one and it is on the
    CPU."""
    check(key, arrays, "push")
    arrays = [a if a.stype == "default" else a.tostype("default") for a in arrays]
    if len(arrays) == 1 and on_cpu(arrays[0]):
        return arrays[0]
    arrays = [array.as_nd_ndarray() for array in arrays]
    if len(arrays) == 1:
        return arrays[0].copyto(key.buffer)
    arrays = [array.as_in_context(mx.cpu()).reshape(key.shape) for array in arrays]
    return mx.nd.add_n(*arrays, out=key.buffer)


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
