"""Codecs: the algorithms that encode a gradient as a payload, and the compiler that makes them.

What belongs here: bytes. Gradient and residual become a payload, payloads become a sum. What does
not: how payloads travel, and which gradients are compressed.

:mod:`~hipress.compression.compressor` calls a codec on an array.
:mod:`~hipress.compression.user_codecs` loads the files that HIPRESS_CODECS names. CompLL, the
compiler of an algorithm's source to C++ and CUDA, is :mod:`~hipress.compression.compiler`; its
built-in algorithms are in ``compiler/specs``, one file each. The native side is
``src/operator/contrib``: the code that generated codecs call, and an entropy stage (entropy.cc),
which is a codec around another one.
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
