"""The dialect of C++ functions: names, memory, operations on whole vectors, and payload fields."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import (
    COUNTS,
    FIELD,
    CStyleEmitter,
    quoted,
)
from hipress.compression.compiler.backends.common.expressions import SCALAR
from hipress.compression.compiler.ir.ir import FIELD_BYTES, Function, Instr, Loop, Program
from hipress.compression.compiler.passes.analyses import (
    LazyState,
    num_readers,
    rankings,
    renewal,
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
_PLACEABLE = ("f32", "u32", "f16", "bf16")  # stored and loaded whatever the alignment


def refuse(text: str, *values: str) -> str:
    """Return the statement that refuses the payload."""
    return f"return Fail(call, {', '.join([quoted(text), *values])});"


_BAD_INDICES = refuse(
    "must have indices that ascend and are below %lld", "static_cast<long long>(n)"
)
# Operations that are one call: C++ of the value, if there is one, and of the call that fills
# vector 0, which is of that size; see CStyleEmitter.fill().
_CALLS = {
    "topk": (COUNTS["topk"], "TopK({v1}, {value}, &arena, {m0});"),
    "sort": ("", "Sort({v1}, {m0});"),
    "pack_ascending": (COUNTS["pack_ascending"], "PackAscending({v1}, n, {m0});"),
    "pack_gaps": ("", "PackGaps({v1}, n, {a0}, {m0});"),
    "pack_where": ("CountBits({v2})", "PackWhere({m1}, {v2}, {m0});"),
    "unpack_where": ("", "UnpackWhere({v1}, {v2}, {m0});"),
    "unpack_ascending": (
        "",
        f"if (!UnpackAscending({{m1}}, {{n0}}, n, {{m0}})) {_BAD_INDICES}",
    ),
    "unpack_gaps": ("", f"if (!UnpackGaps({{m1}}, {{b1}}, {{n0}}, n, {{m0}})) {_BAD_INDICES}"),
    "compact": ("CountBits({v1})", "Compact({v1}, {m0});"),
    "random_indices": (
        COUNTS["random_indices"],
        "{draw}(Clip({a0}, n), {value}, key, {site}, {arena}{m0});",
    ),
}
# Operations that are one value.
_VALUES = {
    "step": "static_cast<int64_t>(call.step)",
    "count_where": "CountBits({v0})",
    "gaps_bytes": "GapsBytes({v0}, n)",
    "pack_floats": "PackFloats(call)",
}


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
        filters: Masks that only a filter reads, with that filter.
        selected: Sorted vectors of which one element is read, with what they are sorted from.
        drawn_in: For each site of random numbers the number of the first loop that draws them.
        sampled: Vectors of indices that are runs of neighbors.
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
        self.filters = {
            node.vec[1]: node
            for node in function.operations("compact")
            if num_readers(function, node.vec[1]) == 1
        }
        elements = {instr.vec[0] for instr in function.operations("element")}
        self.selected = {
            node.vec[0]: node.vec[1]
            for node in function.operations("sort")
            if node.vec[0] in elements and num_readers(function, node.vec[0]) == 1
        }
        self.ranked = rankings(function, lazy)
        drawn = function.operations("random_indices")
        self.sampled = {node.vec[0] for node in drawn if node.attrs["run"] > 1}

    def instr(self, instr: Instr) -> None:
        """Write an instruction, unless it was written or is not needed."""
        if instr.op == "sort" and instr.vec[0] in self.selected:
            return  # only one element of the sorted vector is wanted
        if instr.op == "compact" and instr.vec[1] in self.filters:
            return  # done where the mask is made
        if instr.id not in self.known:
            super().instr(instr)
            self.known.add(instr.id)

    def scalar(self, instr: Instr) -> None:
        """Write a number of the function."""
        if instr.op in _CALLS:
            self.call(instr)
        elif instr.op in _VALUES:
            self.define(instr, self.fill(_VALUES[instr.op], instr))
        elif instr.op not in ("const", "param", "n"):
            self.define(instr, self.expression(instr))

    def check_indices(self, names: list[str]) -> None:
        """Refuse a payload whose indices do not ascend or are not below n."""
        for name in names:
            valid = f"ValidIndices({self.memory(name)}, {self.size(name)}, n)"
            self.lines.append(f"if (!{valid}) {_BAD_INDICES}")

    # Memory -----------------------------------------------------------------------------

    def memory(self, name: str) -> str:
        """Return the C++ of the memory where a vector is read."""
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
        """Return the C++ of a packed vector's bytes."""
        return self.packed_bytes(name, self.size(name))

    def c_type(self, name: str) -> str:
        """Return the C++ type of a vector's memory."""
        vector = self.function.vectors[name]
        return "uint8_t" if vector.packed else _STORAGE[vector.elem]

    def is_known(self, value: Instr) -> bool:
        """Return whether a number is computed by now."""
        return value.id in self.known or value.op in ("n", "const", "param")

    def define(self, instr: Instr, text: str) -> None:
        """Define the value of an instruction."""
        self.lines.append(f"const {SCALAR[instr.type]} {self.value(instr)} = {text};")

    def allocate_counted(self, instr: Instr, count: str) -> None:
        """Define an instruction's value, `count`, and allocate its target of that size."""
        self.define(instr, count)
        self.known.add(instr.id)
        self.allocate(instr.vec[0])

    def allocate(self, name: str) -> None:
        """Allocate a temp: at its offset in the payload if that is known, else in the arena."""
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

    # Whole vectors ----------------------------------------------------------------------

    def call(self, instr: Instr) -> None:
        """Write an operation of _CALLS."""
        value, call = _CALLS[instr.op]
        if value:
            self.allocate_counted(instr, self.fill(value, instr))
        else:
            self.allocate(instr.vec[0])
        runs = instr.attrs.get("run", 1) > 1
        draw, arena = ("SampleRuns", "&arena, ") if runs else ("Strata", "")
        site = str(instr.attrs.get("site"))
        self.lines.append(self.fill(call, instr, draw=draw, arena=arena, site=site))

    def _write_element(self, instr: Instr) -> None:
        text = "Element({v0}, {a0})"
        if instr.vec[0] in self.selected:
            source = self.vector_texts["v"](self.selected[instr.vec[0]])
            text = f"NthElement({source}, {{a0}}, &arena)"
        self.define(instr, self.fill(text, instr))

    def _write_dct(self, instr: Instr) -> None:
        """Write a transform, which a check of a payload skips unless it uses the result."""
        self.allocate(instr.vec[0])
        inverse = "true" if instr.op == "idct" else "false"
        line = self.fill(f"Cosines<{inverse}>(call, {{v1}}, {{a0}}, {{m0}});", instr)
        body = self.function.body
        used = self.unproven or any(node.effect for node in body[body.index(instr) :])
        skipped = self.is_decode and not used
        self.lines.append(f"if (!call.check_only) {line}" if skipped else line)

    _write_idct = _write_dct

    def _write_scatter(self, instr: Instr) -> None:
        target, index = instr.vec[:2]
        field = "ReadField<{}>(reinterpret_cast<const uint8_t*>({} + j))".format
        count, at = self.size(index), field(self.c_type(index), self.memory(index))
        if len(instr.vec) > 2:
            value = field("float", self.memory(instr.vec[2]))
        else:
            value = self.value(instr.args[0])
        place = f"{self.memory(target)}[{at}]"
        condition, inside = self.has(target), ""
        if self.is_output(target):
            value = f"part.add ? {place} + {value} : {value}"
            condition = "!call.check_only"
        elif index in self.unproven:
            at = f"static_cast<int64_t>({at})"
            inside = f"if ({at} >= 0 && {at} < n) "
        loop = f"for (int64_t j = 0; j < {count}; ++j) {inside}{place} = {value};"
        self.lines.append(f"if ({condition}) {loop}" if condition else loop)

    # Payloads ---------------------------------------------------------------------------

    def _write_emit(self, instr: Instr) -> None:
        lines = self.lines
        lines.append("int64_t offset = 0;")
        for kind, what in instr.attrs["fields"]:
            at = f"{self.payload} + offset"
            if kind != "vector":
                c_type, value = FIELD[kind], self.value(instr.args[what])
                lines.append(f"WriteField<{c_type}>({at}, static_cast<{c_type}>({value}));")
                lines.append(f"offset += {FIELD_BYTES[kind]};")
                continue
            size = self.bytes_of(what)
            if what in self.pointers and what not in self.placed:
                memory = self.memory(what)
                lines.append(f"std::memcpy({at}, {memory}, static_cast<size_t>({size}));")
            lines.append(f"offset += {size};")

    def need(self, size: object) -> None:
        """Refuse a payload without `size` more bytes."""
        at_least = f"static_cast<long long>(offset + {size})"
        fail = refuse("must have at least %lld bytes", at_least)
        self.lines.append(f"if (!Have(part.bytes, offset, {size})) {fail}")

    def _write_field(self, instr: Instr) -> None:
        elem = instr.attrs["elem"]
        self.need(FIELD_BYTES[elem])
        self.define(instr, f"ReadField<{FIELD[elem]}>({self.payload} + offset)")
        self.lines.append(f"offset += {FIELD_BYTES[elem]};")

    def _write_field_vector(self, instr: Instr) -> None:
        name = instr.vec[0]
        c_type, size = f"const {self.c_type(name)}*", self.bytes_of(name)
        pointer = self.pointers[name] = f"m_{name}"
        self.need(f"({size})")
        self.lines += [
            f"{c_type} const {pointer} = reinterpret_cast<{c_type}>({self.payload} + offset);",
            f"offset += {size};",
        ]
        if instr.attrs.get("zeros"):
            fail = refuse("must have zeros where bits pad a byte")
            self.lines.append(f"if (HasPadding({pointer}, {self.size(name)})) {fail}")
        if self.is_decode and name in self.unproven:
            self.check_indices([name])

    def _write_end_of_payload(self, instr: Instr) -> None:
        fail = refuse("must have %lld bytes", "static_cast<long long>(offset)")
        self.lines.append(f"if (offset != part.bytes) {fail}")

    def _write_require(self, instr: Instr) -> None:
        fail = refuse("%s", quoted(instr.attrs["message"]))
        self.lines.append(f"if (!{self.value(instr.args[0])}) {fail}")
