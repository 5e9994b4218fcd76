"""Lazy states: the next encode does the work of the last pass over memory.

Where the first pass keeps x = gradient + residual in the residual (passes/keep.py), and the last
makes the new residual of it and of numbers that were only found out in between (onebit's means),
the last is not done, and the numbers are saved instead. The next encode forms the residual while
it reads x: one pass fewer, the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compression.compiler.ir.ir import Instr, Loop, Program, node_reads, node_writes

MAX_LAZY = 8
_BY_PLACE = ("index", "random", "random16")


@dataclass
class LazyState:
    """Values from which `last` makes `state`: the stores of `first`, and `uniforms`."""

    state: str
    position: int
    first: Loop
    last: Loop
    x: Instr
    body: list[Instr]
    result: Instr
    uniforms: list[Instr]


def lazy_state(program: Program) -> LazyState | None:
    """Return the description of a program's lazy residual, or None if it cannot be lazy."""
    function = program.encode
    if function is None or "residual" not in program.states:
        return None
    state = "residual"
    writers = [node for node in function.body if state in node_writes(node)]
    readers = [node for node in function.body if state in node_reads(node)]
    if len(writers) != 2 or readers[:1] != writers[:1] or readers[-1:] != writers[1:]:
        return None
    first, last = writers
    if not isinstance(first, Loop) or not isinstance(last, Loop):
        return None
    if {i.op for i in [*first.body, *last.body] if state in i.vec} != {"load", "store"}:
        return None
    if node_writes(last) != {state} or node_reads(last) != {state} or last.results:
        return None
    x, *others = [instr for instr in last.body if instr.op == "load"]
    result = next(instr for instr in last.body if instr.op == "store").args[0]
    body = [instr for instr in last.body if instr.op not in ("load", "store")]
    uniforms = _uniforms(body, last)
    if others or uniforms is None or any(i.op in _BY_PLACE for i in body):
        return None
    position = program.states.index(state)
    return LazyState(state, position, first, last, x, body, result, uniforms)


def _uniforms(body: list[Instr], loop: Loop) -> list[Instr] | None:
    """Return the numbers from outside of the loop that a body needs, if floats can hold them."""
    inside = {instr.id for instr in loop.body}
    found: dict[int, Instr] = {}
    for instr in body:
        for arg in instr.args:
            if arg.id not in inside and arg.op != "const":
                found[arg.id] = arg
    known = list(found.values())
    if len(known) > MAX_LAZY or any(instr.type not in ("f32", "bool") for instr in known):
        return None
    return known
