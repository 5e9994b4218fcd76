"""Generated CUDA to a shared library, cached by content: by nvcc, or by g++ for the emulation."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hipress.compll.backends.cuda.program import generate
from hipress.compll.errors import BuildError
from hipress.compll.ir.ir import Program
from hipress.compll.runtime.library_cache import cxx, library
from hipress.compll.runtime.native import include_directory

# One PTX, assembled for each: nothing here needs a newer instruction. The PTX serves later chips.
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90")
# Contracted multiply-adds would change bits from one device to the next.
_NVCC = ["-std=c++17", "-O2", "-fmad=false", "--expt-relaxed-constexpr", "-shared",
         "-cudart=static", "-Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off"]  # fmt: skip
# Fibers jump from stack to stack, which _FORTIFY_SOURCE takes for an error.
EMULATION_FLAGS = ["-std=c++17", "-Og", "-fPIC", "-shared", "-ffp-contract=off", "-fwrapv",
                   "-fvisibility=hidden", "-U_FORTIFY_SOURCE", "-DHIPRESS_CUDA_EMULATION",
                   "-x", "c++"]  # fmt: skip


def nvcc() -> str | None:
    """The CUDA compiler: NVCC, or nvcc in PATH or below CUDA_HOME or /usr/local/cuda."""
    chosen = os.environ.get("NVCC")
    if chosen:
        return shutil.which(chosen)
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    return shutil.which("nvcc") or shutil.which(os.path.join(home, "bin", "nvcc"))


def build(program: Program, emulate: bool = False, arch: str | None = None) -> Path:
    """Compiles an optimised program, unless the cache has it.

    :param emulate: for a CPU that plays the GPU (slow: for tests) instead of a GPU
    :param arch: as sm_90 or native, for that GPU; None: for all of ARCHITECTURES and later ones
    :returns: path of the shared library
    :raises BuildError: if the compiler is missing or fails
    """
    kind, command = "cuda", [nvcc(), *_NVCC]
    if emulate:
        kind, command = "emulated", [*cxx(), *EMULATION_FLAGS]
    elif command[0] is None:
        raise BuildError(
            "there is no CUDA compiler: nvcc is neither in PATH nor in /usr/local/cuda/bin; "
            "install the CUDA toolkit, or set NVCC to where it is"
        )
    elif arch:
        command.append(f"-arch={arch}")
    else:
        codes = ",".join([*ARCHITECTURES, "compute_75"])
        command.append(f"-gencode=arch=compute_75,code=[{codes}]")
    include = include_directory()
    folder = include / "operator/contrib/compll/cuda"
    headers = sorted([*folder.glob("*.h"), *folder.glob("*.cuh")])
    shared = ("half.h", "compll/abi.h", "compll/convert.h", "compll/floats_layout.h")
    headers += [include / "operator/contrib" / name for name in shared]
    command.append(f"-I{include}")
    name = f"{program.name}-{kind}"
    return library(name, "generated.cu", generate(program), command, depends=headers)
