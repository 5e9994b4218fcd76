"""Arrays of other libraries as NumPy views: DLPack, the buffer protocol, MXNet."""

from __future__ import annotations

import ctypes

import numpy as np

from hipress.dtypes import STORAGE

_CPU, _CUDA = 1, 2
# Devices of DLPack whose memory this process can read: CPU, pinned by CUDA, pinned by ROCm.
_READABLE = (_CPU, 3, 11)
_DEVICES = {_CUDA: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA managed"}
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_STORAGE = {**STORAGE, "uint8": np.uint8}  # types of gradients and payloads


class _Tensor(ctypes.Structure):
    """DLTensor, the part of DLPack that is the same in all versions."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# Not ctypes.pythonapi.PyCapsule_GetPointer: MXNet sets other types on that shared object.
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Foreign:
    """Memory of a DLPack capsule, for numpy.asarray. An unconsumed capsule frees it."""

    def __init__(self, capsule: object, what: str) -> None:
        self._capsule = capsule
        tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
        if tensor.device_type not in _READABLE:
            raise ValueError(_wrong_device(what, tensor.device_type))
        self.dtype = f"{_KINDS.get(tensor.code, 'type')}{tensor.bits}"
        if self.dtype not in _STORAGE or tensor.lanes != 1:
            raise ValueError(
                f"{what} must be of float32, float16, bfloat16 or (a payload) uint8, "
                f"not {self.dtype}"
            )
        storage = np.dtype(_STORAGE[self.dtype])
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        strides = None
        if tensor.strides:
            strides = tuple(tensor.strides[i] * storage.itemsize for i in range(tensor.ndim))
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": storage.str,
            # An empty tensor may have no memory, but NumPy requires an address.
            "data": ((tensor.data or 64) + tensor.byte_offset, False),
        }


def _wrong_device(what: str, device: int) -> str:
    name = _DEVICES.get(device, f"DLPack device {device}")
    if device == _CUDA:
        return (
            f"{what} is in {name} memory, which this CPU codec cannot read: "
            "give it in CPU memory (torch: .cpu())"
        )
    return f"{what} is in {name} memory; it must be in CPU memory"


def view(data: object, what: str, writable: bool = False) -> tuple[np.ndarray, str]:
    """Return a NumPy view of an array's memory, without a copy, and the name of its element type.

    bfloat16 is viewed as uint16, from any library. The view keeps the memory alive.

    Args:
        data: NumPy (or ml_dtypes) array, an object with ``__dlpack__`` (PyTorch, JAX, ...), with
            MXNet's ``to_dlpack_for_read``, or with the buffer protocol.
        what: Name of the array in errors, for example "gradient".
        writable: Whether the caller writes into it.

    Raises:
        TypeError: If it is another kind of object.
        ValueError: If it is read-only, on another device, or not of a type for gradients or
            payloads.
    """
    if isinstance(data, np.ndarray):
        array, dtype = data, data.dtype.name
        if dtype == "bfloat16":
            array = array.view(np.uint16)
    elif hasattr(data, "__dlpack__") or hasattr(data, "to_dlpack_for_read"):
        foreign = _Foreign(_capsule(data, what, writable), what)
        array, dtype = np.asarray(foreign), foreign.dtype
    else:
        try:
            memory = memoryview(data)
        except TypeError:
            raise TypeError(
                f"{what} must be an array (NumPy, or one that speaks DLPack or the buffer "
                f"protocol), not a {type(data).__name__}"
            ) from None
        array = np.asarray(memory)
        dtype = array.dtype.name
    if writable and not array.flags.writeable:
        raise ValueError(f"{what} is read-only memory; it must be writable")
    if writable and not array.flags.c_contiguous:
        raise ValueError(f"{what} must be contiguous to be written in place")
    return array, dtype


def _capsule(data: object, what: str, writable: bool) -> object:
    """Return the array as an unversioned DLPack capsule. MXNet's waits for running operations."""
    if hasattr(data, "to_dlpack_for_read"):
        return data.to_dlpack_for_write() if writable else data.to_dlpack_for_read()
    try:
        device = data.__dlpack_device__()[0] if hasattr(data, "__dlpack_device__") else _CPU
        if int(device) not in _READABLE:
            raise ValueError(_wrong_device(what, int(device)))
        if getattr(data, "requires_grad", False) and not writable:
            data = data.detach()
        return data.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{what} cannot be used where it lies: {error}") from error


def payload_view(data: object, what: str = "payload", writable: bool = False) -> np.ndarray:
    """Return a flat uint8 view of a payload: bytes-like, or an array of uint8.

    Raises:
        ValueError: For another element type, or memory that is not contiguous.
    """
    array, dtype = view(data, what, writable)
    if dtype != "uint8":
        raise ValueError(f"{what} must be bytes or an array of uint8, not of {dtype}")
    return np.ascontiguousarray(array).reshape(-1)
