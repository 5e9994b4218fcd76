"""The cosines of `dct` and `idct`: one table for all backends, as text for those that compile.

Block sizes are powers of two. The transforms are those of Plonka and Tasche, "Fast and numerically
stable algorithms for discrete cosine transforms", Linear Algebra and its Applications 394, 2005:
orthogonal at each step, so errors do not grow. backends/numpy/cosines.py defines each operation.
"""

from __future__ import annotations

import math

import numpy as np

from hipress.compression.compiler.backends.common.expressions import literal
from hipress.compression.compiler.backends.common.text import block, indent
from hipress.compression.compiler.ir.ir import TRANSFORMS, Program

HALF = float(np.float32(math.sqrt(0.5)))


def cosines(size: int) -> np.ndarray:
    """Return float32[size]: cos(pi (2 j + 1) / (4 size)) for each j; the sines from the last one
    on.

    Computed as doubles and rounded. No value is so close to the middle of two floats that libraries
    of mathematics could round it differently, so the table is the same on every machine.
    """
    angles = [math.pi * (2 * j + 1) / (4 * size) for j in range(size)]
    return np.array([math.cos(angle) for angle in angles], np.float32)


def transforms(program: Program) -> bool:
    """Return whether a program has dct or idct."""
    return any(i.op in ("dct", "idct") for f in program.functions for i in f.instrs())


def table(program: Program, declaration: str) -> list[str]:
    """Return the table that generated code looks up: size s begins at s - 2. Empty if nothing needs
    it."""
    if not transforms(program):
        return []
    sizes = [2**k for k in range(1, TRANSFORMS[-1].bit_length() - 1)]
    values = [literal(float(value), "f32") for size in sizes for value in cosines(size)]
    rows = [", ".join(values[at : at + 8]) + "," for at in range(0, len(values), 8)]
    return [*block(f"{declaration} kCosines[{len(values)}] =", indent(rows), end="};"), ""]
