"""The order of the passes, with the verifier after each."""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import Program
from hipress.compression.compiler.ir.verify import verify
from hipress.compression.compiler.passes.forward import forward
from hipress.compression.compiler.passes.fuse import fuse
from hipress.compression.compiler.passes.guard import guard
from hipress.compression.compiler.passes.keep import keep, move_up
from hipress.compression.compiler.passes.simplify import cse, dce, fold

PASSES = (
    ("fold", fold),
    ("cse", cse),
    ("forward", forward),
    ("dce", dce),
    ("fuse", fuse),
    ("cse", cse),
    ("fold", fold),
    ("dce", dce),
    ("keep", keep),
    ("dce", dce),
    ("move up", move_up),
    ("cse", cse),
    ("dce", dce),
    ("guard", guard),
)


def optimize(program: Program) -> Program:
    """Run all passes on a program, in place.

    :raises IRError: if a pass breaks the IR
    """
    verify(program)
    for name, run in PASSES:
        for function in program.functions:
            run(function)
        verify(program, name)
    program.optimized = True
    return program
