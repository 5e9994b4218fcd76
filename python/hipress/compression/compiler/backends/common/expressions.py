"""C++ text of single operations. A dialect writes them for one kind of operand."""

from __future__ import annotations

import math

from hipress.compression.compiler.ir.ir import COMPARE, Block, Instr

SCALAR = {
    "f32": "float",
    "f64": "double",
    "i32": "int32_t",
    "u32": "uint32_t",
    "i64": "int64_t",
    "bool": "bool",
}
_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}
_CALLS = {
    "div": "Div",
    "mod": "Mod",
    "shl": "Shl",
    "shr": "Shr",
    "not": "Not",
    "floor": "Floor",
    "ceil": "Ceil",
    "abs": "Abs",
    "sqrt": "Sqrt",
    "isfinite": "IsFinite",
    "isnan": "IsNan",
    "select": "Select",
    "ascending_bytes": "AscendingBytes",
    "gaps_most": "GapsMost",
    "floats_bytes": "FloatsBytes",
}


def literal(value: float | int | bool, type_: str) -> str:
    """Return a C++ constant that reads back exactly."""
    if type_ == "bool":
        return "true" if value else "false"
    if type_ in ("f32", "f64"):
        limits = f"std::numeric_limits<{SCALAR[type_]}>"
        if math.isnan(value):
            return f"{limits}::quiet_NaN()"
        if math.isinf(value):
            return f"{'-' if value < 0 else ''}{limits}::infinity()"
        return f"{float(value)!r}" + ("f" if type_ == "f32" else "")
    if type_ == "u32":
        return f"{int(value) & 0xFFFFFFFF}u"
    return f"int64_t({int(value)})" if type_ == "i64" else f"int32_t({int(value)})"


def known(instr: Instr) -> str | None:
    """Return the C++ of a constant, of n or of a parameter; None for a computed value."""
    if instr.op == "const":
        return literal(instr.attrs["value"], instr.type)
    if instr.op == "n":
        return "n"
    return f"p_{instr.attrs['name']}" if instr.op == "param" else None


class Scalars:
    """Dialect of C++ scalars, and base of the other dialects.

    A method named after an operation, with an underscore, writes it from its operands' text.
    """

    types = SCALAR

    def __call__(self, instr: Instr, args: list[str]) -> str:
        """Return the expression of an operation on operands whose C++ is `args`."""
        special = getattr(self, f"{instr.op}_", None)
        if special is not None:
            return special(instr, *args)
        if instr.op in _CALLS:
            return f"{_CALLS[instr.op]}({', '.join(args)})"
        return self.operator(instr, *args)

    def operator(self, instr: Instr, left: str, right: str) -> str:
        logical = instr.type == "bool" and instr.op in ("and", "or")
        return f"({left} {_OPERATORS[instr.op] * (2 if logical else 1)} {right})"

    def width(self, bits: int | str) -> str:
        """Return the C++ of a code's bits: a number, or a template argument."""
        return str(bits)

    def const_(self, instr: Instr) -> str:
        return literal(instr.attrs["value"], instr.type)

    def cast_(self, instr: Instr, value: str) -> str:
        source, target = instr.args[0].type, instr.type
        if target == "bool":
            return f"({value} != 0)"
        if source in ("f32", "f64") and target in ("i32", "u32", "i64"):
            return f"To{target.upper()}({value})"
        return f"static_cast<{SCALAR[target]}>({value})"

    def saturate_(self, instr: Instr, value: str) -> str:
        return f"Saturate({value}, {self.width(instr.attrs['bits'])})"

    def wrap_(self, instr: Instr, value: str) -> str:
        return f"({value} & ((int64_t(1) << {instr.attrs['bits']}) - 1))"

    def bitcast_(self, instr: Instr, value: str) -> str:
        return f"{'FromBits' if instr.type == 'f32' else 'BitsU'}({value})"

    def neg_(self, instr: Instr, value: str) -> str:
        return f"(-{value})"

    def select_(self, instr: Instr, condition: str, yes: str, no: str) -> str:
        c_type = SCALAR[instr.type]
        return f"({condition} ? {c_type}({yes}) : {c_type}({no}))"

    def join_body(self, function: object, declared: str = "") -> str:
        """Return the body of a function of `a` and `b` that joins two values of a reduction.

        :param function: "sum", "max", "min" or a Block
        :param declared: type of declared values; empty: their own types
        """
        if not isinstance(function, Block):
            joined = {"sum": "a + b", "max": "Larger(a, b)", "min": "Smaller(a, b)"}
            return f"return {joined[function]};"
        names = {param.id: "ab"[k] for k, param in enumerate(function.params)}
        body = []
        for instr in function.body:
            text = self(instr, [names[arg.id] for arg in instr.args])
            names[instr.id] = f"c{len(names)}"
            body.append(f"const {declared or SCALAR[instr.type]} {names[instr.id]} = {text};")
        return " ".join([*body, f"return {names[function.result.id]};"])


class Lanes(Scalars):
    """The dialect of vectors of lanes (lanes.h)."""

    types = {"f32": "F", "i32": "I", "u32": "U", "bool": "M"}

    def operator(self, instr: Instr, left: str, right: str) -> str:
        if instr.op in COMPARE or instr.type == "bool" and instr.op in ("and", "or"):
            return f"{instr.op.capitalize()}({left}, {right})"
        return super().operator(instr, left, right)

    def const_(self, instr: Instr) -> str:
        return f"Set({super().const_(instr)})"

    def cast_(self, instr: Instr, value: str) -> str:
        source, target = instr.args[0].type, instr.type
        if source == "bool":
            value, source = f"Ones({value})", "i32"
            if target == "i32":
                return value
        if "f32" in (source, target):
            return f"To{target.upper()}({value})"
        return f"reinterpret_cast<{self.types[target]}>({value})"

    def wrap_(self, instr: Instr, value: str) -> str:
        return f"({value} & int32_t(((int64_t(1) << {instr.attrs['bits']}) - 1)))"

    def select_(self, instr: Instr, *args: str) -> str:
        return f"Select({', '.join(args)})"


class _Joined(Lanes):
    """Lanes or scalars, whichever `a` is."""

    def const_(self, instr: Instr) -> str:
        return f"Like(a, {literal(instr.attrs['value'], instr.type)})"

    def cast_(self, instr: Instr, value: str) -> str:
        if {instr.args[0].type, instr.type} == {"i32", "u32"}:
            return f"As{instr.type.upper()}({value})"
        return super().cast_(instr, value)


scalars, lanes, joined = Scalars(), Lanes(), _Joined()
