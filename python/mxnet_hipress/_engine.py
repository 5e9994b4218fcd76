"""MXNet arrays in and out of the native store: include/hipress/mxnet.h in Python."""

from __future__ import annotations

import ctypes
import os
import threading

import mxnet as mx
from mxnet.base import _LIB, MXNetError
from mxnet.base import check_call as check_mxnet

from hipress._lib import check_call, lib

_NOT_COMPUTED = "was not pushed because computing it failed"
_PATIENCE = 5.0
"""Seconds in which MXNet is to tell why."""
_HANDLE = ctypes.c_void_p
for _name in ("HipressMXPush", "HipressMXPull", "HipressMXPushPull"):
    getattr(lib, _name).argtypes = [
        _HANDLE,
        ctypes.c_uint64,
        ctypes.c_char_p,
        _HANDLE,
        ctypes.c_int64,
        ctypes.c_int,
        ctypes.c_int,
    ]
lib.HipressMXBind.argtypes = [ctypes.c_char_p, ctypes.c_int]
lib.HipressMXClose.argtypes = [_HANDLE]


def bind() -> None:
    """Connects the native library with the MXNet of this process.

    :raises MXNetError: if this MXNet lacks a function that is needed
    """
    naive = os.environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine"
    path = getattr(_LIB, "_name", None) or mx.libinfo.find_lib_path()[0]
    check_call(lib.HipressMXBind(path.encode(), int(naive)), MXNetError)


def dtype_flag(array: mx.nd.NDArray) -> int:
    """MXNet's type flag of an array."""
    flag = ctypes.c_int()
    check_mxnet(_LIB.MXNDArrayGetDType(array.handle, ctypes.byref(flag)))
    return flag.value


def data_pointer(array: mx.nd.NDArray) -> int:
    """Address of a CPU array's elements, once it is computed. Blocks.

    :raises MXNetError: if computing it failed
    """
    array.wait_to_read()
    pointer = ctypes.c_void_p()
    check_mxnet(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    return pointer.value


def _check_scheduled(code: int) -> None:
    """Raises what the library says; after a gradient that failed, with MXNet's error behind it."""
    try:
        check_call(code, MXNetError)
    except MXNetError as error:
        if _NOT_COMPUTED not in str(error):
            raise
        raise error from _first_error()


def _first_error() -> MXNetError | None:
    """The first error of all that was scheduled; None if MXNet does not tell it soon: a row_sparse
    push or pull, in MXNet's own store, may wait for ever for somebody who is gone."""
    errors = []

    def wait() -> None:
        try:
            mx.nd.waitall()
        except MXNetError as error:
            errors.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return errors[0] if errors else None


def push(node, key, name: bytes, array, n: int, dtype: int, priority: int) -> None:  # noqa: ANN001
    """Schedules the push of a CPU array; see HipressMXPush."""
    code = lib.HipressMXPush(node, key, name, array.handle, n, dtype, priority)
    _check_scheduled(code)


def pull(node, key, name: bytes, array, n: int, dtype: int, priority: int) -> None:  # noqa: ANN001
    """Schedules the pull into a CPU array; see HipressMXPull."""
    code = lib.HipressMXPull(node, key, name, array.handle, n, dtype, priority)
    _check_scheduled(code)


def push_pull(node, key, name: bytes, array, n: int, dtype: int, priority: int) -> None:  # noqa: ANN001
    """Schedules the push of a CPU array and the pull into itself; see HipressMXPushPull."""
    code = lib.HipressMXPushPull(node, key, name, array.handle, n, dtype, priority)
    _check_scheduled(code)


def close(node) -> None:  # noqa: ANN001
    """Lets later operations fail; before the node stops."""
    check_call(lib.HipressMXClose(node), MXNetError)
