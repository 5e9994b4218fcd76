"""The C++ backend: a program as one source file on the headers of src/operator/contrib/compll."""

from __future__ import annotations

import re

from hipress.compll.backends.cpp_expr import SCALAR, expression, literal
from hipress.compll.backends.cpp_loop import LoopWriter
from hipress.compll.backends.layout import Layout
from hipress.compll.frontend.errors import CompileError
from hipress.compll.ir.ir import Block, Function, Instr, Loop, Param, Program, node_writes

_STORAGE = {
    "f32": "float", "i32": "int32_t", "u32": "uint32_t", "u16": "uint16_t", "f16": "Float16",
    "bf16": "BFloat16",
}  # fmt: skip
_FIELD = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "f32": "float"}
_FIELD_BYTES = {"u8": 1, "u16": 2, "u32": 4, "f32": 4}


def generate(program: Program, entry: str = "hipress_compll_algorithm") -> str:
    """The source file of an optimised program.

    :param entry: the name of its one exported function
    :raises CompileError: if a payload's size has no bound that follows from n and the parameters
    """
    return _ProgramWriter(program, entry).text()


def _indent(lines: list[str], levels: int = 1) -> list[str]:
    return [line if line.startswith("#") else "  " * levels + line for line in lines]


def _quoted(text: str) -> str:
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
            lines = [f"if (!({skip})) {{", *_indent(lines), "}"]
        self.lines += lines

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
        self.define(instr, f"CountBits({source}, {count})")
        self.known.add(instr.id)
        self.allocate(target)
        self.lines.append(f"Compact({source}, {count}, {self.memory(target)});")

    def do_topk(self, instr: Instr) -> None:
        target, source = instr.vec
        count = self.size(source)
        self.define(instr, f"Clip({self.value(instr.args[0])}, {count})")
        self.known.add(instr.id)
        self.allocate(target)
        self.lines.append(
            f"TopK({self.memory(source)}, {count}, {self.value(instr)}, {self.memory(target)});"
        )

    def do_sort(self, instr: Instr) -> None:
        target, source = instr.vec
        self.allocate(target)
        self.lines.append(
            f"Sort({self.memory(source)}, {self.size(source)}, {self.memory(target)});"
        )

    def do_sample(self, instr: Instr) -> None:
        target, source = instr.vec
        count = self.size(source)
        self.define(instr, f"Clip({self.value(instr.args[0])}, {count})")
        self.known.add(instr.id)
        self.allocate(target)
        self.lines.append(
            f"Sample({self.memory(source)}, {count}, {self.value(instr)}, key, "
            f"{instr.attrs['site']}, {self.memory(target)});"
        )

    def do_random_indices(self, instr: Instr) -> None:
        size = f"Clip({self.value(instr.args[0])}, n)"
        self.define(instr, f"Clip({self.value(instr.args[1])}, {size})")
        self.known.add(instr.id)
        self.allocate(instr.vec[0])
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
        message = _quoted(instr.attrs["message"])
        condition = self.value(instr.args[0])
        self.lines.append(f'if (!{condition}) return Fail(call, "%s", {message});')


