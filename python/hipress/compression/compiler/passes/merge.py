"""Merge of several nodes' payloads into one sum: the definition for every backend.

In general sum[i] = (d0[i] + d1[i]) + d2[i] ... in float32, in the payloads' order. A sparse payload
adds only where it has an element. The exception is a decoder that is one pass over a payload's
fields and ends in `gradient = unit * level`, with `level` a vector of int and `unit` a number that
does not depend on the payload. Its payloads are merged as unit * (sum of the levels): the levels
are added as int32, converted to float32 and multiplied once. Passes make one pass of several, so
this applies to an optimized program.
"""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compression.compiler.ir.ir import Function, Instr, Loop
from hipress.compression.compiler.passes.buckets import is_dense


@dataclass
class Levels:
    """`loop` stores unit * level: `level` (i32) is made in it, `unit` (f32) before it."""

    loop: Loop
    store: Instr
    level: Instr
    unit: Instr


def integer_levels(function: Function) -> Levels | None:
    """Return the integer levels by which a decoder's payloads are merged, or None."""
    others = [node for node in function.body if isinstance(node, Instr) and node.vec]
    if not is_dense(function) or any(node.op != "field_vector" for node in others):
        return None
    writers = [node for node in function.body if _writes(node, function.output)]
    if len(writers) != 1 or not isinstance(writers[0], Loop):
        return None
    loop = writers[0]
    store = next(i for i in loop.body if i.op == "store" and i.vec[0] == function.output)
    product = store.args[0]
    inside = {instr.id for instr in loop.body}
    if product.op != "mul" or product.id not in inside:
        return None
    for unit, level in (product.args, product.args[::-1]):
        if level.op == "cast" and level.id in inside and level.args[0].type == "i32":
            if level.args[0].id in inside and _independent(unit):
                return Levels(loop, store, level.args[0], unit)
    return None


def _writes(node: Instr | Loop, name: str) -> bool:
    parts = node.body if isinstance(node, Loop) else [node]
    return any(part.op in ("store", "scatter") and part.vec[0] == name for part in parts)


def _independent(value: Instr) -> bool:
    """Return whether a number follows from the parameters alone."""
    if value.op in ("field", "load", "load_at", "bucket_load", "element", "index", "reduce"):
        return False
    return value.op not in ("random", "random16") and all(map(_independent, value.args))
