"""Passes over the IR: some change it, others analyze it for the backends. None knows a backend.

:mod:`simplify` and :mod:`loops` change programs; :mod:`bounds` and :mod:`analyses` do not.
"""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import Program
from hipress.compression.compiler.ir.verify import verify
from hipress.compression.compiler.passes import loops, simplify

PASSES = (
    ("fold", simplify.fold),
    ("cse", simplify.cse),
    ("forward", loops.forward),
    ("dce", simplify.dce),
    ("fuse", loops.fuse),
    ("cse", simplify.cse),
    ("fold", simplify.fold),
    ("dce", simplify.dce),
    ("keep", loops.keep),
    ("dce", simplify.dce),
    ("move up", loops.move_up),
    ("cse", simplify.cse),
    ("dce", simplify.dce),
    ("guard", simplify.guard),
)


def optimize(program: Program) -> Program:
    """Run all passes on a program, in place, with the verifier after each.

    Raises:
        IRError: If a pass breaks the IR.
    """
    verify(program)
    for name, run in PASSES:
        for function in program.functions:
            run(function)
        verify(program, name)
    program.optimized = True
    return program
