"""CompLL's algorithms on a GPU; hipress.compression.compiler.runtime.cuda has the code."""

from hipress.compression.compiler.errors import BuildError
from hipress.compression.compiler.runtime.cuda import (
    Algorithm,
    CudaError,
    DecodeCall,
    EncodeCall,
    Library,
    built_in,
    built_in_library,
)

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
