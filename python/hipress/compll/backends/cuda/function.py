"""CUDA of one encoder or decoder: a sequence of steps for a team of blocks (team.cuh).

A step is one loop, or a part of one operation on whole vectors. Numbers that follow from n, the
parameters and a payload's fields are computed by every thread that needs them; numbers that depend
on data are computed once, by the last block of the step before, and lie in the workspace.
"""

from __future__ import annotations

import re

from hipress.compll.backends.common.expressions import known
from hipress.compll.backends.cuda.expressions import (
    FIELD_BYTES,
    SCALAR,
    TYPES,
    cuda_expression,
    literal,
    width,
)
from hipress.compll.backends.cuda.loop import LoopWriter
from hipress.compll.backends.cuda.steps import Bounds, Step, indent
from hipress.compll.backends.cuda.vectors import VectorWriter
from hipress.compll.errors import CompileError
from hipress.compll.ir.ir import Function, Instr, Loop, Program, node_writes

_ACCESS = {
    "f32": "AsFloat", "i32": "AsInt", "u32": "AsUnsigned", "u16": "AsShort",
    "f16": "AsHalf<Float16>", "bf16": "AsHalf<BFloat16>",
}  # fmt: skip
_NOT_NUMBERS = {"reduce", "compact", "element", "require", "field_vector", "end_of_payload", "emit",
                "scatter", "sort", "unpack_ascending", "pack_where", "count_where",
                "unpack_where"}  # fmt: skip


