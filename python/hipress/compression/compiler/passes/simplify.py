"""Constant folding, common subexpressions, loads after stores, dead stores and dead code."""

from __future__ import annotations

import math
import operator
from collections import Counter

from hipress.compression.compiler.ir.ir import (
    COMPARE,
    Function,
    Instr,
    Loop,
    has_effect,
    node_writes,
    reads,
    writes,
)
from hipress.compression.compiler.ir.slices import replace

_PURE_MEMORY = {"load", "load_at", "bucket_load", "element", "count_where", "gaps_bytes"}
_SIDE = {
    "reduce",
    "store",
    "bucket_reduce",
    "compact",
    "topk",
    "sort",
    "scatter",
    "random_indices",
    "pack_ascending",
    "pack_gaps",
    "pack_where",
    "unpack_where",
    "dct",
    "idct",
}
_COMPARISONS = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
_WHOLE = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def fold(function: Function) -> None:
    """Compute integers and comparisons of constants, in place. Backends compute floats."""
    mapping: dict[int, Instr] = {}
    uses = Counter(arg.id for instr in function.instrs() for arg in instr.args)
    for node in function.body:
        for instr in node.body if isinstance(node, Loop) else [node]:
            instr.args = [_last(mapping, arg) for arg in instr.args]
            if instr.op == "select":
                _decided(instr, uses)
            value = _folded(function, instr)
            if isinstance(value, Instr):
                mapping[instr.id] = value
            elif value is not None:
                instr.op, instr.args, instr.attrs = "const", [], {"value": value}
    replace(function, mapping)


def _last(mapping: dict[int, Instr], value: Instr) -> Instr:
    while value.id in mapping:
        value = mapping[value.id]
    return value


def _folded(function: Function, instr: Instr) -> object:
    """Return a number, an operand, or None."""
    if instr.op == "select":
        condition, yes, no = instr.args
        if condition.op == "const":
            return yes if condition.attrs["value"] else no
        return yes if yes is no else None
    if instr.op == "ne" and instr.args[1].op == "const" and instr.args[1].attrs["value"] == 0:
        # (bool as int) != 0 is the bool.
        inner = instr.args[0]
        if inner.op == "cast" and inner.args[0].type == "bool":
            return inner.args[0]
    if instr.op == "eq" and instr.args[1].op == "const":
        condition = _chosen(instr.args[0], instr.args[1].attrs["value"])
        if condition is not None:
            return condition
    if instr.op == "wrap":
        inner = instr.args[0]
        codes, bits = _constants(inner), instr.attrs["bits"]
        if codes and isinstance(bits, int) and all(0 <= code < 1 << bits for code in codes):
            return inner
        if inner.op in ("saturate", "wrap") and inner.attrs["bits"] == instr.attrs["bits"]:
            return inner
        if inner.op == "cast" and inner.args[0].type == "bool":
            return inner
        if inner.op == "load" and function.vectors[inner.vec[0]].bits == instr.attrs["bits"]:
            return inner
    if not instr.args or any(arg.op != "const" for arg in instr.args):
        return None
    values = [arg.attrs["value"] for arg in instr.args]
    if instr.op in COMPARE and not any(isinstance(v, float) and math.isnan(v) for v in values):
        return bool(_COMPARISONS[instr.op](*values))
    if instr.op == "not":
        return not values[0]
    if instr.type in ("i32", "i64") and instr.op in _WHOLE:
        result = _WHOLE[instr.op](*values)
        return result if abs(result) < 2**31 else None
    if instr.type in ("i32", "i64") and instr.op in ("shl", "shr") and 0 <= values[1] < 31:
        shift = operator.lshift if instr.op == "shl" else operator.rshift
        result = shift(values[0], values[1])
        return result if abs(result) < 2**31 else None
    if instr.op == "neg" and (isinstance(values[0], float) or abs(values[0]) < 2**31):
        return -values[0] if instr.type != "u32" else None
    if instr.op == "cast" and instr.args[0].type in ("i32", "i64") and abs(values[0]) < 2**24:
        return float(values[0]) if instr.type in ("f32", "f64") else None
    return None


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
    """Simplify c ? x : (code == 2) ? y : z, with code = c ? 3 : other, which need not test c
    again."""
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
    for node in function.body:
        if isinstance(node, Loop):
            node.domain = _last(mapping, node.domain)
            _cse_loop(function, node, mapping)
            continue
        node.args = [_last(mapping, arg) for arg in node.args]
        if has_effect(node) or node.op in _SIDE or node.op in _PURE_MEMORY:
            continue
        same = outer.setdefault(node.key(), node)
        if same is not node:
            mapping[node.id] = same
    replace(function, mapping)
    for position in range(len(function.body) - 1, -1, -1):
        if getattr(function.body[position], "id", None) in mapping:
            del function.body[position]


def _cse_loop(function: Function, loop: Loop, mapping: dict[int, Instr]) -> None:
    known: dict[tuple, Instr] = {}
    content: dict[str, Instr] = {}
    body: list[Instr] = []
    for instr in loop.body:
        instr.args = [_last(mapping, arg) for arg in instr.args]
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
        elif instr.op not in _SIDE:
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
    after = body[body.index(store) + 1 :]
    for instr in after:
        if instr.op == "store" and instr.vec[0] == store.vec[0]:
            return False
        if store.vec[0] in reads(instr):
            return True
    return False


def dce(function: Function) -> None:
    """Remove nodes that affect no result: values, loops, temps."""
    while True:
        read = {name for instr in function.instrs() for name in reads(instr)}
        live: set[int] = set()
        body: list = []
        kept = {v.size.id for v in function.vectors.values() if v.kind != "temp" or v.name in read}
        live |= kept | {v.needs.id for v in function.vectors.values() if v.needs is not None}
        for node in reversed(function.body):
            if isinstance(node, Loop):
                node.body = _live_instrs(function, node.body, live, read)
                if node.body:
                    live.add(node.domain.id)
                    body.append(node)
            elif _live_instrs(function, [node], live, read):
                body.append(node)
        body.reverse()
        names = {name for name, v in function.vectors.items() if v.kind == "temp"} - read
        names -= {name for node in body for name in node_writes(node)}  # a filter's, for its size
        same = len(body) == len(function.body) and not names
        function.body = body
        for name in names:
            del function.vectors[name]
        if same:
            return


def _live_instrs(
    function: Function, body: list[Instr], live: set[int], read: set[str]
) -> list[Instr]:
    kept = []
    for instr in reversed(body):
        stores = [
            name
            for name in writes(instr)
            if name in read or function.vectors[name].kind in ("state", "output")
        ]
        if instr.id in live or has_effect(instr) or stores:
            live |= {arg.id for arg in instr.args}
            kept.append(instr)
    kept.reverse()
    return kept
