"""MXNet arrays in and out of the native store: include/hipress/mxnet.h in Python."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable

import mxnet as mx
from mxnet.base import _LIB, MXNetError
from mxnet.base import check_call as check_mxnet

from hipress.errors import Cause
from hipress.native.library import abi, call, check_call, lib

_ERROR_SECONDS = 5.0
"""Seconds in which MXNet is to tell why."""


def bind() -> None:
    """Connect the native library with the MXNet of this process.

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


def _scheduled(code: int) -> bool:
    """False if the array is of another kind, which is up to the caller.

    :raises MXNetError: what the library says; after a gradient that failed, with MXNet's error
        behind it
    """
    if code == 0:
        return True
    if code == abi.HIPRESS_MX_OTHER_ARRAY:
        return False
    try:
        check_call(code, MXNetError)
    except MXNetError as error:
        if error.cause != Cause.NOT_COMPUTED:
            raise
        raise error from _first_error()


def _first_error() -> MXNetError | None:
    """Return the first error of all that was scheduled; None if MXNet does not tell it soon: other
    operations may wait for other workers."""
    errors = []

    def wait() -> None:
        try:
            mx.nd.waitall()
        except MXNetError as error:
            errors.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(_ERROR_SECONDS)
    return errors[0] if errors else None


def key_handle(node, key: int, name: bytes, n: int, dtype: int) -> ctypes.c_void_p:
    """Return a key for the calls below; see HipressMXKeyCreate."""
    what = key, name, n, dtype
    return ctypes.c_void_p(call(lib.HipressMXKeyCreate, node, *what, kind=MXNetError))


def push(key: ctypes.c_void_p, array: mx.nd.NDArray, priority: int) -> bool:
    """Schedule a push; see HipressMXPush.

    :return: False, and nothing is scheduled, if the array is sparse, on a GPU or not of the key's
        size and dtype
    """
    return _scheduled(lib.HipressMXPush(key, array.handle, priority))


def pull(key: ctypes.c_void_p, array: mx.nd.NDArray, priority: int) -> bool:
    """Schedule a pull into an array, as :func:`push` does."""
    return _scheduled(lib.HipressMXPull(key, array.handle, priority))


def push_pull(
    key: ctypes.c_void_p, array: mx.nd.NDArray, out: mx.nd.NDArray, priority: int
) -> bool:
    """Schedule a push of one array and the pull into the same or another one, as :func:`push`."""
    return _scheduled(lib.HipressMXPushPull(key, array.handle, out.handle, priority))


_starts: dict[int, Callable[[Callable[[str], None]], None]] = {}
_numbers = itertools.count(1)


@abi.HipressMXStart
def _start(number: int, operation: int) -> None:
    def end(error: str) -> None:
        check_call(lib.HipressMXEnd(operation, error.encode() if error else None), MXNetError)

    _starts.pop(number)(end)


def schedule(
    key: ctypes.c_void_p,
    array: mx.nd.NDArray,
    writes: bool,
    priority: int,
    start: Callable[[Callable[[str], None]], None],
) -> None:
    """Schedule an operation that the caller carries out; see HipressMXSchedule.

    :param array: of any kind, that nobody else changes
    :param start: called on any thread when the array is ready, with a function to be called, with
        "" or a sentence, when the operation is over; must not block
    """
    number = next(_numbers)
    _starts[number] = start
    try:
        code = lib.HipressMXSchedule(key, array.handle, int(writes), priority, _start, number)
        check_call(code, MXNetError)
    except MXNetError:
        _starts.pop(number, None)
        raise


def flush(node) -> None:
    """Let what is ready enter the store now; see HipressMXFlush."""
    check_call(lib.HipressMXFlush(node), MXNetError)


def close(node) -> None:
    """Let later operations fail; before the node stops."""
    check_call(lib.HipressMXClose(node), MXNetError)
