"""Operations of the native store on MXNet arrays: include/hipress/mxnet.h in Python."""

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
"""Seconds to wait for MXNet's error message."""


def bind() -> None:
    """Connect the native library with the MXNet of this process."""
    naive = os.environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine"
    path = getattr(_LIB, "_name", None) or mx.libinfo.find_lib_path()[0]
    check_call(lib.HipressMXBind(path.encode(), int(naive)), MXNetError)


def dtype_flag(array: mx.nd.NDArray) -> int:
    """Return MXNet's type flag of an array."""
    flag = ctypes.c_int()
    check_mxnet(_LIB.MXNDArrayGetDType(array.handle, ctypes.byref(flag)))
    return flag.value


def data_pointer(array: mx.nd.NDArray) -> int:
    """Return the address of a CPU array's elements. Blocks until MXNet has computed the array."""
    array.wait_to_read()
    pointer = ctypes.c_void_p()
    check_mxnet(_LIB.MXNDArrayGetData(array.handle, ctypes.byref(pointer)))
    return pointer.value


def _scheduled(code: int) -> bool:
    """Return False if the caller must handle the array, which is of an unsupported kind."""
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
    """Return the first error of all scheduled operations, or None if MXNet does not report it soon.

    Other operations may be waiting for other workers.
    """
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
    """Return a handle of a key for the calls below; see HipressMXKeyCreate."""
    what = key, name, n, dtype
    return ctypes.c_void_p(call(lib.HipressMXKeyCreate, node, *what, kind=MXNetError))


def push(key: ctypes.c_void_p, array: mx.nd.NDArray, priority: int) -> bool:
    """Schedule a push; see HipressMXPush.

    Returns:
        False, without scheduling, if the array is sparse, on a GPU, or of another size or dtype.
    """
    return _scheduled(lib.HipressMXPush(key, array.handle, priority))


def pull(key: ctypes.c_void_p, array: mx.nd.NDArray, priority: int) -> bool:
    """Schedule a pull into an array, as :func:`push` does."""
    return _scheduled(lib.HipressMXPull(key, array.handle, priority))


def push_pull(
    key: ctypes.c_void_p, array: mx.nd.NDArray, out: mx.nd.NDArray, priority: int
) -> bool:
    """Schedule a push of an array and a pull into the same or another array, as :func:`push`."""
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

    Args:
        key: The key's handle.
        array: An array of any kind. No other code may change it.
        writes: Whether the operation writes the array.
        priority: MXNet's priority; a higher one goes first.
        start: Function called on any thread when the array is ready. It must not block. Its
            argument is a function to call at the end, with "" or an error message.
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
    """Pass all ready operations to the store now; see HipressMXFlush."""
    check_call(lib.HipressMXFlush(node), MXNetError)


def close(node) -> None:
    """Make all later operations fail. Called before the node stops."""
    check_call(lib.HipressMXClose(node), MXNetError)
