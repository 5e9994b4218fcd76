"""CompLL's algorithms on a GPU: calls on raw device pointers and a stream, without copies or waits.

>>> coder = Algorithm(compll.compile_file("my.cll"), threshold=0.1)
>>> coder.encode(gradient=g.data_ptr(), n=g.numel(), states=[r.data_ptr()], payload=p.data_ptr(),
...              capacity=p.numel(), size=s.data_ptr(), workspace=w.data_ptr(), step=0, stream=st)
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from importlib import metadata
from pathlib import Path

import numpy as np

from hipress.compression.compiler.backends.cuda.program import ENTRY
from hipress.compression.compiler.backends.numpy.interpreter import check_params
from hipress.compression.compiler.compiler_errors import BuildError
from hipress.compression.compiler.ir.ir import Program
from hipress.compression.compiler.runtime.cuda_build import build
from hipress.compression.compiler.runtime.native import declarations
from hipress.native import library

__all__ = [
    "Algorithm",
    "BuildError",
    "CudaError",
    "DecodeCall",
    "EncodeCall",
    "Library",
    "built_in",
    "built_in_library",
]

ABI_VERSION = 2
"""Version of the interface in cuda/abi.h."""
SHAPES = {"auto": 0, "grid": 1, "block": 2}


class CudaError(RuntimeError):
    """CUDA, or a call's arguments, are not as they must be."""


_ABI = declarations("cuda/abi.h")
EncodeCall = _ABI.CompllCudaEncode
DecodeCall = _ABI.CompllCudaDecode
_Table = _ABI.CompllCudaAlgorithm


class Library:
    """A library of algorithms, and memory of the device that it runs on.

    Raises:
        CudaError: If it cannot be loaded, or there is no GPU for it.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.handle = ctypes.CDLL(str(path))
        except OSError as error:
            raise CudaError(f"{path} cannot be loaded: {error}") from None
        self.handle.hipress_cuda_error.restype = c_char_p
        self.handle.hipress_cuda_launches.restype = c_uint64
        for name, types in (
            ("alloc", [POINTER(c_void_p), c_int64]),
            ("free", [c_void_p]),
            ("wait", [c_void_p]),
            ("copy", [c_void_p, c_void_p, c_int64, c_void_p]),
            ("devices", [POINTER(c_int)]),
        ):
            getattr(self.handle, f"hipress_cuda_{name}").argtypes = types
        count = c_int(0)
        error = self.handle.hipress_cuda_devices(byref(count))
        if error or count.value == 0:
            why = self.handle.hipress_cuda_error(error).decode() if error else "none was found"
            raise CudaError(f"there is no GPU for CUDA code: {why}")

    def check(self, error: int, doing: str) -> None:
        """Raise CUDA's error, if a call has returned one."""
        if error:
            raise CudaError(f"{doing} failed: {self.handle.hipress_cuda_error(error).decode()}")

    @property
    def launches(self) -> int:
        """Number of kernels launched so far."""
        return self.handle.hipress_cuda_launches()

    def alloc(self, size: int) -> int:
        """Allocate `size` bytes of device memory, which free() frees."""
        at = c_void_p()
        self.check(self.handle.hipress_cuda_alloc(byref(at), max(size, 1)), f"taking {size} bytes")
        return at.value

    def free(self, at: int) -> None:
        """Free memory of alloc()."""
        self.check(self.handle.hipress_cuda_free(at), "giving memory back")

    def copy(self, to: int, source: int, size: int) -> None:
        """Copy within and between host and device memory, and wait."""
        self.check(self.handle.hipress_cuda_copy(to, source, size, None), f"copying {size} bytes")
        self.check(self.handle.hipress_cuda_wait(None), f"copying {size} bytes")


