"""C++ of a payload's fields: written by an encoder, read and checked by a decoder."""

from __future__ import annotations

from hipress.compll.ir.ir import Instr

_FIELD = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "f32": "float"}
FIELD_BYTES = {"u8": 1, "u16": 2, "u32": 4, "f32": 4}


def indent(lines: list[str], levels: int = 1) -> list[str]:
    return [line if line.startswith("#") else "  " * levels + line for line in lines]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class PayloadWriter:
    """Part of FunctionWriter."""

    def do_emit(self, instr: Instr) -> None:
        self.lines.append("int64_t offset = 0;")
        for kind, what in instr.attrs["fields"]:
            if kind != "vector":
                c_type, value = _FIELD[kind], self.value(instr.args[what])
                self.lines += [
                    f"WriteField<{c_type}>({self.payload} + offset, "
                    f"static_cast<{c_type}>({value}));",
                    f"offset += {FIELD_BYTES[kind]};",
                ]
                continue
            size = self.bytes_of(what)
            if what not in self.placed:
                self.lines.append(
                    f"std::memcpy({self.payload} + offset, {self.memory(what)}, "
                    f"static_cast<size_t>({size}));"
                )
            self.lines.append(f"offset += {size};")

    def do_field(self, instr: Instr) -> None:
        elem = instr.attrs["elem"]
        size = FIELD_BYTES[elem]
        self.lines.append(self.need(str(size)))
        self.define(instr, f"ReadField<{_FIELD[elem]}>({self.payload} + offset)")
        self.lines.append(f"offset += {size};")

    def need(self, size: str) -> str:
        return (
            f"if (!Have(part.bytes, offset, {size})) return Fail(call, "
            f'"must have at least %lld bytes", '
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
            f"reinterpret_cast<const {c_type}*>({self.payload} + offset);",
            f"offset += {self.bytes_of(name)};",
        ]
        if instr.attrs.get("zeros"):
            self.lines.append(
                f"if (HasPadding({pointer}, {self.size(name)})) "
                'return Fail(call, "must have zeros where bits pad a byte");'
            )
        if name in self.index_checks:
            self.lines.append(
                f"if (!ValidIndices({pointer}, {self.size(name)}, n)) {self.bad_indices()}"
            )

    def bad_indices(self) -> str:
        return (
            'return Fail(call, "must have indices that ascend and are below %lld", '
            "static_cast<long long>(n));"
        )

    def do_end_of_payload(self, instr: Instr) -> None:
        self.lines.append(
            'if (offset != part.bytes) return Fail(call, "must have %lld bytes", '
            "static_cast<long long>(offset));"
        )

    def do_require(self, instr: Instr) -> None:
        message = quoted(instr.attrs["message"])
        condition = self.value(instr.args[0])
        self.lines.append(f'if (!{condition}) return Fail(call, "%s", {message});')
