"""C++ text of single operations. A dialect writes them for one kind of operand."""

from __future__ import annotations

import math

from hipress.compression.compiler.ir.ir import COMPARE, OPS, Block, Instr

SCALAR = {
    "f32": "float",
    "f64": "double",
    "i32": "int32_t",
    "u32": "uint32_t",
    "i64": "int64_t",
    "bool": "bool",
}
_CALLED = ("div", "mod", "shl", "shr")
"""Operators that are calls in C, as C does not define all of their results."""
_NAMES = {"isfinite": "IsFinite", "isnan": "IsNan"}
ELEMENT = {"f32": "float", "i32": "int32_t", "u32": "uint32_t"}


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

    A method named after an operation, after an underscore, writes it from its operands' text.
    """

    types = SCALAR

    def __call__(self, instr: Instr, args: list[str]) -> str:
        """Return the expression of an operation on operands whose C++ is `args`."""
        special = getattr(self, f"_{instr.op}", None)
        if special is not None:
            return special(instr, *args)
        if OPS[instr.op].symbol and instr.op not in _CALLED:
            return self._infix(instr, *args)
        name = _NAMES.get(instr.op) or instr.op.title().replace("_", "")
        return f"{name}({', '.join(args)})"

    def _infix(self, instr: Instr, left: str, right: str) -> str:
        logical = instr.type == "bool" and instr.op in ("and", "or")
        return f"({left} {OPS[instr.op].symbol * (2 if logical else 1)} {right})"

    def width(self, bits: int | str) -> str:
        """Return the C++ of a code's bits: a number, or a template argument."""
        return str(bits)

    def _const(self, instr: Instr) -> str:
        return literal(instr.attrs["value"], instr.type)

    def _cast(self, instr: Instr, value: str) -> str:
        source, target = instr.args[0].type, instr.type
        if target == "bool":
            return f"({value} != 0)"
        if source in ("f32", "f64") and target in ("i32", "u32", "i64"):
            return f"To{target.upper()}({value})"
        return f"static_cast<{SCALAR[target]}>({value})"

    def _saturate(self, instr: Instr, value: str) -> str:
        return f"Saturate({value}, {self.width(instr.attrs['bits'])})"

    def _wrap(self, instr: Instr, value: str) -> str:
        return f"({value} & ((int64_t(1) << {instr.attrs['bits']}) - 1))"

    def _bitcast(self, instr: Instr, value: str) -> str:
        return f"{'FromBits' if instr.type == 'f32' else 'BitsU'}({value})"

    def _neg(self, instr: Instr, value: str) -> str:
        return f"(-{value})"

    def _select(self, instr: Instr, condition: str, yes: str, no: str) -> str:
        c_type = SCALAR[instr.type]
        return f"({condition} ? {c_type}({yes}) : {c_type}({no}))"

    def join_body(self, function: object, declared: str = "") -> str:
        """Return the body of a function of `a` and `b` that joins values of a reduction."""
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

    def _infix(self, instr: Instr, left: str, right: str) -> str:
        if instr.op in COMPARE or instr.type == "bool" and instr.op in ("and", "or"):
            return f"{instr.op.capitalize()}({left}, {right})"
        return super()._infix(instr, left, right)

    def _const(self, instr: Instr) -> str:
        return f"Set({super()._const(instr)})"

    def _cast(self, instr: Instr, value: str) -> str:
        source, target = instr.args[0].type, instr.type
        if source == "bool":
            value, source = f"Ones({value})", "i32"
            if target == "i32":
                return value
        if "f32" in (source, target):
            return f"To{target.upper()}({value})"
        return f"reinterpret_cast<{self.types[target]}>({value})"

    def _wrap(self, instr: Instr, value: str) -> str:
        return f"({value} & int32_t(((int64_t(1) << {instr.attrs['bits']}) - 1)))"

    def _select(self, instr: Instr, *args: str) -> str:
        return f"Select({', '.join(args)})"


class _Joined(Lanes):
    """Lanes or scalars, whichever `a` is."""

    def _const(self, instr: Instr) -> str:
        return f"Like(a, {literal(instr.attrs['value'], instr.type)})"

    def _cast(self, instr: Instr, value: str) -> str:
        if {instr.args[0].type, instr.type} == {"i32", "u32"}:
            return f"As{instr.type.upper()}({value})"
        return super()._cast(instr, value)


_WRAPPING = {"add": "WrapAdd", "sub": "WrapSub", "mul": "WrapMul"}


class CudaScalars(Scalars):
    """The dialect of CUDA's scalars: a thread has one element (scalar.h).

    C++ in which signed integers do not wrap around by themselves, and no templates of widths.
    """

    def __call__(self, instr: Instr, args: list[str]) -> str:
        """Return the expression of an operation; integers wrap around."""
        if instr.type in ("i32", "i64") and instr.op in _WRAPPING:
            return f"{_WRAPPING[instr.op]}<{SCALAR[instr.type]}>({args[0]}, {args[1]})"
        return super().__call__(instr, args)

    def width(self, bits: int | str) -> str:
        """Return the C++ of a code's bits: a number, or a parameter."""
        return str(bits) if isinstance(bits, int) else f"static_cast<int>(p_{bits})"

    def _neg(self, instr: Instr, value: str) -> str:
        if instr.type in ("i32", "i64"):
            return f"WrapSub<{SCALAR[instr.type]}>(0, {value})"
        return super()._neg(instr, value)

    def _wrap(self, instr: Instr, value: str) -> str:
        one = f"{SCALAR[instr.type]}(1)"
        return f"({value} & (({one} << {self.width(instr.attrs['bits'])}) - 1))"

    def _bitcast(self, instr: Instr, value: str) -> str:
        text = super()._bitcast(instr, value)
        return f"static_cast<int32_t>({text})" if instr.type == "i32" else text


scalars, lanes, joined, cuda_scalars = Scalars(), Lanes(), _Joined(), CudaScalars()
