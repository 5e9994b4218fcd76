"""Codecs: the algorithms that encode a gradient as a payload, and the compiler that makes them.

:mod:`~hipress.compression.compressor` calls a codec on an array. CompLL, the compiler of an
algorithm's source to C++ and CUDA, is :mod:`~hipress.compression.compiler`. How payloads travel
does not belong here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hipress.compression.compressor import CodecInfo, Compressor, Param, codecs

__all__ = ["CodecInfo", "Compressor", "Param", "codecs"]


def __getattr__(name: str) -> object:
    # Late: the compiler runs before the native library exists, which the compressor loads.
    if name in __all__:
        from hipress.compression import compressor

        return getattr(compressor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
