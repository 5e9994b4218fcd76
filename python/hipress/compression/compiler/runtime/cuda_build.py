"""Compile generated CUDA to a shared library with nvcc. Libraries are cached by content."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from hipress.compression.compiler.backends.cuda.program import generate
from hipress.compression.compiler.compiler_errors import BuildError
from hipress.compression.compiler.ir.ir import Program
from hipress.compression.compiler.runtime.library_cache import library
from hipress.compression.compiler.runtime.native import include_directory

# One PTX, assembled for each: nothing here needs a newer instruction. The PTX serves later chips.
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90")
# Contracted multiply-adds would change bits from one device to the next.
_NVCC = [
    "-std=c++17",
    "-O2",
    "-fmad=false",
    "--expt-relaxed-constexpr",
    "-shared",
    "-cudart=static",
    "-Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off",
]


def nvcc() -> str | None:
    """Return the CUDA compiler: NVCC, or nvcc in PATH or below CUDA_HOME or /usr/local/cuda."""
    chosen = os.environ.get("NVCC")
    if chosen:
        return shutil.which(chosen)
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    return shutil.which("nvcc") or shutil.which(os.path.join(home, "bin", "nvcc"))


def build(program: Program, arch: str | None = None) -> Path:
    """Compile an optimized program, unless the cache has it, and return the shared library.

    Args:
        program: The program.
        arch: An architecture such as sm_90 or native, to compile for that GPU only. By default the
            library runs on all of ARCHITECTURES and on later ones.

    Raises:
        BuildError: If the compiler is missing or fails.
    """
    compiler = nvcc()
    if compiler is None:
        raise BuildError(
            "there is no CUDA compiler: nvcc is neither in PATH nor in /usr/local/cuda/bin; "
            "install the CUDA toolkit, or set NVCC to where it is"
        )
    codes = ",".join([*ARCHITECTURES, "compute_75"])
    target = f"-arch={arch}" if arch else f"-gencode=arch=compute_75,code=[{codes}]"
    return compile_cached(f"{program.name}-cuda", generate(program), [compiler, *_NVCC, target])


def compile_cached(
    name: str, source: str, command: Sequence[str], depends: Sequence[Path] = ()
) -> Path:
    """Return a shared library of CUDA source, compiled unless the cache has it; see library().

    The source's headers are in include_directory(); `depends` are others that make a difference.
    """
    include = include_directory()
    folder = include / "operator/contrib/compll/cuda"
    headers = sorted([*folder.glob("*.h"), *folder.glob("*.cuh")])
    shared = ("abi.h", "layout.h", "scalar.h")
    headers += [folder.parent / name for name in shared]
    headers += [include / "operator/contrib/half.h", *depends]
    return library(name, "generated.cu", source, [*command, f"-I{include}"], depends=headers)
