"""CUDA kernels on the CPU, for tests: compiled with tests/cuda_emulation/cuda_runtime.h."""

from __future__ import annotations

from ctypes import c_int, c_uint64
from pathlib import Path

from hipress.compression.compiler import Program
from hipress.compression.compiler.backends.cuda.program import generate
from hipress.compression.compiler.cuda import Algorithm, Library
from hipress.compression.compiler.runtime.cuda_build import compile_cached
from hipress.compression.compiler.runtime.library_cache import cxx

INCLUDE = Path(__file__).resolve().parents[1] / "cuda_emulation"
# Fibers switch stacks, which _FORTIFY_SOURCE reports as an error.
FLAGS = [
    "-std=c++17",
    "-Og",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fwrapv",
    "-fvisibility=hidden",
    "-U_FORTIFY_SOURCE",
    f"-I{INCLUDE}",
    "-x",
    "c++",
]


def build(program: Program) -> Path:
    """Compile a program's CUDA code for the CPU, and return the library's path."""
    return compile_cached(
        f"{program.name}-emulated",
        generate(program),
        [*cxx(), *FLAGS],
        [INCLUDE / "cuda_runtime.h"],
    )


def emulate(library: Library, seed: int, processors: int = 3) -> None:
    """Set how an emulated GPU runs.

    Args:
        library: A library that build() has returned, or another one with the emulation.
        seed: The seed of the order in which blocks and threads run. 0 runs them in order.
        processors: The number of the GPU's processors.
    """
    library.handle.hipress_cuda_emulate(c_uint64(seed), c_int(processors))


def kernels():
    """Return the kernels of hipress.torch.ops for tensors on the CPU."""
    from hipress.torch.executors.cuda.kernels import CudaKernels

    class EmulatedKernels(CudaKernels):
        def handle(self, device) -> int:
            return 0

        def load(self, program, values) -> Algorithm:
            return Algorithm(program, build(program), **values)

    return EmulatedKernels()
