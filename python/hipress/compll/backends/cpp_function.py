"""C++ of one encoder or decoder: scalars, operations on whole vectors, payload fields."""

from __future__ import annotations

import re

from hipress.compll.backends.cpp_expr import SCALAR, expression, literal
from hipress.compll.backends.cpp_loop import LoopWriter
from hipress.compll.ir.ir import Function, Instr, Loop, Program, node_writes

_STORAGE = {
    "f32": "float", "i32": "int32_t", "u32": "uint32_t", "u16": "uint16_t", "f16": "Float16",
    "bf16": "BFloat16",
}  # fmt: skip
_FIELD = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "f32": "float"}
_FIELD_BYTES = {"u8": 1, "u16": 2, "u32": 4, "f32": 4}


def indent(lines: list[str], levels: int = 1) -> list[str]:
    return [line if line.startswith("#") else "  " * levels + line for line in lines]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class FunctionWriter:
    """Writes one encode or decode."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program, self.function = program, function
        self.numbers: dict[int, int] = {}
        self.lines: list[str] = []
        self.known: set[int] = set()
        self.pointers: dict[str, str] = {}
        self.loops = 0
        self.offset = "int64_t(0)"
        emits = [n for n in function.body if isinstance(n, Instr) and n.op == "emit"]
        self.fields = emits[0].attrs["fields"] if emits else []
        self.placed: dict[str, str] = {}
        self.index_checks = {
            node.vec[1] for node in function.body if isinstance(node, Instr)
            and node.op == "scatter" and function.vectors[node.vec[1]].kind == "field"
        }  # fmt: skip
        self.sparse_output = any(
            isinstance(n, Instr) and n.op == "scatter" and n.vec[0] == function.output
            for n in function.body
        )

    # Names ----------------------------------------------------------------------

    def number(self, instr: Instr) -> int:
        return self.numbers.setdefault(instr.id, len(self.numbers))

    def value(self, instr: Instr) -> str:
        """C++ of a scalar of the function."""
        if instr.op == "const":
            return literal(instr.attrs["value"], instr.type)
        if instr.op == "n":
            return "n"
        if instr.op == "param":
            return f"p_{instr.attrs['name']}"
        return f"s{self.number(instr)}"

    def memory(self, name: str) -> str:
        return self.pointers[name]

    def size(self, name: str) -> str:
        return self.value(self.function.vectors[name].size)

    def bits(self, name: str) -> str:
        return f"int({self.function.vectors[name].bits})"

    def packed_size(self, name: str) -> str:
        vector = self.function.vectors[name]
        return f"PackedBytes({self.size(name)}, {vector.bits}, {vector.multiple})"

    def bytes_of(self, name: str) -> str:
        vector = self.function.vectors[name]
        if vector.packed:
            return self.packed_size(name)
        return f"{self.size(name)} * {vector.bits // 8}"

    def c_type(self, name: str) -> str:
        vector = self.function.vectors[name]
        return "uint8_t" if vector.packed else _STORAGE[vector.elem]

    # Body ----------------------------------------------------------------------

    def text(self) -> list[str]:
        """Lines of the function's body."""
        function = self.function
        vectors = function.vectors
        for position, name in enumerate(self.program.states):
            if name in vectors:
                pointer = f"state_{name}"
                self.pointers[name] = pointer
                self.lines.append(f"float* const {pointer} = call.states[{position}];")
        if function.kind == "encode":
            self.pointers[function.input] = "call.gradient"
        else:
            self.pointers[function.output] = "call.out"
        for node in function.body:
            if isinstance(node, Loop):
                self.loop(node)
                self.known |= {instr.id for instr in node.results}
            else:
                self.instr(node)
                self.known.add(node.id)
        return self.lines

    def loop(self, loop: Loop) -> None:
        for name in sorted(node_writes(loop)):
            if name not in self.pointers:
                self.allocate(name)
        lines = LoopWriter(self, loop, self.loops).lines()
        self.loops += 1
        if self.function.output in node_writes(loop) and self.function.kind == "decode":
            skip = "call.check_only" + (" || kAdd" if self.sparse_output else "")
            lines = [f"if (!({skip})) {{", *indent(lines), "}"]
        self.lines += lines

    def allocate_counted(self, instr: Instr, count: str) -> None:
        """Defines an instruction's value, `count`, and allocates its target of that size."""
        self.define(instr, count)
        self.known.add(instr.id)
        self.allocate(instr.vec[0])

    def allocate(self, name: str) -> None:
        """Memory of a temp: its place in the payload if that is known, else scratch."""
        pointer = f"m_{re.sub(r'[^0-9A-Za-z_]', '_', name)}"
        self.pointers[name] = pointer
        c_type = self.c_type(name)
        offset = self.place(name)
        vector = self.function.vectors[name]
        if offset is not None and (vector.packed or vector.elem == "f32"):
            self.placed[name] = pointer
            self.lines.append(
                f"{c_type}* const {pointer} = reinterpret_cast<{c_type}*>(call.payload + {offset});"
            )
            return
        size = self.packed_size(name) if vector.packed else self.size(name)
        self.lines.append(f"{c_type}* const {pointer} = arena.Get<{c_type}>({size});")

    def place(self, name: str) -> str | None:
        """Offset of a field in the payload, if all before it have sizes that are known by now."""
        parts = []
        for kind, what in self.fields:
            if kind == "vector" and what == name:
                return " + ".join(["int64_t(0)", *parts])
            if kind == "vector":
                size = self.function.vectors[what].size
                if size.id not in self.known and size.op not in ("n", "const", "param"):
                    return None
                parts.append(self.bytes_of(what))
            else:
                parts.append(str(_FIELD_BYTES[kind]))
        return None

    def instr(self, instr: Instr) -> None:
        special = getattr(self, f"do_{instr.op}", None)
        if special is not None:
            special(instr)
            return
        if instr.op in ("const", "param", "n"):
            return
        if instr.op == "step":
            text = "static_cast<int64_t>(call.step)"
        else:
            text = expression(instr, [self.value(arg) for arg in instr.args], lane=False)
        self.define(instr, text)

    def define(self, instr: Instr, text: str) -> None:
        self.lines.append(f"const {SCALAR[instr.type]} {self.value(instr)} = {text};")

    # Whole vectors ----------------------------------------------------------------------

    def do_element(self, instr: Instr) -> None:
        name = instr.vec[0]
        at = self.value(instr.args[0])
        self.define(instr, f"Element({self.memory(name)}, {self.size(name)}, {at})")

    def do_compact(self, instr: Instr) -> None:
        target, mask = instr.vec
        count, source = self.size(mask), self.memory(mask)
        self.allocate_counted(instr, f"CountBits({source}, {count})")
        self.lines.append(f"Compact({source}, {count}, {self.memory(target)});")

    def do_topk(self, instr: Instr) -> None:
        target, source = instr.vec
        count = self.size(source)
        self.allocate_counted(instr, f"Clip({self.value(instr.args[0])}, {count})")
        self.lines.append(
            f"TopK({self.memory(source)}, {count}, {self.value(instr)}, {self.memory(target)});"
        )

    def do_sort(self, instr: Instr) -> None:
        target, source = instr.vec
        self.allocate(target)
        self.lines.append(
            f"Sort({self.memory(source)}, {self.size(source)}, {self.memory(target)});"
        )

    def do_random_indices(self, instr: Instr) -> None:
        size = f"Clip({self.value(instr.args[0])}, n)"
        self.allocate_counted(instr, f"Clip({self.value(instr.args[1])}, {size})")
        self.lines.append(
            f"Strata({size}, {self.value(instr)}, key, {instr.attrs['site']}, "
            f"{self.memory(instr.vec[0])});"
        )

    def do_scatter(self, instr: Instr) -> None:
        target, index = instr.vec[:2]
        count, at = self.size(index), f"ReadField<{self.c_type(index)}>("
        at = f"{at}reinterpret_cast<const uint8_t*>({self.memory(index)} + j))"
        if len(instr.vec) > 2:
            memory = self.memory(instr.vec[2])
            value = f"ReadField<float>(reinterpret_cast<const uint8_t*>({memory} + j))"
        else:
            value = self.value(instr.args[0])
        output = self.function.kind == "decode" and target == self.function.output
        place = f"{self.memory(target)}[{at}]"
        if output:
            value = f"kAdd ? {place} + {value} : {value}"
        loop = f"for (int64_t j = 0; j < {count}; ++j) {place} = {value};"
        self.lines.append(f"if (!call.check_only) {loop}" if output else loop)

    # Payloads ----------------------------------------------------------------------

    def do_emit(self, instr: Instr) -> None:
        self.lines.append("int64_t offset = 0;")
        for kind, what in instr.attrs["fields"]:
            if kind != "vector":
                c_type, value = _FIELD[kind], self.value(instr.args[what])
                self.lines += [
                    f"WriteField<{c_type}>(call.payload + offset, static_cast<{c_type}>({value}));",
                    f"offset += {_FIELD_BYTES[kind]};",
                ]
                continue
            size = self.bytes_of(what)
            if what not in self.placed:
                self.lines.append(
                    f"std::memcpy(call.payload + offset, {self.memory(what)}, "
                    f"static_cast<size_t>({size}));"
                )
            self.lines.append(f"offset += {size};")

    def do_field(self, instr: Instr) -> None:
        elem = instr.attrs["elem"]
        size = _FIELD_BYTES[elem]
        self.lines.append(self.need(str(size)))
        self.define(instr, f"ReadField<{_FIELD[elem]}>(call.payload + offset)")
        self.lines.append(f"offset += {size};")

    def need(self, size: str) -> str:
        return (
            f'if (!Have(call, offset, {size})) return Fail(call, "must have at least %lld bytes", '
            f"static_cast<long long>(offset + {size}));"
        )

    def do_field_vector(self, instr: Instr) -> None:
        name = instr.vec[0]
        c_type = self.c_type(name)
        pointer = f"m_{name}"
        self.pointers[name] = pointer
        self.lines += [
            self.need(f"({self.bytes_of(name)})"),
            f"const {c_type}* const {pointer} = "
            f"reinterpret_cast<const {c_type}*>(call.payload + offset);",
            f"offset += {self.bytes_of(name)};",
        ]
        if name in self.index_checks:
            self.lines.append(
                f"if (!ValidIndices({pointer}, {self.size(name)}, n)) return Fail(call, "
                '"must have indices that ascend and are below %lld", static_cast<long long>(n));'
            )

    def do_end_of_payload(self, instr: Instr) -> None:
        self.lines.append(
            'if (offset != call.bytes) return Fail(call, "must have %lld bytes", '
            "static_cast<long long>(offset));"
        )

    def do_require(self, instr: Instr) -> None:
        message = quoted(instr.attrs["message"])
        condition = self.value(instr.args[0])
        self.lines.append(f'if (!{condition}) return Fail(call, "%s", {message});')
