"""A key's arrays, one a device: whether they fit it, their sum, and copies of what was pulled."""

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
    """Refuse what has not the dtype and size that the key was initialized with.

    :param verb: what is to be done with them: "push"
    :raises MXNetError: naming both
    """
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
    """Refuse arrays that a dense key cannot be pulled into.

    :raises MXNetError: as :func:`check` does, or naming the storage type
    """
    check(key, arrays, "pull")
    for array in arrays:
        if array.stype != "default":
            raise MXNetError(f"cannot pull dense key {key.user_key!r} into a {array.stype} array")


def total(key: Key, arrays: list[mx.nd.NDArray]) -> mx.nd.NDArray:
    """Return the sum over devices: the array itself if it is the only one and on the CPU."""
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
    """Copy an array into all others of a list that may hold it, too."""
    source = source.as_nd_ndarray()
    for array in arrays:
        target = array.as_nd_ndarray()
        if target.handle.value != source.handle.value:
            source.reshape(target.shape).copyto(target)


def on_cpu(array: mx.nd.NDArray) -> bool:
    """Return whether native code can read it in place."""
    return array.context.device_type != "gpu"
