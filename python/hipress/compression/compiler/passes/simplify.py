"""Constant folding, common subexpressions, dead stores, dead code, and guards of loops."""

from __future__ import annotations

import math
from collections import Counter

from hipress.compression.compiler.ir.ir import (
    COMPARE,
    OPS,
    Function,
    Instr,
    IrNode,
    Loop,
    final,
    replace,
)

_WHOLE = ("add", "sub", "mul", "and", "or", "xor")


def fold(function: Function) -> None:
    """Compute integers and comparisons of constants, in place. Backends compute floats."""
    mapping: dict[int, Instr] = {}
    uses = Counter(arg.id for instr in function.instrs() for arg in instr.args)
    for instr in function.instrs():
        instr.args = [final(arg, mapping) for arg in instr.args]
        if instr.op == "select":
            _decided(instr, uses)
        value = _folded(function, instr)
        if isinstance(value, Instr):
            mapping[instr.id] = value
        elif value is not None:
            instr.op, instr.args, instr.attrs = "const", [], {"value": value}
    replace(function, mapping)


def _folded(function: Function, instr: Instr) -> object:
    """Return a number, an operand, or None."""
    op = instr.op
    if op == "select":
        condition, yes, no = instr.args
        if condition.op == "const":
            return yes if condition.attrs["value"] else no
        return yes if yes is no else None
    if op == "ne" and instr.args[1].op == "const" and instr.args[1].attrs["value"] == 0:
        # (bool as int) != 0 is the bool.
        inner = instr.args[0]
        if inner.op == "cast" and inner.args[0].type == "bool":
            return inner.args[0]
    if op == "eq" and instr.args[1].op == "const":
        condition = _chosen(instr.args[0], instr.args[1].attrs["value"])
        if condition is not None:
            return condition
    if op == "wrap" and _fits(function, instr.args[0], instr.attrs["bits"]):
        return instr.args[0]
    if not instr.args or any(arg.op != "const" for arg in instr.args):
        return None
    values = [arg.attrs["value"] for arg in instr.args]
    whole = instr.type in ("i32", "i64")
    if op in COMPARE and not any(isinstance(v, float) and math.isnan(v) for v in values):
        return bool(OPS[op].python(*values))
    if op == "not":
        return not values[0]
    if whole and (op in _WHOLE or op in ("shl", "shr") and 0 <= values[1] < 31):
        result = OPS[op].python(*values)
        return result if abs(result) < 2**31 else None
    if op == "neg" and (isinstance(values[0], float) or abs(values[0]) < 2**31):
        return -values[0] if instr.type != "u32" else None
    if op == "cast" and instr.args[0].type in ("i32", "i64") and abs(values[0]) < 2**24:
        return float(values[0]) if instr.type in ("f32", "f64") else None
    return None


def _fits(function: Function, value: Instr, bits: int | str) -> bool:
    """Return whether an integer is known to have no more than `bits` bits."""
    codes = _constants(value)
    if codes and isinstance(bits, int) and all(0 <= code < 1 << bits for code in codes):
        return True
    if value.op == "load":
        return function.vectors[value.vec[0]].bits == bits
    if value.op == "cast":
        return value.args[0].type == "bool"
    return value.op in ("saturate", "wrap") and value.attrs["bits"] == bits


def _constants(value: Instr) -> set | None:
    """Return the possible values of a choice between constants, or None if unknown."""
    if value.op == "const" and value.type == "i32":
        return {value.attrs["value"]}
    if value.op != "select":
        return None
    yes, no = _constants(value.args[1]), _constants(value.args[2])
    return None if yes is None or no is None else yes | no


def _chosen(value: Instr, constant: int) -> Instr | None:
    """Return the condition on which a select takes a constant that its other side is not."""
    if value.op != "select" or _constants(value.args[1]) != {constant}:
        return None
    other = _constants(value.args[2])
    return value.args[0] if other is not None and constant not in other else None


def _decided(outer: Instr, uses: Counter) -> None:
    """Simplify c ? x : (code == 2) ? y : z where code = c ? 3 : other tests c again."""
    condition, _, inner = outer.args
    if inner.op != "select" or uses[inner.id] != 1 or inner.args[0].op != "eq":
        return
    code, constant = inner.args[0].args
    if constant.op != "const" or code.op != "select" or code.args[0] is not condition:
        return
    simpler = _chosen(code.args[2], constant.attrs["value"])
    if simpler is not None:
        inner.args[0] = simpler


