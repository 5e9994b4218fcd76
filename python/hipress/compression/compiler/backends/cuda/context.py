"""The dialect of CUDA functions: names, memory and the steps so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from hipress.compression.compiler.backends.common.emitter import CStyleEmitter
from hipress.compression.compiler.backends.common.expressions import (
    ELEMENT,
    SCALAR,
    cuda_scalars,
    known,
    literal,
)
from hipress.compression.compiler.compiler_errors import CompileError
from hipress.compression.compiler.ir.ir import FIELD_BYTES, OPS, Function, Instr, Program
from hipress.compression.compiler.passes.bounds import SizeBounds

_ACCESS = {
    "f32": "AsFloat",
    "i32": "AsInt",
    "u32": "AsUnsigned",
    "u16": "AsShort",
    "f16": "AsHalf<Float16>",
    "bf16": "AsHalf<BFloat16>",
}
_SIZES = ("step", "field", "topk", "random_indices", "pack_ascending")
"""Operations that are not pure, but whose value every thread can compute."""
_ALIGNED = (
    "compact",
    "topk",
    "sort",
    "random_indices",
    "element",
    "pack_ascending",
    "pack_gaps",
    "pack_where",
    "unpack_where",
    "dct",
    "idct",
)
MAX_STATES = 4


@dataclass
class KernelStage:
    """Work of all blocks in parallel, and of the last block afterwards."""

    domain: Instr | None = None
    """Number of elements, which limits the number of useful blocks."""
    each: int = 8192
    """Elements of a block's share."""
    most_blocks: str = ""
    body: list[str] = field(default_factory=list)
    joins: list[str] = field(default_factory=list)
    """Lines of all threads of the last block."""
    serial: list[str] = field(default_factory=list)
    """Lines of its first thread."""
    first: list[str] = field(default_factory=list)
    """Lines of the first block's first thread."""
    needs: set[int] = field(default_factory=set)
    """Ids of the numbers that it uses."""
    defines: set[int] = field(default_factory=set)
    """Ids of the numbers that it leaves in the workspace."""
    key: bool = False
    scatters: str = ""
    """Vector of the indices that it scatters by."""
    counts: bool = False
    """Whether it counts bits of a payload's mask, which determine a later field's size."""


def for_each(count: str, index: str, statement: str) -> str:
    """Return a loop of all threads over `count` numbers."""
    return f"ForEach(team, {count}, [&](int64_t {index}) {{ {statement} }});"


