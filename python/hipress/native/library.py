"""The native library, loaded once.

:data:`lib` has the functions of ``include/hipress/c_api.h`` and ``mxnet.h``, and :data:`abi` their
types and constants. Both come from the headers' text, which the library holds.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import c_char_p, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from hipress import errors
from hipress.errors import HipressError
from hipress.native.declarations import Declarations, statements


def _candidates() -> list[Path]:
    """Return possible paths of libhipress.so, in the order in which they are tried."""
    chosen = os.environ.get("HIPRESS_LIBRARY")
    if chosen:
        return [Path(chosen)]
    package = Path(__file__).resolve().parents[1]
    return [package / "libhipress.so", package.parents[1] / "build" / "libhipress.so"]


def _load() -> tuple[ctypes.CDLL, Declarations]:
    """Load the library and declare its functions.

    Raises:
        ImportError: If it is not found, cannot be loaded, or was built from other declarations than
            those of this package's header.
    """
    places = _candidates()
    path = next((place for place in places if place.exists()), None)
    if path is None:
        raise ImportError(
            "libhipress.so is in none of "
            + ", ".join(str(place) for place in places)
            + "; build it (make build) or set HIPRESS_LIBRARY to its path"
        )
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"cannot load {path}: {error}") from error
    try:
        library.HipressDeclarations.restype = c_char_p
        text = library.HipressDeclarations().decode()
    except AttributeError:
        text = ""
    declared = set(statements(text))
    if not declared or not declared.issuperset(_expected_statements()):
        raise ImportError(f"{path} is of another version than {__file__}; build it again")
    declarations = Declarations(text)
    declarations.declare(library)
    return library, declarations


def _expected_statements() -> list[str]:
    """Return the declarations of the header in this package, or in its source tree."""
    package = Path(__file__).resolve().parents[1]
    for place in (package, package.parents[1]):
        header = place / "include" / "hipress" / "c_api.h"
        if header.exists():
            return statements(header.read_text(encoding="utf-8"))
    return []


lib, abi = _load()

_python = ctypes.PyDLL(None)  # not ctypes.pythonapi, which other packages also declare
_python.PyErr_Restore.argtypes = [c_void_p] * 3
_python.PyErr_Restore.restype = None


def _set_interpreter() -> None:
    """Make calls that wait on the main thread run Python's signal handlers (for Ctrl-C)."""
    functions = (
        _python.PyGILState_Ensure,
        _python.PyGILState_Release,
        _python.PyErr_CheckSignals,
        _python.PyErr_Fetch,
    )
    types = (kind for _, kind in abi.HipressInterpreter._fields_)
    pointers = (ctypes.cast(function, kind) for function, kind in zip(functions, types))
    interpreter = abi.HipressInterpreter(*pointers, threading.main_thread().ident)
    lib.HipressSetInterpreter(ctypes.byref(interpreter))


_set_interpreter()
os.register_at_fork(after_in_child=_set_interpreter)  # the thread that forks is its main thread
# Python's functions must not be called after the interpreter has ended.
atexit.register(lib.HipressSetInterpreter, None)


_ROLES = ("scheduler", "server", "worker")


def error_of(native: ctypes._Pointer) -> HipressError | None:
    """Return the error of a HipressError pointer; None of a null pointer."""
    if not native:
        return None
    about = native.contents
    return HipressError(
        about.sentence.decode("utf-8", "replace"),
        code=errors.Code(about.code),
        cause=errors.Cause(about.cause),
        role=_ROLES[about.role] if about.role >= 0 else None,
        rank=about.rank if about.rank >= 0 else None,
    )


def check_call(code: int, kind: type[Exception] = ValueError) -> None:
    """Raise the error of a C function that has failed.

    Args:
        code: What the function returned.
        kind: Class of the exception; ValueError suits bad arguments, RuntimeError a failed job.

    Raises:
        Exception: Of class ``kind``, with the attributes of :class:`hipress.errors.HipressError`.
        BaseException: What a signal handler raised during the call, such as KeyboardInterrupt.
    """
    if code == abi.HIPRESS_INTERRUPTED:
        raised = c_void_p(), c_void_p(), c_void_p()
        lib.HipressTakeException(*map(ctypes.byref, raised))
        _python.PyErr_Restore(*raised)  # raises it
    if code != 0:
        raise error_of(lib.HipressGetLastError()).as_kind(kind)


def call(function: Any, *arguments: Any, kind: type[Exception] = ValueError) -> Any:
    """Call a C function and return its results.

    Args:
        function: The function, of :data:`lib`.
        arguments: All but the last ones, which are pointers to where it writes its results.
        kind: Class of the exception if it fails.

    Returns:
        The result, with text as str; a tuple of several; an empty tuple of none.
    """
    results = [pointer._type_() for pointer in function.argtypes[len(arguments) :]]
    check_call(function(*arguments, *map(ctypes.byref, results)), kind)
    values = [getattr(result, "value", result) for result in results]
    values = [value.decode() if isinstance(value, bytes) else value for value in values]
    return values[0] if len(values) == 1 else tuple(values)


def bytes_at(address: int | None, size: int) -> bytes:
    """Return a copy of native memory. ctypes.string_at supports only sizes below 2 GiB."""
    return (ctypes.c_char * size).from_address(address).raw if size else b""


def floats_at(address: int, count: int) -> np.ndarray:
    """Return native memory as a float32 array, which does not keep it."""
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def string_pairs(params: dict[str, object]) -> tuple[int, ctypes.Array, ctypes.Array]:
    """Return name=value parameters as the (count, keys, values) of C functions.

    str() writes the values, which is exact for a float.
    """
    keys = (c_char_p * len(params))(*(str(key).encode() for key in params))
    values = (c_char_p * len(params))(*(str(value).encode() for value in params.values()))
    return len(params), keys, values


def library_path() -> Path:
    """Return the file of the native library."""
    return Path(lib._name)


codec_listeners: list[Callable[[], None]] = []
"""Functions called after an algorithm's registration. Front ends make operators of it."""


def register_codec(library: str | os.PathLike[str]) -> str:
    """Register the algorithm of a compiled library and return its type's name.

    Raises:
        ValueError: If the library holds none, or another algorithm has the same name.
    """
    registered = call(lib.HipressLoadCodec, os.fsencode(library))
    for listener in codec_listeners:
        listener()
    return registered


def version() -> str:
    """Return the native library's version, for example "0.1.0"."""
    return lib.HipressVersion().decode()


def instruction_sets() -> tuple[list[str], str]:
    """Return the instruction sets that the library has codecs for, and the one that it uses here.

    Returns:
        Names among "baseline", "avx2" and "avx512", the widest first, and the one in use.

    Raises:
        RuntimeError: If HIPRESS_SIMD names another one, or this processor runs none of them.
    """
    compiled, used = call(lib.HipressInstructionSets, kind=RuntimeError)
    return compiled.split(", "), used
