"""Names of what a generated function has: numbers, vectors and the fields of its payload."""

from __future__ import annotations

import re

from hipress.compll.backends.common.expressions import Scalars, known
from hipress.compll.ir.ir import FIELD_BYTES, Function, Instr, Program

FIELD = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "f32": "float"}


class _Texts:
    """What a template's fields stand for, see FunctionNames.fill()."""

    def __init__(self, names: FunctionNames, instr: Instr, more: dict[str, str]) -> None:
        self.names, self.instr, self.more = names, instr, more

    def __getitem__(self, key: str) -> str:
        if key in self.more:
            return self.more[key]
        if key == "value":
            return self.names.value(self.instr)
        kind, number = key[0], int(key[1:])
        if kind == "a":
            return self.names.value(self.instr.args[number])
        return self.names.vector_texts[kind](self.instr.vec[number])


class FunctionNames:
    """The names in one encode or decode.

    :param dialect: that of its scalars
    :ivar fields: of the payload that it writes: (kind, name or number) as in `emit`
    """

    def __init__(self, program: Program, function: Function, dialect: Scalars) -> None:
        self.program, self.function, self.dialect = program, function, dialect
        self.numbers: dict[int, int] = {}
        emits = [n for n in function.body if isinstance(n, Instr) and n.op == "emit"]
        self.fields = emits[0].attrs["fields"] if emits else []
        self.vector_texts = {
            "m": self.memory, "n": self.size, "b": self.bytes_of,
            "v": lambda name: f"{self.memory(name)}, {self.size(name)}",
        }  # fmt: skip

    def fill(self, template: str, instr: Instr, **more: str) -> str:
        """C++ of an instruction from a template.

        Its fields are {a0} for the first operand, {m0}, {n0}, {b0} and {v0} for the first vector's
        memory, elements, bytes, and memory and elements, {value}, and what `more` has.
        """
        return template.format_map(_Texts(self, instr, more))

    def number(self, instr: Instr) -> int:
        return self.numbers.setdefault(instr.id, len(self.numbers))

    def value(self, instr: Instr) -> str:
        """C++ of a scalar of the function."""
        return known(instr) or f"s{self.number(instr)}"

    def expression(self, instr: Instr) -> str:
        """C++ that computes a scalar."""
        return self.dialect(instr, [self.value(arg) for arg in instr.args])

    def plain(self, name: str) -> str:
        """A vector's name as a part of an identifier."""
        return re.sub(r"[^0-9A-Za-z_]", "_", name)

    def size(self, name: str) -> str:
        """C++ of how many elements a vector has."""
        return self.value(self.function.vectors[name].size)

    def msb(self, name: str) -> str:
        """C++ of whether codes begin at the highest bit of a byte."""
        return "true" if self.function.vectors[name].order == "msb" else "false"

    def width(self, name: str) -> str:
        """C++ of the bits of a packed vector's codes."""
        return self.dialect.width(self.function.vectors[name].bits)

    def packed_bytes(self, name: str, count: str) -> str:
        return f"PackedBytes({count}, {self.width(name)}, {self.function.vectors[name].multiple})"

    def bytes_of(self, name: str, count: str = "") -> str:
        """C++ of the bytes of a vector, or of `count` of its elements."""
        vector, count = self.function.vectors[name], count or self.size(name)
        return self.packed_bytes(name, count) if vector.packed else f"{count} * {vector.bits // 8}"

    def is_field(self, name: str) -> bool:
        return self.function.vectors[name].kind == "field"

    def is_output(self, name: str) -> bool:
        return self.function.kind == "decode" and name == self.function.output

    def field_offset(self, name: str, zero: str) -> str | None:
        """Offset of a field in the payload, if all before it have sizes that are known by now."""
        parts = [zero]
        for kind, what in self.fields:
            if kind != "vector":
                parts.append(str(FIELD_BYTES[kind]))
                continue
            if what == name:
                return " + ".join(parts)
            if not self.is_known(self.function.vectors[what].size):
                return None
            parts.append(self.bytes_of(what))
        return None

    def memory(self, name: str) -> str:
        """C++ of a vector's memory."""
        raise NotImplementedError

    def is_known(self, value: Instr) -> bool:
        """True if a number is computed by now."""
        raise NotImplementedError