class CudaContext(CStyleEmitter):
    """One encode or decode while its steps are collected.

    Attributes:
        workspace: The workspace's parts: name, type of the elements, C++ of the bytes.
        values: C++ types of the numbers in the workspace, by id.
        unsorted: Sorted vectors that are not made, and what they would be sorted from.
        counts: Names of the arrays with the count of bits before each block's part of a mask, by
            the count's id.
        gaps: Names of the arrays that say how blocks of gaps are packed, by the id of gaps_bytes.
    """

    dialect = cuda_scalars

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.steps: list[KernelStage] = []
        results = [instr for loop in function.loops for instr in loop.results]
        self.instrs = {instr.id: instr for instr in [*function.scalars, *results]}
        self.sizes = SizeBounds(function)
        self.workspace: list[tuple[str, str, str]] = []
        self.values: dict[int, str] = {}
        self.selections = 0
        self.free: dict[int, bool] = {}
        self.allocated: set[str] = set()
        self.current = KernelStage()
        self.unsorted: dict[str, str] = {}
        self.counts: dict[int, str] = {}
        self.gaps: dict[int, str] = {}
        self.checks = self.is_decode and bool(
            self.unproven
            or function.operations(
                "unpack_ascending", "unpack_gaps", "count_where", "unpack_floats"
            )
        )
        self.aligned_temps = {name for n in function.operations(*_ALIGNED) for name in n.vec}
        self.word_fields = self.find_word_fields()
        if len(program.states) > MAX_STATES:
            raise CompileError(f"an algorithm for CUDA can have {MAX_STATES} states at most")

    def scalar(self, instr: Instr) -> None:
        """Write a number of the function."""
        if not self.everywhere(instr):
            self.define(instr, self.expression(instr))

    # Numbers ----------------------------------------------------------------------

    def value(self, instr: Instr) -> str:
        """Return the CUDA of a number of the function, which the current step then needs."""
        if known(instr) is None:
            self.current.needs.add(instr.id)
        return super().value(instr)

    def everywhere(self, instr: Instr) -> bool:
        """Return whether every thread can compute a number for itself, without reading vectors."""
        if instr.id not in self.free:
            needed = list(instr.args)
            if instr.op in ("topk", "pack_ascending"):
                needed.append(self.count(instr.vec[1]))
            number = OPS[instr.op].pure or instr.op in _SIZES
            self.free[instr.id] = number and all(map(self.everywhere, needed))
        return self.free[instr.id]

    def is_known(self, value: Instr) -> bool:
        """Return whether a number is computed by now."""
        return self.everywhere(value) or value.id in self.values

    def define(self, instr: Instr, text: str, joined: bool = False) -> None:
        """Define a number that the current step's last block computes and keeps for later steps."""
        step, name = self.current, f"s{self.number(instr)}"
        line = f"const {SCALAR[instr.type]} {name} = {text};"
        (step.joins if joined else step.serial).append(line)
        step.serial.append(f"control.values.{name} = {name};")
        step.defines.add(instr.id)
        self.values[instr.id] = SCALAR[instr.type]

    def new_step(self, domain: Instr | None = None, each: int = 8192) -> KernelStage:
        """Begin a step, to which all later output belongs."""
        self.current = KernelStage(domain, each)
        self.steps.append(self.current)
        return self.current

    def add_step(
        self, instr: Instr, size: Instr, text: str, allocate: bool = False, each: int = 8192
    ) -> KernelStage:
        """Add a step that is one statement.

        Args:
            instr: The instruction that the step is a part of.
            size: {size} of the statement: the number of elements that says how many blocks are of
                use.
            text: The statement's template; see CStyleEmitter.fill().
            allocate: Whether vector 0 is made here.
            each: Elements of a block's share.
        """
        step = self.new_step(size, each)
        if allocate:
            self.allocate(instr.vec[0])
        step.body.append(self.fill(f"{text};", instr, size=self.value(size)))
        return step

    def check_indices(self, names: list[str]) -> None:
        """Refuse a payload whose indices do not ascend or are not below n."""
        step = self.new_step(self.count(names[0]))
        for name in names:
            elem = self.function.vectors[name].elem
            c_type = {"u32": "uint32_t", "u16": "uint16_t"}.get(elem, "int32_t")
            bad = f"BadIndices(team, {self.vector_texts['v'](name)}, n, {c_type}())"
            step.body.append(f"if ({bad}) atomicOr(&control.disorder, 1u);")
        self.verdict("control.disorder != 0")

    def verdict(self, bad: str) -> None:
        """Let the last block report bad indices. No later step does anything if they are bad."""
        self.current.serial += [
            f"control.bad = {bad};",
            "call.status[0] = control.bad != 0 ? kBadIndices : kFine;",
            "call.status[1] = control.bad != 0 ? n : 0;",
        ]

    # Vectors ----------------------------------------------------------------------

    def kept(self, name: str) -> str:
        """Return the CUDA condition that a state is kept, or "" if it always is."""
        needs = self.function.vectors[name].needs
        return self.value(needs) if needs is not None else ""

    def memory(self, name: str) -> str:
        """Return a pointer: to elements of four bytes if they are aligned, otherwise to bytes."""
        if name in self.program.states:
            return f"call.states[{self.program.states.index(name)}]"
        if name == self.function.input:
            return "call.gradient"
        if name == self.function.output:
            return "call.out"
        if self.is_field(name):
            return self.as_elements(name, f"f_{self.plain(name)}", "const ")
        if name in self.placed:
            return self.as_elements(name, f"(call.payload + {self.field_offset(name, '0')})", "")
        return f"memory.m_{self.plain(name)}"

    def as_elements(self, name: str, pointer: str, const: str) -> str:
        """Return a pointer with the type of a vector's elements, if they are aligned."""
        if not self.aligned(name):
            return pointer
        return f"reinterpret_cast<{const}{ELEMENT[self.function.vectors[name].elem]}*>({pointer})"

    def aligned(self, name: str) -> bool:
        """Return whether memory(name) points to elements."""
        vector = self.function.vectors[name]
        if vector.packed or vector.bits != 32:
            return False
        return name in self.word_fields or not (vector.kind == "field" or name in self.placed)

    def find_word_fields(self) -> set[str]:
        """Return the vectors of a payload that begin at multiples of four bytes, as payloads do."""
        fields = self.fields
        if self.function.kind == "decode":
            fields = [
                ("vector", i.vec[0]) if i.op == "field_vector" else (i.attrs["elem"], None)
                for i in self.function.operations("field", "field_vector")
            ]
        found: set[str] = set()
        for kind, what in fields:
            if kind != "vector":
                bits = 8 * FIELD_BYTES[kind]
            else:
                found.add(what)
                vector = self.function.vectors[what]
                bits = vector.multiple * vector.bits if isinstance(vector.bits, int) else 1
            if bits % 32:
                break
        return found

    def get(self, name: str, at: str) -> str:
        """Return the CUDA of an element."""
        vector = self.function.vectors[name]
        if vector.packed:
            return f"UnpackOne<{self.msb(name)}>({self.width(name)}, {self.memory(name)}, {at})"
        if self.aligned(name):
            return f"{self.memory(name)}[{at}]"
        return f"{_ACCESS[vector.elem]}::Get({self.memory(name)}, {at})"

    def put(self, name: str, at: str, value: str) -> str:
        """Return the CUDA that assigns an element."""
        if self.aligned(name):
            return f"{self.memory(name)}[{at}] = {value}"
        access = _ACCESS[self.function.vectors[name].elem]
        return f"{access}::Put({self.memory(name)}, {at}, {value})"

    def allocate(self, name: str) -> None:
        """Allocate a temp: at its offset in the payload if known, else in the workspace."""
        vector = self.function.vectors[name]
        in_payload = self.field_offset(name, "0") is not None
        if vector.kind != "temp" or name in self.placed or name in self.allocated:
            return
        if in_payload and name not in self.aligned_temps:
            self.placed.add(name)
            return
        self.allocated.add(name)
        bytes_ = self.bytes_of(name, self.bound(vector.size))
        self.scratch(f"m_{self.plain(name)}", ELEMENT.get(vector.elem, "uint8_t"), bytes_)

    def scratch(self, name: str, c_type: str, bytes_: str) -> str:
        """Allocate memory in the workspace for the steps' own use, and return it."""
        self.workspace.append((name, c_type, bytes_))
        return f"memory.{name}"

    def bound(self, size: Instr) -> str:
        """Return the name of a size's upper bound in the constructor of Memory."""
        return self.bound_name(self.sizes.bound(size))

    def bound_name(self, instr: Instr) -> str:
        """Return the name of a bound in the constructor of Memory."""
        if instr.op == "const":
            return literal(instr.attrs["value"], instr.type)
        return known(instr) or f"b{self.number(instr)}"