class _ProgramWriter:
    def __init__(self, program: Program, entry: str) -> None:
        self.program, self.entry = program, entry
        self.statics = [param for param in program.params if param.static]

    def text(self) -> str:
        program = self.program
        parts = [
            f"// Generated by CompLL from {program.path.rsplit('/', 1)[-1]}; do not edit.",
            '#include "operator/contrib/compll/runtime.h"',
            "",
            "namespace hipress {",
            "namespace compll {",
            "namespace {",
            "",
            *self.sizes(),
        ]
        for function in program.functions:
            parts += self.function(function)
        parts += [*self.for_sum(), *self.table()]
        parts += [
            "}  // namespace",
            "}  // namespace compll",
            "}  // namespace hipress",
            "",
            f'extern "C" __attribute__((visibility("default"))) const CompllAlgorithm* '
            f"{self.entry}() {{ return &hipress::compll::kAlgorithm; }}",
            "",
        ]
        return "\n".join(parts)

    def param_lines(self, with_static: bool) -> list[str]:
        lines = []
        for position, param in enumerate(self.program.params):
            c_type = "int64_t" if param.integer else "float"
            read = f"static_cast<{c_type}>(params[{position}])"
            if param.static and with_static:
                read = param.name
            lines.append(f"const {c_type} p_{param.name} = {read}; (void)p_{param.name};")
        return lines

    # Functions ----------------------------------------------------------------------

    def function(self, function: Function) -> list[str]:
        kind = function.kind
        arguments = [f"int {param.name}" for param in self.statics]
        if kind == "decode":
            arguments.append("bool kAdd")
        head = f"template <{', '.join(arguments)}>\n" if arguments else ""
        result = "int64_t" if kind == "encode" else "int"
        seed = "p_seed" if any(param.name == "seed" for param in self.program.params) else "0"
        lines = [
            "const int64_t n = call.n;",
            "const double* const params = call.params;",
            "const int threads = call.threads;",
            "Arena arena;",
            "(void)n, (void)params, (void)threads;",
            *self.param_lines(with_static=True),
        ]
        if kind == "encode":
            lines.append(
                f"const PhiloxKey key = {{static_cast<uint32_t>({seed}), "
                "static_cast<uint32_t>(call.step), call.stream};"
            )
            lines.append("(void)key;")
        else:
            lines.append("int64_t offset = 0;")
        lines += FunctionWriter(self.program, function).text()
        lines.append("return 0;" if kind == "decode" else "return offset;")
        name = kind.capitalize()
        call = f"Compll{name}Call"
        return [
            f"{head}{result} {name}Impl(const {call}& call) {{",
            *_indent(lines),
            "}",
            "",
            f"{result} {name}(const {call}* call) {{",
            *_indent(self.dispatch(f"{name}Impl", kind == "decode", self.statics, [])),
            "}",
            "",
        ]

    def dispatch(self, name: str, add: bool, left: list[Param], chosen: list[str]) -> list[str]:
        """Calls the instantiation for the static parameters' values."""
        if left:
            position = self.program.params.index(left[0])
            lines = [f"switch (static_cast<int>(call->params[{position}])) {{"]
            for choice in left[0].choices:
                inner = self.dispatch(name, add, left[1:], [*chosen, str(choice)])
                lines += [f"  case {choice}: {{", *_indent(inner, 2), "  }"]
            bad = 'return Fail(*call, "has a parameter that is not allowed");' if add else (
                "return -1;"
            )
            return [*lines, "}", bad]
        if add:
            yes, no = (f"{name}<{', '.join([*chosen, flag])}>" for flag in ("true", "false"))
            return [f"return call->add ? {yes}(*call) : {no}(*call);"]
        arguments = f"<{', '.join(chosen)}>" if chosen else ""
        return [f"return {name}{arguments}(*call);"]

    def sizes(self) -> list[str]:
        """max_bytes and granularity."""
        lines = ["return 0;"]
        if self.program.encode is not None:
            layout = Layout(self.program.encode)
            lines = self.scalars(layout.body, layout.result)
        grain = ["int64_t grain = 1;"]
        for function in self.program.functions:
            for vector in function.vectors.values():
                if vector.packed and vector.kind in ("temp", "field"):
                    grain.append(f"grain = std::max<int64_t>(grain, {max(vector.multiple, 8)});")
        for param in self.program.params:
            if param.multiple % 64 == 0 and param.multiple > 1:
                grain.append(f"grain = std::max<int64_t>(grain, p_{param.name});")
        return [
            "int64_t MaxBytes(int64_t n, const double* params) {",
            "  (void)n, (void)params;",
            *_indent(self.param_lines(with_static=False)),
            *_indent(lines),
            "}",
            "",
            "int64_t Granularity(const double* params) {",
            "  (void)params;",
            *_indent(self.param_lines(with_static=False)),
            *_indent([*grain, "return grain;"]),
            "}",
            "",
        ]

    def scalars(self, body: list[Instr], result: Instr) -> list[str]:
        names: dict[int, str] = {}
        lines = []
        for instr in body:
            if instr.op in ("param", "n"):
                names[instr.id] = "n" if instr.op == "n" else f"p_{instr.attrs['name']}"
            elif instr.op == "step":
                continue
            else:
                instr = self.without_static(instr)
                names[instr.id] = f"s{len(names)}"
                text = expression(instr, [names[arg.id] for arg in instr.args], lane=False)
                lines.append(f"const {SCALAR[instr.type]} {names[instr.id]} = {text};")
                lines.append(f"(void){names[instr.id]};")
        return [*lines, f"return {names[result.id]};"]

    def without_static(self, instr: Instr) -> Instr:
        """Outside of templates a static parameter is a variable like any other."""
        bits = instr.attrs.get("bits")
        if isinstance(bits, str):
            return Instr(
                instr.op, instr.args, instr.type, instr.vec, {"bits": f"p_{bits}"}, instr.id
            )
        return instr

    def for_sum(self) -> list[str]:
        lines = []
        for position, param in enumerate(self.program.params):
            if isinstance(param.for_sum, Block):
                body = self.scalars(param.for_sum.body, param.for_sum.result)
                lines += [f"out[{position}] = [&] {{", *_indent(body), "}();"]
            else:
                lines.append(f"out[{position}] = params[{position}];")
        return [
            "void ForSum(const double* params, int64_t p_count, double* out) {",
            "  (void)params, (void)p_count, (void)out;",
            *_indent(self.param_lines(with_static=False)),
            *_indent(lines),
            "}",
            "",
        ]

    # The table ----------------------------------------------------------------------

    def table(self) -> list[str]:
        program = self.program
        lines, rows = [], []
        for param in program.params:
            choices = "nullptr"
            if param.choices:
                choices = f"kChoices_{param.name}"
                values = ", ".join(literal(float(c), "f64") for c in param.choices)
                lines.append(f"const double {choices}[] = {{{values}}};")
            low = literal(float("-inf") if param.low is None else float(param.low), "f64")
            high = literal(float("inf") if param.high is None else float(param.high), "f64")
            default = 0.0 if param.default is None else float(param.default)
            texts = (param.name, param.type, param.doc, param.allowed())
            rows.append(
                "{" + ", ".join([
                    *(_quoted(text) for text in texts),
                    str(int(param.default is not None)), literal(default, "f64"),
                    str(len(param.choices or ())), choices, low, high,
                    str(int(param.low_open)), str(int(param.high_open)), str(param.multiple),
                ]) + "},"
            )  # fmt: skip
        if rows:
            lines += ["const CompllParam kParams[] = {", *_indent(rows), "};"]
        residual = program.states.index("residual") if "residual" in program.states else -1
        fixed = int(program.encode is None or Layout(program.encode).fixed)
        lines += [
            "const CompllAlgorithm kAlgorithm = {",
            f"  COMPLL_ABI_VERSION, {_quoted(program.name)}, {_quoted(program.digest)},",
            f"  {_quoted(program.summary)},",
            f"  {len(rows)}, {'kParams' if rows else 'nullptr'}, {len(program.states)},",
            f"  {residual}, {fixed},",
            f"  Granularity, MaxBytes, {'Encode' if program.encode else 'nullptr'},",
            f"  {'Decode' if program.decode else 'nullptr'}, ForSum,",
            "};",
            "",
        ]
        return lines


__all__ = ["CompileError", "FunctionWriter", "generate"]
