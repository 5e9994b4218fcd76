"""The dialect of C++ functions: names, memory and the lines so far."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import CStyleEmitter
from hipress.compression.compiler.backends.common.expressions import SCALAR
from hipress.compression.compiler.backends.common.text import quoted
from hipress.compression.compiler.ir.ir import Function, Instr, Loop, Program
from hipress.compression.compiler.passes.lazy import LazyState
from hipress.compression.compiler.passes.ranking import rankings
from hipress.compression.compiler.passes.vector_uses import (
    filter_masks,
    renewal,
    sampled_indices,
    single_elements,
    used_after,
)

_STORAGE = {
    "f32": "float",
    "i32": "int32_t",
    "u32": "uint32_t",
    "u16": "uint16_t",
    "f16": "Float16",
    "bf16": "BFloat16",
}
_PLACEABLE = {"f32", "u32", "f16", "bf16"}  # stored and loaded whatever the alignment


def refuse(text: str, *values: str) -> str:
    """Return the statement that refuses the payload."""
    return f"return Fail(call, {', '.join([quoted(text), *values])});"


BAD_INDICES = refuse(
    "must have indices that ascend and are below %lld", "static_cast<long long>(n)"
)


class CppContext(CStyleEmitter):
    """An encode, or a decode of one payload, while it is written.

    Args:
        program: The program.
        function: Its encode or decode.
        lazy: How the encoder leaves a state lazy, if it does.

    Attributes:
        known: Ids of the values that are computed by now.
        pointers: C++ of the memory of vectors that have one by now, where it is read.
        renewals: For each state the first loop that writes it, if that writes all of it. Up to then
            the state is read where it was before the encode.
        final: States of which that loop is also the last that reads or writes them.
        drawn_in: For each site of random numbers the number of the first loop that draws them.
    """

    def __init__(self, program: Program, function: Function, lazy: LazyState | None = None) -> None:
        super().__init__(program, function)
        self.lazy = lazy
        self.params = {param.name: param for param in program.params}
        self.lines: list[str] = []
        self.known: set[int] = set()
        self.pointers: dict[str, str] = {}
        self.renewals = {name: renewal(function, name) for name in program.states}
        skipped = None if lazy is None else lazy.last
        self.final = {
            name
            for name, first in self.renewals.items()
            if first is not None and not used_after(function, name, first, skipped)
        }
        self.drawn_in: dict[int, int] = {}
        self.payload = "part.payload" if self.is_decode else "call.payload"
        self.filters = filter_masks(function)
        self.selected = single_elements(function)
        self.ranked = rankings(function, lazy)
        self.sampled = sampled_indices(function)

    def instr(self, instr: Instr) -> None:
        if instr.op == "sort" and instr.vec[0] in self.selected:
            return  # only one element of the sorted vector is wanted
        if instr.op == "compact" and instr.vec[1] in self.filters:
            return  # done where the mask is made
        if instr.id not in self.known:
            super().instr(instr)
            self.known.add(instr.id)

    def scalar(self, instr: Instr) -> None:
        if instr.op == "step":
            self.define(instr, "static_cast<int64_t>(call.step)")
        elif instr.op not in ("const", "param", "n"):
            self.define(instr, self.expression(instr))

    def check_indices(self, names: list[str]) -> None:
        for name in names:
            valid = f"ValidIndices({self.memory(name)}, {self.size(name)}, n)"
            self.lines.append(f"if (!{valid}) {BAD_INDICES}")

    def memory(self, name: str) -> str:
        return self.pointers[name]

    def target(self, name: str) -> str:
        """Return the memory to which a vector is written."""
        state = self.function.vectors[name].kind == "state"
        return f"state_{name}" if state else self.memory(name)

    def after(self, loop: Loop) -> dict[str, str]:
        """Return the C++ of vectors' memory for reads after a loop."""
        renewed = {name for name, first in self.renewals.items() if first is loop}
        return {**self.pointers, **{name: self.target(name) for name in renewed}}

    def has(self, name: str) -> str:
        """Return the template argument for whether a state is kept, or "" if it always is."""
        return f"kHas_{name}" if self.function.vectors[name].needs is not None else ""

    def packed_size(self, name: str) -> str:
        return self.packed_bytes(name, self.size(name))

    def c_type(self, name: str) -> str:
        vector = self.function.vectors[name]
        return "uint8_t" if vector.packed else _STORAGE[vector.elem]

    def is_known(self, value: Instr) -> bool:
        return value.id in self.known or value.op in ("n", "const", "param")

    def define(self, instr: Instr, text: str) -> None:
        self.lines.append(f"const {SCALAR[instr.type]} {self.value(instr)} = {text};")

    def allocate_counted(self, instr: Instr, count: str) -> None:
        """Define an instruction's value, `count`, and allocate its target of that size."""
        self.define(instr, count)
        self.known.add(instr.id)
        self.allocate(instr.vec[0])

    def allocate(self, name: str) -> None:
        """Allocate a temp: at its offset in the payload if that is known, otherwise in scratch
        memory."""
        pointer, c_type = f"m_{self.plain(name)}", self.c_type(name)
        self.pointers[name] = pointer
        offset = self.field_offset(name, "int64_t(0)")
        vector = self.function.vectors[name]
        if offset is not None and (vector.packed or vector.elem in _PLACEABLE):
            self.placed.add(name)
            memory = f"reinterpret_cast<{c_type}*>({self.payload} + {offset})"
        else:
            size = self.packed_size(name) if vector.packed else self.size(name)
            memory = f"arena.Get<{c_type}>({size})"
        self.lines.append(f"{c_type}* const {pointer} = {memory};")

    def filtered(self, compact: Instr, name: str) -> list[str]:
        """Declare the results of a filter: the number and the indices."""
        pointer = self.pointers[compact.vec[0]] = f"m_{compact.vec[0]}"
        self.known.add(compact.id)
        return [
            f"const int64_t {self.value(compact)} = {name}.Join();",
            f"int32_t* const {pointer} = {name}.data();",
        ]
