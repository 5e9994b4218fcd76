"""CompLL's algorithms on a GPU; hipress.compll.runtime.cuda has the code."""

from hipress.compll.errors import BuildError
from hipress.compll.runtime.cuda import (
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
