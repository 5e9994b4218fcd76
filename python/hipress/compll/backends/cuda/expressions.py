"""CUDA text of single operations, on scalars: a thread has one element (scalar.cuh)."""

from __future__ import annotations

from hipress.compll.backends.common.expressions import SCALAR, expression, join_body, literal
from hipress.compll.ir.ir import Instr

FIELD = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "f32": "float"}
FIELD_BYTES = {"u8": 1, "u16": 2, "u32": 4, "f32": 4}
TYPES = {"f32": "float", "i32": "int32_t", "u32": "uint32_t"}
_WRAPPING = {"add": "WrapAdd", "sub": "WrapSub", "mul": "WrapMul"}


def width(bits: int | str) -> str:
    """Text of a code's width: a number, or a parameter."""
    return str(bits) if isinstance(bits, int) else f"static_cast<int>(p_{bits})"


def cuda_expression(instr: Instr, args: list[str]) -> str:
    """The expression of an operation; `args` is the text of its operands."""
    c_type = SCALAR.get(instr.type, "")
    if instr.type in ("i32", "i64"):
        # Signed integers wrap around by definition; in CUDA's C++ that is not defined.
        if instr.op in _WRAPPING:
            return f"{_WRAPPING[instr.op]}<{c_type}>({args[0]}, {args[1]})"
        if instr.op == "neg":
            return f"WrapSub<{c_type}>(0, {args[0]})"
    if instr.op == "wrap":
        return f"({args[0]} & (({c_type}(1) << {width(instr.attrs['bits'])}) - 1))"
    if instr.op == "saturate":
        return f"Saturate({args[0]}, {width(instr.attrs['bits'])})"
    if instr.op == "bitcast" and instr.type == "i32":
        return f"static_cast<int32_t>(BitsU({args[0]}))"
    return expression(instr, args, lane=False)


def combiner(function: object, c_type: str, name: str) -> list[str]:
    """Lines that define `name`, a function object that joins two values of a reduction."""
    if function in ("max", "min"):
        return [f"const {'Larger' if function == 'max' else 'Smaller'} {name};"]
    body = join_body(function, lambda instr: SCALAR[instr.type], cuda_expression)
    return [f"const auto {name} = []({c_type} a, {c_type} b) -> {c_type} {{ {body} }};"]


__all__ = [
    "FIELD", "FIELD_BYTES", "SCALAR", "TYPES", "combiner", "cuda_expression", "literal", "width",
]  # fmt: skip
