"""The native library, loaded once, with the C ABI of include/hipress/c_api.h for ctypes."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path

Done = CFUNCTYPE(None, c_void_p, c_char_p)
"""HipressDone(context, error): error is None or a sentence."""
DoneTogether = CFUNCTYPE(None, POINTER(c_void_p), c_int64)
"""HipressDoneTogether(contexts, count)."""
Updater = CFUNCTYPE(
    c_int, c_void_p, c_uint64, c_char_p, POINTER(c_float), POINTER(c_float), c_int64
)
"""HipressUpdater(context, key, name, gradient, weight, n) -> 0 or -1."""
Controller = CFUNCTYPE(c_int, c_void_p, c_int, c_int, c_void_p, c_int64)
"""HipressController(context, worker, head, body, body_bytes) -> 0, -1 or HIPRESS_LATER."""


class CodecDescription(Structure):
    """HipressCodecDescription: what a codec is like."""

    _fields_ = [
        ("name", c_char_p),
        ("config", c_char_p),
        ("num_states", c_int),
        ("dense", c_int),
        ("states", POINTER(c_char_p)),
        ("uses_step", c_int),
        ("fixed_size", c_int),
        ("granularity", c_int64),
    ]


class Interpreter(Structure):
    """HipressInterpreter: CPython's functions for running signal handlers during waits."""

    _fields_ = [
        ("ensure", c_void_p),
        ("release", c_void_p),
        ("check_signals", c_void_p),
        ("fetch", c_void_p),
        ("main_thread", c_uint64),
    ]


_STRINGS = POINTER(c_char_p)
_HANDLE = c_void_p

