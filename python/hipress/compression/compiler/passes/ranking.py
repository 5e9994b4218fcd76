"""`topk` in the pass that makes its values: a sample first, then only candidates are kept.

The values are not stored. A sample of lines determines a key that somewhat more than k elements
reach, and the pass collects those that do. If they are fewer than k, the values are made once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compression.compiler.ir.ir import Function, Instr, Loop, node_defines
from hipress.compression.compiler.ir.slices import backward
from hipress.compression.compiler.passes.lazy import LazyState
from hipress.compression.compiler.passes.vector_uses import num_readers, operations

_ELSEWHERE = ("random", "random16", "bucket_load", "bucket_reduce", "reduce")


@dataclass(eq=False)
class Ranking:
    """Operation `topk` on the values that `loop` stores."""

    topk: Instr
    loop: Loop
    first: list[Instr]
    sample: Loop
    again: Loop


def rankings(function: Function, lazy: LazyState | None) -> dict[str, Ranking]:
    """Return rankings by the names of the vectors that need not be stored."""
    found = {}
    for topk in operations(function, "topk"):
        source, position = topk.vec[1], function.body.index(topk)
        vector = function.vectors[source]
        if num_readers(function, source) != 1 or (vector.elem, vector.kind) != ("f32", "temp"):
            continue
        writers = [
            (at, loop)
            for at, loop in enumerate(function.body)
            if isinstance(loop, Loop) and any(source in i.vec for i in loop.body)
        ]
        if len(writers) != 1 or writers[0][0] > position:
            continue
        at, loop = writers[0]
        if loop.guard is not None or any(i.op.startswith("bucket_") for i in loop.body):
            continue
        if lazy is not None and loop in (lazy.first, lazy.last):
            continue
        if any(loop is other.loop for other in found.values()):
            continue  # one loop collects the candidates of one ranking
        first = _scalars(topk.args[0], function.body[at + 1 : position])
        again = _again(function, loop, source)
        if first is not None and again is not None:
            store = next(i for i in loop.body if i.op == "store" and i.vec[0] == source)
            sample = Loop(loop.domain, [*backward(store.args[0], loop.body), store])
            if any(i.op in ("random", "random16") for i in sample.body):
                continue  # numbers are drawn for all elements of a tile, and a sample has few
            found[source] = Ranking(topk, loop, first, sample, again)
    return found


def _scalars(value: Instr, between: list) -> list[Instr] | None:
    """Return the instructions between that a number needs; None if some cannot be moved up."""
    found = backward(value, [node for node in between if isinstance(node, Instr)])
    needed = {value.id} | {arg.id for instr in found for arg in instr.args}
    if any(isinstance(node, Loop) and needed & node_defines(node) for node in between):
        return None
    return None if any(instr.vec or instr.op == "field" for instr in found) else found


def _again(function: Function, loop: Loop, source: str) -> Loop | None:
    """Return a loop that makes the values from the results of `loop`, if these suffice."""
    store = next(i for i in loop.body if i.op == "store" and i.vec[0] == source)
    written = {name for i in loop.body for name in i.vec[:1] if i.op in ("store", "bucket_reduce")}
    kept = {
        i.args[0].id: i.vec[0]
        for i in loop.body
        if i.op == "store"
        and i is not store
        and function.vectors[i.vec[0]].elem == "f32"
        and function.vectors[i.vec[0]].needs is None
    }
    inside = {instr.id for instr in loop.body}
    copies: dict[int, Instr] = {}

    def copy(instr: Instr) -> Instr | None:
        if instr.id not in inside or instr.id in copies:
            return copies.get(instr.id, instr)
        if instr.id in kept:
            made = Instr("load", [], "f32", [kept[instr.id]])
        elif instr.op in _ELSEWHERE or written & set(instr.vec):
            return None
        else:
            args = [copy(arg) for arg in instr.args]
            if None in args:
                return None
            made = Instr(instr.op, args, instr.type, list(instr.vec), dict(instr.attrs))
        copies[instr.id] = made
        return made

    value = copy(store.args[0])
    if value is None:
        return None
    return Loop(loop.domain, [*copies.values(), Instr("store", [value], "none", [source])])