class Algorithm:
    """An algorithm's functions on device pointers. Nothing here waits for the device.

    Args:
        program: An optimized program.
        library: A library with it. By default it is built, which needs nvcc.
        entry: The library's function that returns it.
        params: Values of its parameters.

    Raises:
        BuildError: If there is no compiler.
        CudaError: If there is no GPU or driver.
    """

    def __init__(
        self,
        program: Program,
        library: Path | None = None,
        entry: str = ENTRY,
        **params: float | int,
    ) -> None:
        self.program = program
        self.params = check_params(program, params)
        self.library = Library(library or build(program))
        function = getattr(self.library.handle, entry)
        function.restype = POINTER(_Table)
        self.table = function().contents
        if self.table.abi_version != ABI_VERSION:
            raise CudaError(
                f"{library or program.name} is built for version {self.table.abi_version} of "
                f"cuda/abi.h, not {ABI_VERSION}: build it again"
            )
        self.values = (c_double * max(len(self.params), 1))(*self.params.values())

    def max_bytes(self, n: int) -> int:
        """Return an upper bound of the payload of n elements."""
        return self.table.max_bytes(n, self.values)

    def encode_workspace(self, n: int) -> int:
        """Return the bytes of workspace that encode() needs for n elements."""
        return self.table.encode_workspace(n, self.values)

    def decode_workspace(self, n: int) -> int:
        """Return the bytes of workspace that decode() needs for n elements."""
        return self.table.decode_workspace(n, self.values)

    @property
    def fixed_size(self) -> bool:
        """Whether every payload of n elements has max_bytes(n) bytes."""
        return bool(self.table.fixed_size)

    def encode_call(
        self,
        gradient: int,
        n: int,
        states: Sequence[int],
        payload: int,
        capacity: int,
        size: int,
        workspace: int,
        step: int = 0,
        place: int = 0,
        skip: int | None = None,
    ) -> EncodeCall:
        """Return a call, for encode() or for a list of calls in device memory.

        Args:
            gradient: Device pointer of float32[n].
            n: Number of elements.
            states: Device pointers of float32[n].
            payload: Device pointer of `capacity` bytes.
            capacity: At least max_bytes(n).
            size: Device pointer of an int64, where the payload's size goes.
            workspace: Device pointer of encode_workspace(n) bytes.
            step: Encodes of these states so far.
            place: Number that distinguishes encoders of a job that share a seed.
            skip: Device pointer of an int64: if that is not 0 when the device comes to the call,
                nothing is written, states included.
        """
        if len(states) != len(self.program.states):
            wanted = ", ".join(self.program.states) or "none"
            raise ValueError(f"{self.program.name} has the states {wanted}, not {len(states)}")
        pointers = (c_void_p * _ABI.COMPLL_CUDA_STATES)(*states)
        return EncodeCall(
            gradient, n, pointers, step, place, payload, capacity, size, workspace, skip
        )

    def encode(self, call: EncodeCall, stream: int = 0, shape: str = "auto") -> None:
        """Enqueue an encode on a stream."""
        error = self.table.encode(byref(call), self.values, SHAPES[shape], stream or None)
        self.library.check(error, f"encoding with {self.program.name}")

    def decode(
        self, call: DecodeCall, add: bool = False, stream: int = 0, shape: str = "auto"
    ) -> None:
        """Enqueue out = decoded, or with `add` out += decoded."""
        error = self.table.decode(byref(call), self.values, int(add), SHAPES[shape], stream or None)
        self.library.check(error, f"decoding with {self.program.name}")

    def encode_batch(self, calls: int, count: int, step: int = 0, stream: int = 0) -> None:
        """Enqueue `count` encodes of calls in device memory; `step` is added to each one's."""
        error = self.table.encode_batch(calls, count, self.values, step, stream or None)
        self.library.check(error, f"encoding a batch with {self.program.name}")

    def decode_batch(self, calls: int, count: int, add: bool = False, stream: int = 0) -> None:
        """Enqueue in one launch the decodes of `count` calls that lie in device memory."""
        error = self.table.decode_batch(calls, count, self.values, int(add), stream or None)
        self.library.check(error, f"decoding a batch with {self.program.name}")

    def decode_sum(self, calls: Sequence[DecodeCall], stream: int = 0, shape: str = "auto") -> None:
        """Enqueue out = the sum of several payloads: calls that share n and out."""
        listed = (DecodeCall * len(calls))(*calls)
        error = self.table.decode_sum(
            listed, len(calls), self.values, SHAPES[shape], stream or None
        )
        self.library.check(error, f"merging with {self.program.name}")

    def sentence(self, status: np.ndarray) -> str:
        """Return the message for a decode's status (int64[2], not {0, 0})."""
        text = self.table.sentence(int(status[0]))
        if text is None:
            return f"has the unknown status {int(status[0])}"
        return text.decode().replace("%lld", str(int(status[1]))).replace("%%", "%")


def built_in_library() -> Path:
    """Return the path of libhipress_cuda.so, which may not exist.

    A source tree has it in the folder of libhipress.so. The distribution hipress-cuda12 has it
    otherwise.

    Raises:
        CudaError: If hipress-cuda12 is installed in another version than this package.
    """
    path = library.library_path().with_name("libhipress_cuda.so")
    package = None if path.exists() else importlib.util.find_spec("hipress_cuda12")
    if package is None:
        return path
    version, own = metadata.version("hipress-cuda12"), library.version()
    if version != own:
        raise CudaError(
            f"hipress-cuda12 is version {version}, but hipress is version {own}: "
            f"pip install hipress-cuda12=={own}"
        )
    return Path(package.submodule_search_locations[0]) / path.name


def built_in(program: Program, library: Path) -> str | None:
    """Return the entry of just this program, for Algorithm(), or None without one."""
    try:
        find = ctypes.CDLL(str(library)).hipress_cuda_algorithm
    except (OSError, AttributeError):
        return None
    find.restype, find.argtypes = POINTER(_Table), [c_char_p]
    table = find(program.name.encode())
    if not table or table.contents.abi_version != ABI_VERSION:
        return None
    same = table.contents.spec.decode() == program.digest
    return f"hipress_compll_cuda_{program.identifier}" if same else None