# Argument types of each function, in the order of c_api.h. What is not in _RESULTS returns int.
_SIGNATURES: dict[str, list] = {
    "HipressGetLastError": [],
    "HipressVersion": [],
    "HipressInstructionSets": [POINTER(c_char_p), POINTER(c_char_p)],
    "HipressSetInterpreter": [POINTER(Interpreter)],
    "HipressTakeException": [POINTER(c_void_p)] * 3,
    "HipressListCodecs": [POINTER(c_char_p)],
    "HipressLoadCodec": [c_char_p, POINTER(c_char_p)],
    "HipressCodecCreate": [c_int, _STRINGS, _STRINGS, POINTER(_HANDLE)],
    "HipressCodecForSumOf": [_HANDLE, c_int, POINTER(_HANDLE)],
    "HipressCodecFree": [_HANDLE],
    "HipressCodecSetThreads": [_HANDLE, c_int],
    "HipressCodecMaxBytes": [_HANDLE, c_int64, c_int, POINTER(c_int64)],
    "HipressCodecEncode": [_HANDLE, c_void_p, c_int64, c_int, c_void_p, POINTER(c_int64)],
    "HipressCodecDecode": [_HANDLE, c_void_p, c_int64, c_int64, c_int, c_void_p],
    "HipressCodecDecodeSum": [
        _HANDLE, c_int, POINTER(c_void_p), POINTER(c_int64), c_int64, c_int, c_void_p,
    ],
    "HipressCodecEncodeWith": [
        _HANDLE, c_void_p, c_int64, c_int, c_int, POINTER(c_void_p), c_uint64, c_uint32, c_void_p,
        POINTER(c_int64),
    ],
    "HipressCodecDescribe": [_HANDLE, POINTER(CodecDescription)],
    "HipressCodecGetState": [_HANDLE, c_char_p, c_int64, c_void_p],
    "HipressCodecSetState": [_HANDLE, c_char_p, c_int64, c_void_p],
    "HipressCodecGetStep": [_HANDLE, POINTER(c_uint64), POINTER(c_uint32)],
    "HipressCodecSetStep": [_HANDLE, c_uint64, c_uint32],
    "HipressCodecRollBack": [_HANDLE, c_uint64],
    "HipressLowRankStart": [c_void_p],
    "HipressLowRankResidual": [c_void_p, c_void_p],
    "HipressStartWith": [c_int, _STRINGS, _STRINGS, POINTER(_HANDLE)],
    "HipressStartScheduler": [c_int, _STRINGS, _STRINGS, POINTER(_HANDLE), POINTER(c_char_p)],
    "HipressAwaitEnd": [_HANDLE, c_int, POINTER(c_int)],
    "HipressStop": [_HANDLE],
    "HipressAbort": [_HANDLE],
    "HipressRole": [_HANDLE, POINTER(c_char_p)],
    "HipressRank": [_HANDLE, POINTER(c_int)],
    "HipressGroupSize": [_HANDLE, POINTER(c_int), POINTER(c_int)],
    "HipressTimeout": [_HANDLE, POINTER(c_int)],
    "HipressBarrier": [_HANDLE],
    "HipressNumDeadNode": [_HANDLE, c_int, POINTER(c_int)],
    "HipressLeft": [_HANDLE, POINTER(c_char_p)],
    "HipressFailure": [_HANDLE, POINTER(c_char_p)],
    "HipressFailJob": [_HANDLE, c_char_p],
    "HipressFailPending": [_HANDLE, c_char_p],
    "HipressStats": [_HANDLE, POINTER(c_char_p)],
    "HipressDebugDump": [_HANDLE, POINTER(c_char_p)],
    "HipressSetDebugStatus": [c_char_p, c_char_p],
    "HipressKeepAlive": [c_double, c_int, c_int, c_char_p],
    "HipressInit": [
        _HANDLE, c_uint64, c_char_p, c_void_p, c_int64, c_int, c_char_p, c_int, POINTER(c_uint32),
        POINTER(POINTER(c_int64)), POINTER(c_int64),
    ],
    "HipressPush": [_HANDLE, c_uint64, c_void_p, c_int64, c_int, c_int, Done, c_void_p],
    "HipressPull": [_HANDLE, c_uint64, c_void_p, c_int64, c_int, c_int, Done, c_void_p],
    "HipressPushPull": [
        _HANDLE, c_uint64, c_void_p, c_void_p, c_int64, c_int, c_int, Done, c_void_p,
    ],
    "HipressPushPullAll": [_HANDLE, c_int64, *[c_void_p] * 6, Done, c_void_p],
    "HipressReportTogether": [_HANDLE, Done, DoneTogether],
    "HipressSetGradientCompression": [_HANDLE, c_int, _STRINGS, _STRINGS],
    "HipressSetSync": [_HANDLE, c_int],
    "HipressCommand": [
        _HANDLE, c_int, c_int, c_void_p, c_int64, POINTER(c_void_p), POINTER(c_int64),
    ],
    "HipressSaveStates": [_HANDLE, c_int, c_uint64, c_uint64, POINTER(c_void_p), POINTER(c_int64)],
    "HipressLoadStates": [_HANDLE, c_int, c_uint64, c_uint64, c_void_p, c_int64],
    "HipressWaitAll": [_HANDLE],
    "HipressAddKey": [
        _HANDLE, c_uint64, c_char_p, c_int64, c_int, c_char_p, c_void_p, c_int64, c_void_p, c_int64,
        c_double, c_double,
    ],
    "HipressAwaitKeys": [_HANDLE],
    "HipressDropKey": [_HANDLE, c_uint64],
    "HipressGetMomentum": [_HANDLE, c_uint64, c_void_p],
    "HipressSetMomentum": [_HANDLE, c_uint64, c_void_p],
    "HipressMomentumRollBack": [_HANDLE, c_uint64, c_uint64],
    "HipressAwaitEncodes": [_HANDLE],
    "HipressBucketCreate": [
        _HANDLE, c_int, c_void_p, c_int64, c_void_p, c_void_p, c_int64, c_uint64, c_void_p, c_int64,
        c_int, POINTER(_HANDLE),
    ],
    "HipressBucketSetLowRank": [_HANDLE, _HANDLE, c_uint64, c_uint64, c_void_p, c_void_p, c_int64],
    "HipressBucketRun": [_HANDLE, c_void_p, c_uint64, POINTER(c_int), Done, c_void_p],
    "HipressBucketFree": [_HANDLE],
    "HipressSetError": [c_char_p],
    "HipressSetReply": [c_void_p, c_int64],
    "HipressSetUpdater": [_HANDLE, Updater, c_void_p],
    "HipressServe": [_HANDLE, Controller, c_void_p],
    "HipressMakeCertificate": [POINTER(c_char_p)],
}  # fmt: skip
_RESULTS = {
    "HipressGetLastError": c_char_p,
    "HipressVersion": c_char_p,
    "HipressSetError": None,
    "HipressSetReply": None,
}


