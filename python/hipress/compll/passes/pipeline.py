"""The order of the passes, with the verifier after each."""

from __future__ import annotations

from hipress.compll.ir.ir import Program
from hipress.compll.ir.verify import verify
from hipress.compll.passes.forward import forward
from hipress.compll.passes.fuse import fuse
from hipress.compll.passes.guard import guard
from hipress.compll.passes.keep import keep, move_up
from hipress.compll.passes.simplify import cse, dce, fold

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
    """Runs all passes on a program, in place.

    :raises IRError: if a pass breaks the IR
    """
    verify(program)
    for name, run in PASSES:
        for function in program.functions:
            run(function)
        verify(program, name)
    program.optimized = True
    return program
