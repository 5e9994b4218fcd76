"""The dialect of CUDA's scalars: a thread has one element (scalar.h)."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.expressions import SCALAR, Scalars
from hipress.compression.compiler.ir.ir import Instr

ELEMENT = {"f32": "float", "i32": "int32_t", "u32": "uint32_t"}
_WRAPPING = {"add": "WrapAdd", "sub": "WrapSub", "mul": "WrapMul"}


class CudaScalars(Scalars):
    """C++ in which signed integers do not wrap around by themselves, and no templates of widths."""

    def __call__(self, instr: Instr, args: list[str]) -> str:
        if instr.type in ("i32", "i64") and instr.op in _WRAPPING:
            return f"{_WRAPPING[instr.op]}<{SCALAR[instr.type]}>({args[0]}, {args[1]})"
        return super().__call__(instr, args)

    def width(self, bits: int | str) -> str:
        return str(bits) if isinstance(bits, int) else f"static_cast<int>(p_{bits})"

    def neg_(self, instr: Instr, value: str) -> str:
        if instr.type in ("i32", "i64"):
            return f"WrapSub<{SCALAR[instr.type]}>(0, {value})"
        return super().neg_(instr, value)

    def wrap_(self, instr: Instr, value: str) -> str:
        one = f"{SCALAR[instr.type]}(1)"
        return f"({value} & (({one} << {self.width(instr.attrs['bits'])}) - 1))"

    def bitcast_(self, instr: Instr, value: str) -> str:
        text = super().bitcast_(instr, value)
        return f"static_cast<int32_t>({text})" if instr.type == "i32" else text


cuda_scalars = CudaScalars()


def combiner(function: object, c_type: str, name: str) -> str:
    """Return the definition of `name`, a function object that joins two values of a reduction."""
    if function in ("max", "min"):
        return f"const {'Larger' if function == 'max' else 'Smaller'} {name};"
    body = cuda_scalars.join_body(function)
    return f"const auto {name} = []({c_type} a, {c_type} b) -> {c_type} {{ {body} }};"
