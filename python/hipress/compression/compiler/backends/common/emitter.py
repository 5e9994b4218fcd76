"""Emitter of the C family: the parts that C++ and CUDA share for a function and its loops.

CStyleEmitter writes one encode or decode, CStyleLoop one fused loop of it. Their subclasses are the
dialects: cpp/ computes with vectors of lanes (lanes.h), cuda/ with one element for each thread
(scalar.h). A dialect says what values are declared as, how memory is loaded and stored, where the
elements of a loop come from, and how reductions are joined. The expressions of both are in
expressions.py, and a file's frame in source.py. Generated text is lists of lines.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from hipress.compression.compiler.backends.common.expressions import (
    Scalars,
    known,
    literal,
    scalars,
)
from hipress.compression.compiler.ir.ir import (
    FIELD_BYTES,
    Block,
    Function,
    Instr,
    Loop,
    Program,
)
from hipress.compression.compiler.passes.analyses import unproven_indices


def flat(parts: Iterable) -> list[str]:
    """Return the lines of strings and of lists of lines, however nested."""
    found = []
    for part in parts:
        found += [part] if isinstance(part, str) else flat(part)
    return found


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    """Return indented lines, where those of the preprocessor are unchanged."""
    return [line if line.startswith("#") else "  " * levels + line for line in lines]


def block(head: str, *parts: object, end: str = "}") -> list[str]:
    """Return ``head {``, the parts (lines, or lists of them) indented, and ``end``."""
    return [f"{head} {{".lstrip(), *indent(flat(parts)), end]


def code(template: str, owner: object = None, /, **parts: object) -> list[str]:
    """Return the lines of a template of C++, whose first and last line are empty.

    `$name` is a text, one of `parts` or an attribute of `owner` (or what that method returns).
    Alone on a line, it is any lines (strings, or lists of them), indented.
    """

    def part(name: str) -> object:
        value = parts[name] if name in parts else getattr(owner, name)
        return value() if callable(value) else value

    lines = []
    for line in textwrap.dedent(template).split("\n")[1:-1]:
        alone = re.fullmatch(r"( *)\$(\w+)", line)
        if alone:
            lines += indent(flat([part(alone[2])]), len(alone[1]) // 2)
        else:
            lines.append(re.sub(r"\$(\w+)", lambda field: str(part(field[1])), line))
    return lines


def quoted(text: str) -> str:
    """Return a string literal of C++."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


FIELD = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "f32": "float"}
COUNTS = {
    "topk": "Clip({a0}, {n1})",
    "random_indices": "Clip({a1}, Clip({a0}, n))",
    "pack_ascending": "AscendingBytes({n1}, n)",
}
"""Values of operations on whole vectors that follow from sizes; see CStyleEmitter.fill()."""