class FunctionWriter:
    """Collects the steps of one encode or decode."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function = program, function
        self.numbers: dict[int, int] = {}
        self.steps: list[Step] = []
        self.instrs = {node.id: node for node in function.body if isinstance(node, Instr)}
        self.instrs |= {i.id: i for node in function.body if isinstance(node, Loop)
                        for i in node.results}  # fmt: skip
        self.sizes = Bounds(function)
        self.memory_lines: list[tuple[str, str, str]] = []  # name, type, bytes
        self.values: dict[int, str] = {}
        self.selections = 0
        self.free: dict[int, bool] = {}
        self.pointers: dict[str, str] = {}
        self.placed: set[str] = set()
        self.current = Step()
        self.vectors = VectorWriter(self)
        emits = [n for n in function.body if isinstance(n, Instr) and n.op == "emit"]
        self.fields = emits[0].attrs["fields"] if emits else []
        self.at_words = self.words()
        if len(program.states) > 4:
            raise CompileError("an algorithm for CUDA can have 4 states at most")

    # Numbers ----------------------------------------------------------------------

    def number(self, instr: Instr) -> int:
        return self.numbers.setdefault(instr.id, len(self.numbers))

    def value(self, instr: Instr) -> str:
        """CUDA text of a number of the function, which the current step then has."""
        text = known(instr)
        if text is None:
            self.current.needs.add(instr.id)
            text = f"s{self.number(instr)}"
        return text

    def everywhere(self, instr: Instr) -> bool:
        """True if every thread can compute a number for itself, without looking at vectors."""
        if instr.id not in self.free:
            needed = list(instr.args)
            if instr.op in ("topk", "pack_ascending"):
                needed.append(self.function.vectors[instr.vec[1]].size)
            self.free[instr.id] = instr.op not in _NOT_NUMBERS and all(map(self.everywhere, needed))
        return self.free[instr.id]

    def known_before(self, instr: Instr) -> bool:
        """True if a number does not come from the last step so far."""
        return self.everywhere(instr) or instr.id not in self.steps[-1].defines

    def use_key(self) -> None:
        self.current.key = True

    # Vectors ----------------------------------------------------------------------

    def plain(self, name: str) -> str:
        return re.sub(r"[^0-9A-Za-z_]", "_", name)

    def kept(self, name: str) -> str:
        """CUDA of whether a state is kept; empty if it always is."""
        needs = self.function.vectors[name].needs
        return self.value(needs) if needs is not None else ""

    def size(self, name: str) -> str:
        return self.value(self.function.vectors[name].size)

    def bytes_of(self, name: str) -> str:
        vector = self.function.vectors[name]
        if vector.packed:
            return f"PackedBytes({self.size(name)}, {width(vector.bits)}, {vector.multiple})"
        return f"{self.size(name)} * {vector.bits // 8}"

    def memory(self, name: str) -> str:
        """A pointer: to elements of four bytes where they are aligned, else to bytes."""
        vector, function = self.function.vectors[name], self.function
        if name in self.program.states:
            return f"call.states[{self.program.states.index(name)}]"
        if name == function.input:
            return "call.gradient"
        if name == function.output:
            return "call.out"
        if vector.kind == "field":
            return self.as_elements(name, f"f_{self.plain(name)}", "const ")
        if name in self.placed:
            return self.as_elements(name, f"(call.payload + {self.place(name)})", "")
        return f"memory.m_{self.plain(name)}"

    def as_elements(self, name: str, pointer: str, const: str) -> str:
        if not self.aligned(name):
            return pointer
        return f"reinterpret_cast<{const}{TYPES[self.function.vectors[name].elem]}*>({pointer})"

    def aligned(self, name: str) -> bool:
        """True if memory(name) points to elements."""
        vector = self.function.vectors[name]
        if vector.packed or vector.bits != 32:
            return False
        return name in self.at_words or not (vector.kind == "field" or name in self.placed)

    def words(self) -> set[str]:
        """Vectors of a payload that begin at multiples of four bytes, as the payload does."""
        fields = self.fields
        if self.function.kind == "decode":
            fields = [
                ("vector", i.vec[0]) if i.op == "field_vector" else (i.attrs["elem"], None)
                for i in self.instrs.values() if i.op in ("field", "field_vector")
            ]  # fmt: skip
        found: set[str] = set()
        for kind, what in fields:
            if kind != "vector":
                size = 8 * FIELD_BYTES[kind]
            else:
                found.add(what)
                vector = self.function.vectors[what]
                size = vector.multiple * vector.bits if isinstance(vector.bits, int) else 1
            if size % 32:
                break
        return found

    def get(self, name: str, at: str) -> str:
        vector = self.function.vectors[name]
        if vector.packed:
            msb = "true" if vector.order == "msb" else "false"
            return f"UnpackOne<{msb}>({width(vector.bits)}, {self.memory(name)}, {at})"
        if self.aligned(name):
            return f"{self.memory(name)}[{at}]"
        return f"{_ACCESS[vector.elem]}::Get({self.memory(name)}, {at})"

    def put(self, name: str, at: str, value: str) -> str:
        if self.aligned(name):
            return f"{self.memory(name)}[{at}] = {value}"
        vector = self.function.vectors[name]
        return f"{_ACCESS[vector.elem]}::Put({self.memory(name)}, {at}, {value})"

    def place(self, name: str) -> str | None:
        """Offset of a field in the payload, if all before it have sizes that are known by now."""
        parts = ["0"]
        for kind, what in self.fields:
            if kind == "vector" and what == name:
                return " + ".join(parts)
            if kind == "vector":
                size = self.function.vectors[what].size
                if not self.everywhere(size) and size.id not in self.values:
                    return None
                parts.append(self.bytes_of(what))
            else:
                parts.append(str(FIELD_BYTES[kind]))
        return None

    def allocate(self, name: str) -> None:
        """Memory of a temp: its place in the payload if that is known, else in the workspace."""
        vector = self.function.vectors[name]
        known = self.place(name) is not None
        if vector.kind != "temp" or name in self.placed or name in self.pointers:
            return
        if known and name not in self.vectors.whole:
            self.placed.add(name)
            return
        count = self.bound(vector.size)
        self.pointers[name] = name
        if vector.packed:
            bytes_ = f"PackedBytes({count}, {width(vector.bits)}, {vector.multiple})"
        else:
            bytes_ = f"{count} * {vector.bits // 8}"
        c_type = TYPES.get(vector.elem, "uint8_t")
        self.memory_lines.append((f"m_{self.plain(name)}", c_type, bytes_))

    def scratch(self, name: str, c_type: str, bytes_: str) -> str:
        """Memory in the workspace for the steps' own use."""
        self.memory_lines.append((name, c_type, bytes_))
        return f"memory.{name}"

    def bound(self, size: Instr) -> str:
        """Name of a size's upper bound in the constructor of Memory."""
        instr = self.sizes.bound(size)
        return literal(instr.attrs["value"], "i64") if instr.op == "const" else (
            "n" if instr.op == "n" else f"b{self.number(instr)}"
        )

    def partials(self, loop: Loop, instr: Instr, c_type: str) -> str:
        bytes_ = f"Blocks({self.bound(loop.domain)}, kBlock) * int64_t(sizeof({c_type}))"
        return self.scratch(f"part{self.number(instr)}", c_type, bytes_)

    # Steps ----------------------------------------------------------------------

    def new_step(self, domain: Instr | None = None, each: int = 8192) -> Step:
        """Begins a step; what is written from now on belongs to it."""
        self.current = Step(domain, each)
        self.steps.append(self.current)
        return self.current

    def define(self, instr: Instr, text: str, joined: bool = False) -> None:
        """A number that the last block of the current step computes and keeps for later steps."""
        step, name = self.current, f"s{self.number(instr)}"
        line = f"const {SCALAR[instr.type]} {name} = {text};"
        (step.joins if joined else step.serial).append(line)
        step.serial.append(f"control.values.{name} = {name};")
        step.defines.add(instr.id)
        self.values[instr.id] = SCALAR[instr.type]

    def build(self) -> None:
        """Makes all steps."""
        for node in self.function.body:
            if isinstance(node, Instr) and node.op == "end_of_payload":
                self.vectors.check_indices()
            if isinstance(node, Loop):
                self.loop(node)
            elif hasattr(self.vectors, f"do_{node.op}"):
                getattr(self.vectors, f"do_{node.op}")(node)
            elif not self.everywhere(node):
                args = [self.value(arg) for arg in node.args]
                self.define(node, cuda_expression(node, args))
        if not self.steps:
            self.new_step()

    def loop(self, loop: Loop) -> None:
        step = self.new_step(loop.domain)
        for name in sorted(node_writes(loop)):
            self.allocate(name)
        writer = LoopWriter(self, loop)
        lines = writer.lines()
        conditions = []
        if loop.guard is not None:
            conditions.append(self.value(loop.guard))
        if self.function.output in node_writes(loop) and self.vectors.sparse_output:
            conditions.append("!add")
        if conditions:
            lines = [f"if ({' && '.join(conditions)}) {{", *indent(lines), "}"]
        step.body += lines
        step.joins += writer.joins
        for instr, text in writer.written:
            if loop.guard is not None:
                text = f"{self.value(loop.guard)} ? {text} : {SCALAR[instr.type]}(0)"
            self.define(instr, text, joined=True)
