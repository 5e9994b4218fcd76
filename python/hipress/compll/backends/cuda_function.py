"""CUDA of one encoder or decoder: a sequence of steps for a team of blocks (team.cuh).

A step is one loop, or a part of one operation on whole vectors. Numbers that follow from n, the
parameters and a payload's fields are computed by every thread that needs them; numbers that depend
on data are computed once, by the last block of the step before, and lie in the workspace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hipress.compll.backends.cuda_expr import FIELD_BYTES, SCALAR, cuda_expression, literal
from hipress.compll.backends.cuda_loop import LoopWriter
from hipress.compll.backends.cuda_vectors import VectorWriter
from hipress.compll.backends.layout import Layout
from hipress.compll.frontend.errors import CompileError
from hipress.compll.ir.ir import Function, Instr, Loop, Program, node_writes

_ACCESS = {
    "f32": "AsFloat", "i32": "AsInt", "u32": "AsUnsigned", "u16": "AsShort",
    "f16": "AsHalf<Float16>", "bf16": "AsHalf<BFloat16>",
}  # fmt: skip
_NOT_NUMBERS = {"reduce", "compact", "element", "require", "field_vector", "end_of_payload", "emit",
                "scatter", "sort"}  # fmt: skip


def indent(lines: list[str], levels: int = 1) -> list[str]:
    return [line if line.startswith("#") else "  " * levels + line for line in lines]


@dataclass
class Step:
    """What all blocks do at once, and what the last one does afterwards.

    :ivar domain: a number of elements that says how many blocks are of use
    :ivar each: elements of a block's share
    :ivar joins: of all threads of the last block
    :ivar serial: of its first thread
    :ivar needs: ids of the numbers that it uses
    """

    domain: Instr | None = None
    each: int = 8192
    most_blocks: str = ""
    body: list[str] = field(default_factory=list)
    joins: list[str] = field(default_factory=list)
    serial: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    needs: set[int] = field(default_factory=set)
    defines: set[int] = field(default_factory=set)
    key: bool = False
    scatters: str = ""


class Bounds(Layout):
    """Upper bounds of vectors' sizes, from n and the parameters."""

    def __init__(self, function: Function) -> None:
        self.function, self.body, self.fixed = function, [], True

    def bound(self, size: Instr) -> Instr:
        if self.function.kind == "decode" and not self.is_pure(size):
            # A field's count; the program requires that it is at most n.
            return self._emit("n", [])
        return super().bound(size)


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
        if len(program.states) > 4:
            raise CompileError("an algorithm for CUDA can have 4 states at most")

    # Numbers ----------------------------------------------------------------------

    def number(self, instr: Instr) -> int:
        return self.numbers.setdefault(instr.id, len(self.numbers))

    def value(self, instr: Instr) -> str:
        """CUDA text of a number of the function, which the current step then has."""
        if instr.op == "const":
            return literal(instr.attrs["value"], instr.type)
        if instr.op == "n":
            return "n"
        if instr.op == "param":
            return f"p_{instr.attrs['name']}"
        self.current.needs.add(instr.id)
        return f"s{self.number(instr)}"

    def everywhere(self, instr: Instr) -> bool:
        """True if every thread can compute a number for itself, without looking at vectors."""
        if instr.id not in self.free:
            needed = list(instr.args)
            if instr.op == "topk":
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

    def size(self, name: str) -> str:
        return self.value(self.function.vectors[name].size)

    def bytes_of(self, name: str) -> str:
        vector = self.function.vectors[name]
        if vector.packed:
            return f"PackedBytes({self.size(name)}, {vector.bits}, {vector.multiple})"
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
            return f"f_{self.plain(name)}"
        if name in self.placed:
            return f"(call.payload + {self.place(name)})"
        return f"memory.m_{self.plain(name)}"

    def aligned(self, name: str) -> bool:
        """True if memory(name) points to elements."""
        vector = self.function.vectors[name]
        if vector.kind == "field" or name in self.placed or vector.packed:
            return False
        return vector.bits == 32

    def get(self, name: str, at: str) -> str:
        vector = self.function.vectors[name]
        if vector.packed:
            msb = "true" if vector.order == "msb" else "false"
            return f"UnpackOne<{vector.bits}, {msb}>({self.memory(name)}, {at})"
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
            bytes_ = f"PackedBytes({count}, {vector.bits}, {vector.multiple})"
        else:
            bytes_ = f"{count} * {vector.bits // 8}"
        c_type = {"f32": "float", "i32": "int32_t", "u32": "uint32_t"}.get(vector.elem, "uint8_t")
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
        if self.function.kind == "decode":
            self.vectors.check_indices()
        for node in self.function.body:
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

    # Text ----------------------------------------------------------------------

    def closure(self, step: Step) -> list[Instr]:
        """The numbers that a step needs, in order, with what they are computed from."""
        wanted: set[int] = set()
        todo = [self.instrs[id_] for id_ in step.needs if id_ in self.instrs]
        if self.function.kind == "decode":
            todo += [i for i in self.instrs.values()
                     if i.op in ("field", "field_vector", "require", "end_of_payload")]  # fmt: skip
        while todo:
            instr = todo.pop()
            if instr.id in wanted:
                continue
            wanted.add(instr.id)
            if instr.id not in self.values:
                todo += instr.args
                if instr.op in ("field_vector", "topk"):
                    todo.append(self.function.vectors[instr.vec[-1]].size)
        return [instr for instr in self.instrs.values() if instr.id in wanted]

    def prologue(self, step: Step) -> list[str]:
        """Numbers of a step, and for a decoder the reading of the payload."""
        lines, self.current = [], Step()
        for instr in self.closure(step):
            name = f"s{self.number(instr)}"
            if instr.op in ("const", "n", "param") or instr.id in step.defines:
                continue
            if instr.id in self.values:
                lines.append(f"const {SCALAR[instr.type]} {name} = control.values.{name};")
                continue
            text = self.vectors.everywhere(instr)
            if text is None:
                text = cuda_expression(instr, [self.value(arg) for arg in instr.args])
            lines.append(text if text.endswith(";") else f"const {SCALAR[instr.type]} {name} = {text};")
        return lines

    def step_text(self, position: int) -> list[str]:
        step = self.steps[position]
        decode = self.function.kind == "decode"
        lines = [
            "const Call& call = job.call;",
            "const int64_t n = call.n;",
            "Control& control = *static_cast<Control*>(call.workspace);",
            "const Memory memory(job);",
            *self.param_lines(),
        ]
        if step.key:
            lines.append("const PhiloxKey key = {static_cast<uint32_t>(" + (
                "p_seed" if any(p.name == "seed" for p in self.program.params) else "0"
            ) + "), static_cast<uint32_t>(call.step), call.stream};")  # fmt: skip
        if decode:
            lines += ["const bool add = job.add; (void)add;", "Reader reader(call);"]
        lines += self.prologue(step)
        if decode:
            if position == 0:
                checked = "!reader.Good() && " if self.vectors.checked else ""
                lines.append(
                    f"if ({checked}team.Block() == 0 && threadIdx.x == 0) reader.Report(call.status);"
                )
            bad = " || control.bad != 0" if self.vectors.checked and position > 0 else ""
            lines.append(f"if (!reader.Good(){bad}) return;")
        lines += step.body
        if step.first:
            lines += ["if (team.Block() == 0 && threadIdx.x == 0) {", *indent(step.first), "}"]
        if step.joins or step.serial:
            lines += [f"if (team.Last(shared, &control.tickets[{position}])) {{"]
            lines += indent(step.joins)
            if step.serial:
                lines += ["  if (threadIdx.x == 0) {", *indent(step.serial, 2), "  }"]
            lines.append("}")
        lines.append("(void)n, (void)control, (void)memory;")
        return [
            "template <class Team>",
            f"static COMPLL_DEVICE void Step{position}(const Team& team, Shared& shared, "
            "const Job& job) {",
            *indent(lines),
            "}",
        ]

    def param_lines(self) -> list[str]:
        lines = []
        for position, param in enumerate(self.program.params):
            c_type = "int64_t" if param.integer else "float"
            read = f"static_cast<{c_type}>(job.params.of[{position}])"
            if param.static:
                read = param.name
            lines.append(f"const {c_type} p_{param.name} = {read}; (void)p_{param.name};")
        return lines

    def memory_text(self) -> list[str]:
        """The struct of the workspace's parts; it is the same on host and device."""
        domains = []
        for step in self.steps:
            most = f"Least({step.most_blocks}, " if step.most_blocks else ""
            text = "1" if step.domain is None else (
                f"{most}Blocks({self.bound(step.domain)}, {step.each}){')' if most else ''}"
            )
            domains.append(text)
        parts = ["uint8_t* at = static_cast<uint8_t*>(job.call.workspace);",
                 "const uint8_t* const begin = at;",
                 "at += RoundUp(sizeof(Control));"]  # fmt: skip
        for name, c_type, bytes_ in self.memory_lines:
            parts += [f"{name} = reinterpret_cast<{c_type}*>(at);", f"at += RoundUp({bytes_});"]
        parts.append("bytes = at - begin;")
        parts += [f"blocks[{k}] = {text};" for k, text in enumerate(domains)]
        numbers = []
        for instr in self.sizes.body:
            if instr.op in ("const", "n", "param"):
                continue
            args = [self.bound_value(arg) for arg in instr.args]
            text = cuda_expression(instr, args)
            numbers.append(f"const {SCALAR[instr.type]} b{self.number(instr)} = {text};")
        return [
            "struct Memory {",
            *(f"  {c_type}* {name};" for name, c_type, _ in self.memory_lines),
            "  int64_t bytes;",
            f"  int64_t blocks[{len(self.steps)}];",
            "  COMPLL_BOTH explicit Memory(const Job& job) {",
            "    const int64_t n = job.call.n; (void)n;",
            *indent(self.param_lines(), 2),
            *indent([*numbers, *parts], 2),
            "  }",
            "};",
        ]

    def bound_value(self, instr: Instr) -> str:
        if instr.op == "const":
            return literal(instr.attrs["value"], instr.type)
        if instr.op in ("n", "param"):
            return "n" if instr.op == "n" else f"p_{instr.attrs['name']}"
        return f"b{self.number(instr)}"

    def stateful(self) -> bool:
        """True if the workspace must begin with zeros."""
        return self.vectors.checked != [] or any(s.joins or s.serial for s in self.steps)