def cse(function: Function) -> None:
    """Eliminate common subexpressions, loads after stores, and dead stores."""
    mapping: dict[int, Instr] = {}
    outer: dict[tuple, Instr] = {}
    kept: list[IrNode] = []
    for node in function.body:
        if isinstance(node, Loop):
            node.domain = final(node.domain, mapping)
            _cse_loop(function, node, mapping)
        else:
            node.args = [final(arg, mapping) for arg in node.args]
            same = node if node.effect or node.vec else outer.setdefault(node.key(), node)
            if same is not node:
                mapping[node.id] = same
                continue
        kept.append(node)
    function.body = kept
    replace(function, mapping)


def _cse_loop(function: Function, loop: Loop, mapping: dict[int, Instr]) -> None:
    known: dict[tuple, Instr] = {}
    content: dict[str, Instr] = {}
    body: list[Instr] = []
    for instr in loop.body:
        instr.args = [final(arg, mapping) for arg in instr.args]
        if instr.op == "load" and instr.vec[0] in content:
            mapping[instr.id] = content[instr.vec[0]]
            continue
        if instr.op == "store":
            vector = function.vectors[instr.vec[0]]
            if vector.elem not in ("f16", "bf16") and vector.needs is None:
                content[instr.vec[0]] = instr.args[0]
            else:  # later reads may differ from this value and from the old one
                content.pop(instr.vec[0], None)
            known = {key: value for key, value in known.items() if instr.vec[0] not in value.vec}
        elif instr.op != "reduce" and not instr.writes:
            same = known.setdefault(instr.key(), instr)
            if same is not instr:
                mapping[instr.id] = same
                continue
            if instr.op == "load":
                content.setdefault(instr.vec[0], instr)
        body.append(instr)
    last = {instr.vec[0]: instr for instr in body if instr.op == "store"}
    loop.body = [
        instr
        for instr in body
        if instr.op != "store" or last[instr.vec[0]] is instr or _read_between(body, instr)
    ]


def _read_between(body: list[Instr], store: Instr) -> bool:
    """Return whether a later instruction loads the result of this store."""
    for instr in body[body.index(store) + 1 :]:
        if instr.op == "store" and instr.vec == store.vec:
            return False
        if store.vec[0] in instr.reads:
            return True
    return False


def dce(function: Function) -> None:
    """Remove nodes that affect no result: values, loops, temps."""
    vectors = function.vectors
    while True:
        read = {name for node in function.body for name in node.reads}
        kept = {name for name, v in vectors.items() if v.kind != "temp" or name in read}
        results = {name for name, v in vectors.items() if v.kind in ("state", "output")} | read
        live = {vectors[name].size.id for name in kept}
        live |= {v.needs.id for v in vectors.values() if v.needs is not None}
        body: list[IrNode] = []
        for node in reversed(function.body):
            instrs = []
            for instr in reversed(node.body):
                if instr.id in live or instr.effect or instr.writes & results:
                    live |= instr.uses
                    instrs.insert(0, instr)
            if instrs:
                body.insert(0, node)
                if isinstance(node, Loop):
                    node.body = instrs
                    live.add(node.domain.id)
        written = {name for node in body for name in node.writes}  # a filter's, for its size
        names = vectors.keys() - kept - written
        same = len(body) == len(function.body) and not names
        function.body = body
        for name in names:
            del vectors[name]
        if same:
            return


def guard(function: Function) -> None:
    """Set the guards of reductions whose result only one side of a `?:` uses.

    `clip > 0 ? clip / sqrt(sum(gradient * gradient)) : 1` computes both sides by definition. Where
    the condition is known before the loop, the loop gets it as its guard.
    """
    known: set[int] = set()
    for node in function.body:
        if isinstance(node, Loop) and node.body and not node.writes:
            node.guard = next(
                (
                    select.args[0]
                    for select in function.operations("select")
                    if select.args[0].id in known and _only_under(function, node, select.args[0])
                ),
                None,
            )
        known |= node.defines


def _only_under(function: Function, loop: Loop, condition: Instr) -> bool:
    """Return whether results are used only in the first branch of selects by `condition`."""
    tainted = loop.defines
    if any(vector.size.id in tainted for vector in function.vectors.values()):
        return False
    for node in function.body:
        if not node.uses & tainted:
            continue
        if isinstance(node, Loop) or node.effect or node.vec:
            return False
        others = {arg.id for arg in (node.args[0], *node.args[2:])}
        if node.op == "select" and node.args[0] is condition and not tainted & others:
            continue
        tainted.add(node.id)
    return True
