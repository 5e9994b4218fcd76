"""Generated C++ to a shared library, cached by content, and calls into it without the registry."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int64, c_void_p
from pathlib import Path

import numpy as np

from hipress.compression.compiler.backends.cpp.program import generate
from hipress.compression.compiler.backends.numpy.interpreter import check_params, fill_states
from hipress.compression.compiler.compiler_errors import BuildError, PayloadError
from hipress.compression.compiler.ir.ir import Program
from hipress.compression.compiler.runtime.library_cache import cxx, library
from hipress.native.declarations import Declarations

_EVERY = ("-mf16c", "-mbmi2", "-mpopcnt")
FLAGS = {
    "baseline": [],
    "avx2": ["-mavx2", *_EVERY],
    "avx512": [*(f"-mavx512{part}" for part in ("f", "bw", "dq", "vl")), *_EVERY],
}
# Contracted multiply-adds would change bits from one machine to the next; ints wrap around.
COMMON_FLAGS = [
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-pthread",
]


def include_directory() -> Path:
    """Return the folder of the generated code's headers: in the package, or in the source tree."""
    package = Path(__file__).resolve().parents[3]
    for place in (package / "include", package.parents[1] / "src"):
        if (place / "operator/contrib/compll/runtime.h").exists():
            return place
    raise BuildError("the headers operator/contrib/compll/*.h are not installed; reinstall hipress")


def available_isas() -> list[str]:
    """Return the instruction sets that this CPU supports, widest first."""
    flags: set[str] = set()
    if platform.machine() in ("x86_64", "AMD64"):
        with open("/proc/cpuinfo") as info:
            flags = next((set(line.split()) for line in info if line.startswith("flags")), set())
    found = ["baseline"]
    if {"avx2", "f16c", "bmi2"} <= flags:
        found.insert(0, "avx2")
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
            found.insert(0, "avx512")
    return found


def build(program: Program, isa: str | None = None) -> Path:
    """Compile an optimized program for one instruction set, unless the cache has it.

    `isa` is baseline, avx2 or avx512; by default HIPRESS_SIMD, or the best of this CPU.
    """
    isa = isa or os.environ.get("HIPRESS_SIMD") or available_isas()[0]
    if isa not in FLAGS:
        raise BuildError(f"an instruction set must be {', '.join(FLAGS)}, not {isa}")
    include = include_directory()
    headers = sorted((include / "operator/contrib/compll").glob("*.h"))
    headers.append(include / "operator/contrib/half.h")
    flags = [*FLAGS[isa], f"-I{include}"]
    return compile_cached(program.name, generate(program), flags, headers)


def compile_cached(name: str, source: str, flags: list[str], depends: Sequence[Path] = ()) -> Path:
    """Return a shared library of C++ source, from the cache if possible; see library()."""
    return library(name, "generated.cc", source, [*cxx(), *COMMON_FLAGS], flags, depends)


@functools.cache
def declarations(header: str) -> Declarations:
    """Return the declarations of CompLL's "abi.h" or "cuda/abi.h"."""
    folder = include_directory() / "operator/contrib/compll"
    return Declarations((folder / header).read_text("utf-8"))


_TYPES = {"float32": 0, "float16": 1, "uint16": 2}
"""CompllType of NumPy's types; bfloat16 is in uint16."""


class Compiled:
    """A compiled algorithm with the interface of the interpreter."""

    def __init__(
        self, program: Program, isa: str | None = None, threads: int = 1, **params: float | int
    ) -> None:
        self.program, self.threads = program, threads
        self.params = check_params(program, params)
        self.library = ctypes.CDLL(str(build(program, isa)))
        self._abi = declarations("abi.h")
        entry = self.library.hipress_compll_algorithm
        entry.restype = POINTER(self._abi.CompllAlgorithm)
        self.algorithm = entry().contents
        self._values = (c_double * max(len(self.params), 1))(*self.params.values())
        self._params = ctypes.addressof(self._values)

    def max_bytes(self, n: int) -> int:
        """Return an upper bound of the payload of n elements."""
        return self.algorithm.max_bytes(n, self._values)

    @property
    def fixed_size(self) -> bool:
        """Whether every payload of n elements has max_bytes(n) bytes."""
        return bool(self.algorithm.fixed_size)

    def encode(
        self,
        gradient: np.ndarray,
        states: dict[str, np.ndarray] | None = None,
        step: int = 0,
        stream: int = 0,
        new_states: bool = False,
    ) -> bytes:
        """Encode as the interpreter does, if `new_states` with these in new arrays."""
        type_ = _TYPES.get(gradient.dtype.name, 0) if self.algorithm.exact else 0
        gradient = np.ascontiguousarray(gradient, gradient.dtype if type_ else np.float32)
        states = fill_states(self.program, states, gradient.size)
        old = dict(states)  # this keeps the arrays
        before = self._pointers(old)
        if new_states:
            used = self.algorithm.used_states(self._values)
            for place, name in enumerate(self.program.states):
                if used >> place & 1:
                    states[name] = np.full_like(old[name], np.nan)
        pointers = self._pointers(states)
        lazy_values = np.zeros(8, np.float32)
        payload = np.zeros(self.max_bytes(gradient.size) + 64, np.uint8)
        payload[-64:] = 0xA5
        call = self._abi.CompllEncodeCall(
            gradient.ctypes.data,
            type_,
            gradient.size,
            self._params,
            pointers,
            before,
            0,
            lazy_values.ctypes.data,
            step,
            stream,
            self.threads,
            None,
            payload.ctypes.data,
        )
        written = self.algorithm.encode(ctypes.byref(call))
        if call.lazy:
            values = lazy_values.ctypes.data
            settle = self._abi.CompllSettleCall(pointers, values, gradient.size, self.threads)
            self.algorithm.settle(ctypes.byref(settle))
        if written < 0 or written > payload.size - 64 or (payload[-64:] != 0xA5).any():
            raise AssertionError(f"encode wrote {written} bytes, or beyond its buffer")
        return payload[:written].tobytes()

    def _pointers(self, states: dict[str, np.ndarray]) -> ctypes.Array:
        addresses = [states[name].ctypes.data for name in self.program.states]
        return (c_void_p * max(len(addresses), 1))(*addresses)

    def decode(self, payload: bytes, n: int) -> np.ndarray:
        """Return float32[n]; PayloadError for a malformed payload."""
        return self.decode_sum([payload], n)

    def decode_sum(self, payloads: list[bytes], n: int) -> np.ndarray:
        """Return float32[n], as Interpreter.decode_sum."""
        out = np.full(n, np.nan, np.float32)
        self._decode(payloads, out, add=False)
        return out

    def decode_add(self, payload: bytes, total: np.ndarray) -> None:
        """Add the decoded payload to total, float32[n], in place."""
        self._decode([payload], total, add=True)

    def _decode(self, payloads: list[bytes], out: np.ndarray, add: bool) -> None:
        data = [np.frombuffer(payload, np.uint8) for payload in payloads]
        error = ctypes.create_string_buffer(300)
        sizes = (c_int64 * len(data))(*(part.size for part in data))
        call = self._abi.CompllDecodeCall(
            (c_void_p * len(data))(*(part.ctypes.data for part in data)),
            ctypes.addressof(sizes),
            len(data),
            out.size,
            self._params,
            out.ctypes.data,
            0,
            int(add),
            0,
            self.threads,
            None,
            ctypes.addressof(error),
            len(error),
        )
        if self.algorithm.decode(ctypes.byref(call)) != 0:
            raise PayloadError(f"the payload {error.value.decode()}")