def _candidates() -> list[Path]:
    """Paths where libhipress.so may lie, in the order in which they are tried."""
    chosen = os.environ.get("HIPRESS_LIBRARY")
    if chosen:
        return [Path(chosen)]
    package = Path(__file__).resolve().parent
    return [package / "libhipress.so", package.parents[1] / "build" / "libhipress.so"]


def _load() -> ctypes.CDLL:
    """Loads the library and declares its functions.

    :raises ImportError: if it is found nowhere, or cannot be loaded
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
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"{path} lacks {name}: it is of another version; build it again")
        function.restype = _RESULTS.get(name, c_int)
        function.argtypes = arguments
    return library


lib = _load()

_INTERRUPTED = -2  # HIPRESS_INTERRUPTED
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
    addresses = (ctypes.cast(function, c_void_p) for function in functions)
    interpreter = Interpreter(*addresses, threading.main_thread().ident)
    lib.HipressSetInterpreter(ctypes.byref(interpreter))


_set_interpreter()
os.register_at_fork(after_in_child=_set_interpreter)  # the thread that forks is its main thread
# Python's functions must not be called after the interpreter has ended.
atexit.register(lib.HipressSetInterpreter, None)


def last_error() -> str:
    """The sentence of this thread's last failed call."""
    return lib.HipressGetLastError().decode("utf-8", "replace")


def check_call(code: int, error: type[Exception] = ValueError) -> None:
    """Turns a C return code into an exception with the library's sentence.

    :param code: what the C function returned
    :param error: type to raise; ValueError suits bad arguments, RuntimeError a failed job
    :raises Exception: of type `error`, if code is not 0
    :raises BaseException: what a signal handler raised during the call, such as KeyboardInterrupt
    """
    if code == _INTERRUPTED:
        raised = c_void_p(), c_void_p(), c_void_p()
        lib.HipressTakeException(*map(ctypes.byref, raised))
        _python.PyErr_Restore(*raised)  # raises it
    if code != 0:
        raise error(last_error())


def bytes_at(address: int | None, size: int) -> bytes:
    """Return a copy of native memory. ctypes.string_at supports only sizes below 2 GiB."""
    return (ctypes.c_char * size).from_address(address).raw if size else b""


def string_pairs(params: dict[str, object]) -> tuple[int, ctypes.Array, ctypes.Array]:
    """name=value parameters as the (count, keys, values) that C functions take.

    Values are written as str() writes them, which for a float is exact.
    """
    keys = (c_char_p * len(params))(*(str(key).encode() for key in params))
    values = (c_char_p * len(params))(*(str(value).encode() for value in params.values()))
    return len(params), keys, values


def library_path() -> Path:
    """The file of the native library."""
    return Path(lib._name)


codec_listeners: list[Callable[[], None]] = []
"""Called whenever an algorithm has been registered: front ends make operators of it."""


def register_codec(library: str | os.PathLike[str]) -> str:
    """Registers the algorithm of a compiled library; returns its type's name.

    :raises ValueError: if the library holds none, or its name is taken by another algorithm
    """
    name = c_char_p()
    check_call(lib.HipressLoadCodec(os.fsencode(library), ctypes.byref(name)))
    registered = name.value.decode()  # the library's memory, until its next call
    for listener in codec_listeners:
        listener()
    return registered


def version() -> str:
    """The native library's version, e.g. "0.1.0"."""
    return lib.HipressVersion().decode()



def instruction_sets() -> tuple[list[str], str]:
    """Return the instruction sets that the library has codecs for, and the one that it uses here.

    Returns:
        Names among "baseline", "avx2" and "avx512", the widest first, and the one in use.

    Raises:
        RuntimeError: If HIPRESS_SIMD names another one, or this processor runs none of them.
    """
    compiled, used = c_char_p(), c_char_p()
    code = lib.HipressInstructionSets(ctypes.byref(compiled), ctypes.byref(used))
    check_call(code, RuntimeError)
    return compiled.value.decode().split(", "), used.value.decode()
