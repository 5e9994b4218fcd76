"""C++ text of single operations, the same for scalars and for lanes (lanes.h overloads both)."""

from __future__ import annotations

import math
from collections.abc import Callable

from hipress.compll.ir.ir import Block, Instr

SCALAR = {
    "f32": "float", "f64": "double", "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t",
    "bool": "bool",
}  # fmt: skip
LANE = {"f32": "F", "i32": "I", "u32": "U", "bool": "M"}
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
_COMPARE = {"lt": "Lt", "le": "Le", "gt": "Gt", "ge": "Ge", "eq": "Eq", "ne": "Ne"}
_CALLS = {
    "div": "Div", "mod": "Mod", "shl": "Shl", "shr": "Shr", "not": "Not", "floor": "Floor",
    "ceil": "Ceil", "abs": "Abs", "sqrt": "Sqrt", "isfinite": "IsFinite", "isnan": "IsNan",
    "select": "Select", "ascending_bytes": "AscendingBytes",
}  # fmt: skip


def literal(value: float | int | bool, type_: str) -> str:
    """A C++ constant that reads back exactly."""
    if type_ == "bool":
        return "true" if value else "false"
    if type_ in ("f32", "f64"):
        c_type = SCALAR[type_]
        if math.isnan(value):
            return f"std::numeric_limits<{c_type}>::quiet_NaN()"
        if math.isinf(value):
            sign = "-" if value < 0 else ""
            return f"{sign}std::numeric_limits<{c_type}>::infinity()"
        return f"{float(value)!r}" + ("f" if type_ == "f32" else "")
    if type_ == "u32":
        return f"{int(value) & 0xFFFFFFFF}u"
    return f"int64_t({int(value)})" if type_ == "i64" else f"int32_t({int(value)})"


def known(instr: Instr) -> str | None:
    """C++ of a constant, of n or of a parameter; None for what has to be computed."""
    if instr.op == "const":
        return literal(instr.attrs["value"], instr.type)
    if instr.op == "n":
        return "n"
    return f"p_{instr.attrs['name']}" if instr.op == "param" else None


def expression(instr: Instr, args: list[str], lane: bool) -> str:
    """The C++ expression of an operation.

    :param args: C++ of its operands
    :param lane: operands are lanes (lanes.h), not scalars
    """
    op = instr.op
    if op == "const":
        text = literal(instr.attrs["value"], instr.type)
        return f"Set({text})" if lane else text
    if op == "cast":
        return _cast(args[0], instr.args[0].type, instr.type, lane)
    if op == "saturate":
        return f"Saturate({args[0]}, {instr.attrs['bits']})"
    if op == "wrap":
        mask = f"((int64_t(1) << {instr.attrs['bits']}) - 1)"
        return f"({args[0]} & {f'int32_t({mask})' if lane else mask})"
    if op == "bitcast":
        return f"FromBits({args[0]})" if instr.type == "f32" else f"BitsU({args[0]})"
    if op == "neg":
        return f"(-{args[0]})"
    if op in _CALLS:
        if op == "select" and not lane:
            c_type = SCALAR[instr.type]
            return f"({args[0]} ? {c_type}({args[1]}) : {c_type}({args[2]}))"
        return f"{_CALLS[op]}({', '.join(args)})"
    if lane and op in _COMPARE:
        return f"{_COMPARE[op]}({args[0]}, {args[1]})"
    symbol = _OPERATORS[op]
    if instr.type == "bool" and op in ("and", "or"):
        if lane:
            return f"{op.capitalize()}({args[0]}, {args[1]})"
        symbol *= 2
    return f"({args[0]} {symbol} {args[1]})"


def join_body(
    function: object,
    declared: Callable[[Instr], str],
    text: Callable[[Instr, list[str]], str],
) -> str:
    """The body of a C++ function of `a` and `b` that joins two values of a reduction.

    :param function: "sum", "max", "min" or a Block
    :param declared: the type that a value of the block is declared with
    :param text: the C++ of an operation, from that of its operands
    """
    if not isinstance(function, Block):
        joined = {"sum": "a + b", "max": "Larger(a, b)", "min": "Smaller(a, b)"}
        return f"return {joined[function]};"
    names = {param.id: "ab"[k] for k, param in enumerate(function.params)}
    body = []
    for instr in function.body:
        args = [names[arg.id] for arg in instr.args]
        names[instr.id] = f"c{len(names)}"
        body.append(f"const {declared(instr)} {names[instr.id]} = {text(instr, args)};")
    return " ".join([*body, f"return {names[function.result.id]};"])


def _cast(value: str, source: str, target: str, lane: bool) -> str:
    if lane:
        if source == "bool":
            as_int = f"Ones({value})"
            return {"f32": f"ToF32({as_int})", "i32": as_int,
                    "u32": f"reinterpret_cast<U>({as_int})"}[target]  # fmt: skip
        if target == "f32":
            return f"ToF32({value})"
        if source == "f32":
            return f"{'ToI32' if target == 'i32' else 'ToU32'}({value})"
        return f"reinterpret_cast<{LANE[target]}>({value})"
    if target == "bool":
        return f"({value} != 0)"
    if source in ("f32", "f64") and target in ("i32", "u32", "i64"):
        return f"{ {'i32': 'ToI32', 'u32': 'ToU32', 'i64': 'ToI64'}[target] }({value})"
    return f"static_cast<{SCALAR[target]}>({value})"
