"""Gradient compression for distributed training: codecs, synchronization graphs, a kvstore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipress import _aliases

if TYPE_CHECKING:
    from hipress.compression.compressor import CodecInfo, Compressor, codecs
    from hipress.config import CompressionConfig

__version__ = "0.1.0"
"""Version of the package and of the native library, whose builds read it from the line above."""

__all__ = ["CodecInfo", "CompressionConfig", "Compressor", "codecs"]


_aliases.install()


def __getattr__(name: str) -> object:
    # Late, so that pure Python parts (graphs, planner) can be used where the library is not built.
    if name in __all__:
        from hipress import config
        from hipress.compression import compressor

        return getattr(config if name == "CompressionConfig" else compressor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