class CStyleEmitter:
    """Writer of one encode or decode function.

    A dialect adds scalar() and loop(), which write a number and a loop; _write_topk() and so on,
    for operations on whole vectors and payload fields; check_indices(), which refuses a payload
    whose indices do not ascend or are not below n; memory(), the text of a vector's memory; and
    is_known(), whether a number is computed by now.

    Attributes:
        dialect: The expressions of its scalars.
        fields: The fields of the payload that it writes: (kind, name or number) as in `emit`.
        placed: Vectors whose memory is in the payload.
        unproven: Vectors of indices that scatter uses and that have to be checked.
        sparse_output: Whether a payload may have only some elements of the gradient.
    """

    dialect: Scalars = scalars

    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function = program, function
        self.is_decode = function.kind == "decode"
        self.numbers: dict[int, int] = {}
        emits = function.operations("emit")
        self.fields = emits[0].attrs["fields"] if emits else []
        self.placed: set[str] = set()
        self.unproven = unproven_indices(function)
        targets = [instr.vec[0] for instr in function.operations("scatter")]
        self.sparse_output = function.output in targets
        self.vector_texts = {
            "m": self.memory,
            "n": self.size,
            "b": self.bytes_of,
            "v": lambda name: f"{self.memory(name)}, {self.size(name)}",
        }

    # The walk over the function -----------------------------------------------------

    def write(self) -> None:
        """Write all nodes. A decoder checks unproven indices where they are made."""
        body, position = self.function.body, 0
        while position < len(body):
            end = position + self.node(position)
            for node in body[position:end]:
                made = [name for name in self.unproven if name in node.writes]
                made = [name for name in made if not self.is_field(name)]
                if made and self.is_decode:
                    self.check_indices(made)
            position = end

    def node(self, position: int) -> int:
        """Write the node at a position, or several nodes as one pass. Return their number."""
        node = self.function.body[position]
        if isinstance(node, Loop):
            self.loop(node)
        else:
            self.instr(node)
        return 1

    def instr(self, instr: Instr) -> None:
        """Write an instruction outside of loops."""
        getattr(self, f"_write_{instr.op}", self.scalar)(instr)

    # Names ----------------------------------------------------------------------

    def fill(self, template: str, instr: Instr, **more: str) -> str:
        """Return the C++ of an instruction from a template.

        Its fields are {a0} for the first operand, {m0}, {n0}, {b0} and {v0} for the first vector's
        memory, elements, bytes, and memory and elements, {value}, and those of `more`.
        """

        def text(field: re.Match) -> str:
            key = field[1]
            if key in more:
                return more[key]
            if key == "value":
                return self.value(instr)
            kind, number = key[0], int(key[1:])
            if kind == "a":
                return self.value(instr.args[number])
            return self.vector_texts[kind](instr.vec[number])

        return re.sub(r"\{(\w+)\}", text, template)

    def number(self, instr: Instr) -> int:
        """Return the number in the name of an instruction's value."""
        return self.numbers.setdefault(instr.id, len(self.numbers))

    def value(self, instr: Instr) -> str:
        """Return the C++ of a scalar of the function."""
        return known(instr) or f"s{self.number(instr)}"

    def expression(self, instr: Instr) -> str:
        """Return the C++ that computes a scalar."""
        return self.dialect(instr, [self.value(arg) for arg in instr.args])

    def plain(self, name: str) -> str:
        """Return a vector's name as a part of an identifier."""
        return re.sub(r"[^0-9A-Za-z_]", "_", name)

    def count(self, name: str) -> Instr:
        """Return the number of a vector's elements."""
        return self.function.vectors[name].size

    def size(self, name: str) -> str:
        """Return the C++ of the number of a vector's elements."""
        return self.value(self.count(name))

    def msb(self, name: str) -> str:
        """Return the C++ condition that codes begin at the highest bit of a byte."""
        return "true" if self.function.vectors[name].order == "msb" else "false"

    def width(self, name: str) -> str:
        """Return the C++ of the bits of a packed vector's codes."""
        return self.dialect.width(self.function.vectors[name].bits)

    def packed_bytes(self, name: str, count: str) -> str:
        """Return the C++ of the bytes of `count` codes of a packed vector."""
        return f"PackedBytes({count}, {self.width(name)}, {self.function.vectors[name].multiple})"

    def bytes_of(self, name: str, count: str = "") -> str:
        """Return the C++ of the bytes of a vector, or of `count` of its elements."""
        vector, count = self.function.vectors[name], count or self.size(name)
        return self.packed_bytes(name, count) if vector.packed else f"{count} * {vector.bits // 8}"

    def is_field(self, name: str) -> bool:
        """Return whether a vector is a field of the payload."""
        return self.function.vectors[name].kind == "field"

    def is_output(self, name: str) -> bool:
        """Return whether a vector is a decoder's result."""
        return self.is_decode and name == self.function.output

    def field_offset(self, name: str, zero: str) -> str | None:
        """Return a field's offset in the payload if the sizes of all fields before it are known."""
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


class CStyleLoop:
    """Writer of one fused loop. A value of its body is a variable, declared as the dialect's type.

    A dialect adds a method for each operation in `special`, _store(), and _reduce(), which writes a
    reduction over all elements or over buckets.

    Attributes:
        dialect: The expressions of the loop's values.
        owner: The emitter of the function around it.
        body: Lines that compute the values, for each vector or row of elements.
    """

    dialect: Scalars
    special = ("load", "load_at", "bucket_load", "random", "random16", "index")
    """Operations that are not expressions."""
    least: dict[str, str]
    """Start values of a maximum and of a minimum."""

    def __init__(self, owner: CStyleEmitter, loop: Loop) -> None:
        self.owner, self.loop = owner, loop
        self.inside = {instr.id for instr in loop.body}
        self.body: list[str] = []

    def write_body(self) -> None:
        """Write all instructions of the loop."""
        for instr in self.loop.body:
            self.instr(instr)

    def instr(self, instr: Instr) -> None:
        """Write an instruction of the body."""
        if instr.op == "store":
            self._store(instr)
        elif instr.op in ("reduce", "bucket_reduce"):
            self._reduce(instr)
        else:
            name, text = f"t{self.owner.number(instr)}", self.text(instr)
            self.body.append(f"const {self.dialect.types[instr.type]} {name} = {text};")

    def text(self, instr: Instr) -> str:
        """Return the expression of a value of the body."""
        if instr.op in self.special:
            return getattr(self, f"_{instr.op}")(instr)
        return self.dialect(instr, [self.value(arg) for arg in instr.args])

    def value(self, instr: Instr) -> str:
        """Return the name of a value, made in the loop or before it."""
        if instr.id in self.inside:
            return f"t{self.owner.number(instr)}"
        return self.outside(instr)

    def outside(self, instr: Instr) -> str:
        """Return the expression of a value that is made before the loop."""
        return self.owner.value(instr)

    def start(self, instr: Instr) -> str:
        """Return the value that a reduction starts with."""
        function = instr.attrs["fn"]
        if not isinstance(function, Block):
            return "0" if function == "sum" else self.least[function]
        start = instr.args[1]
        if start.id in self.inside:
            return literal(start.attrs["value"], start.type)
        return self.owner.value(start)
