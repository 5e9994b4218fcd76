"""The one intermediate representation, typed and in SSA form.

A :class:`Function` is a list of nodes. A node is an :class:`Instr` (a scalar computation or an
operation on whole vectors) or a :class:`Loop`, whose body runs once for each element and must not
depend on the order of elements. Values are instructions; vectors are named memory.

Types of values: f32, f64, i32, i64, u32, bool. Inside loops there is no i64 and no f64: scalars
are narrowed before they go in. Storage types of vectors add f16, bf16, u16 and u<b> (packed codes).

Instructions of loop bodies and of scalars
    const, param, n (the gradient's element count), step, the operators of OPERATORS, cast,
    saturate (float to 0 .. 2^bits - 1), bitcast, select, random (a u32 word by element and site),
    random16 (16 random bits as i32, likewise)
Of loop bodies only
    index, load v[i], load_at v[args[0]] (clamped into v), bucket_load v[i / bucket],
    store v[i], reduce (its value is a scalar outside the loop), bucket_reduce (writes v)
Of functions only
    compact (indices where a mask is 1; the value is their number), topk, sort, random_indices (in
    runs of neighbors: 1 or RUN), scatter, element, field, field_vector, end_of_payload, require,
    pack_ascending (indices to bytes; the value is their number), unpack_ascending (bytes to
    indices, or the payload is refused), ascending_bytes (of args[0] indices below args[1]),
    gaps_bytes (of indices packed by their gaps), pack_gaps and unpack_gaps (as of pack_ascending;
    the last operand is that number), gaps_most (at most that of args[0] indices below args[1]),
    dct and idct (of vector 1, in blocks of args[0] elements, to vector 0),
    pack_where (bits under a mask; the value is their number), count_where (of a mask), unpack_where
    (bits under a mask to where they were, 0 elsewhere), pack_floats (the gradient to bytes; the
    value is their number), floats_bytes (at most that of args[0] floats), unpack_floats (the whole
    payload to the output, or it is refused), emit
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

BINARY = {
    "add",
    "sub",
    "mul",
    "div",
    "mod",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "min",
    "max",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
}
COMPARE = {"lt", "le", "gt", "ge", "eq", "ne"}
RANK = {"bool": 0, "i32": 1, "u32": 2, "i64": 3, "f32": 4, "f64": 5}
RUN = 4
"""Consecutive elements in a run of `sample`: they are in one cache line, 16 bytes for one load."""
TRANSFORMS = (16, 32, 64, 128, 256, 512, 1024)
"""Blocks of dct and idct. Lanes divide the least, and a GPU's block has memory for the largest."""
FIELD_BYTES = {"u8": 1, "u16": 2, "u32": 4, "f32": 4}
"""Sizes of the numbers that a payload can have as fields."""
STORAGE_BITS = {"f32": 32, "i32": 32, "u32": 32, "f16": 16, "bf16": 16, "u16": 16}

_ids = count()


@dataclass(eq=False)
class Instr:
    """One operation and the value it makes.

    :param vec: the vectors it reads or writes, see reads() and writes()
    """

    op: str
    args: list[Instr] = field(default_factory=list)
    type: str = "none"
    vec: list[str] = field(default_factory=list)
    attrs: dict = field(default_factory=dict)
    id: int = field(default_factory=lambda: next(_ids))

    def key(self) -> tuple:
        """Return a key that is equal for instructions with the same value from the same
        operands."""
        args = tuple(arg.id for arg in self.args)
        return (self.op, args, self.type, tuple(self.vec), repr(sorted(self.attrs.items())))


@dataclass(eq=False)
class Block:
    """A function of scalars, for reduce: `result` computed by `body` from `params`."""

    params: list[Instr]
    body: list[Instr]
    result: Instr


@dataclass(eq=False)
class Loop:
    """Loop that executes its body for every i in [0, domain).

    :param guard: a bool made before the loop: where it is false, nothing uses the loop's
        results, and a backend may skip it
    """

    domain: Instr
    body: list[Instr] = field(default_factory=list)
    guard: Instr | None = None

    @property
    def results(self) -> list[Instr]:
        return [instr for instr in self.body if instr.op == "reduce"]


@dataclass(eq=False)
class Vector:
    """Named memory of `size` elements.

    :param elem: storage type; u1 to u8 with `bits` an int or the name of a parameter
    :param kind: input, output, state, temp or field (of the payload, when decoding)
    :param order: which end of a byte the first code is in: lsb or msb
    :param multiple: a packed vector is padded with zeros to a multiple of this many elements
    :param needs: of a state: a bool of the parameters; where it is false, reads see 0 and nothing
        is written
    """

    name: str
    elem: str
    size: Instr
    kind: str
    order: str = "lsb"
    multiple: int = 1
    needs: Instr | None = None

    @property
    def packed(self) -> bool:
        return self.elem.startswith("u<")

    @property
    def bits(self) -> int | str:
        """Bits of one element: a number, or the name of the parameter with the number."""
        if not self.packed:
            return STORAGE_BITS[self.elem]
        text = self.elem[2:-1]
        return int(text) if text.isdigit() else text

    @property
    def value_type(self) -> str:
        """Type of a loaded element."""
        if self.elem in ("f32", "f16", "bf16"):
            return "f32"
        return self.elem if self.elem in ("i32", "u32") else "i32"


@dataclass
class Param:
    """A parameter of the algorithm; values are Python floats or ints."""

    name: str
    type: str
    default: float | int | None
    doc: str
    choices: tuple | None = None
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False
    multiple: int = 1
    for_sum: object = None
    static: bool = False

    @property
    def integer(self) -> bool:
        return self.type != "float"

    def allows(self, value: float | int) -> bool:
        """Return whether the parameter may have this value."""
        if isinstance(value, float):
            if not math.isfinite(value) or self.integer and value != int(value):
                return False
        if self.choices is not None:
            return value in self.choices
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        above = value > low if self.low_open else value >= low
        below = value < high if self.high_open else value <= high
        return above and below and (self.multiple == 1 or value % self.multiple == 0)

    def allowed(self) -> str:
        """Return the allowed values in words."""
        kind = "an integer" if self.integer else "a finite number"
        show = str if self.integer else lambda value: repr(value).removesuffix(".0")
        if self.choices:
            return "one of " + ", ".join(show(value) for value in self.choices)
        words = []
        if self.low is not None:
            words.append(f"{'>' if self.low_open else '>='} {show(self.low)}")
        if self.high is not None:
            words.append(f"{'<' if self.high_open else '<='} {show(self.high)}")
        text = " ".join([kind, " and ".join(words)]).strip()
        return text + (f", a multiple of {self.multiple}" if self.multiple > 1 else "")


@dataclass(eq=False)
class Function:
    """An encode or a decode: `kind` says which. Decoders write the vector "out"."""

    name: str
    kind: str
    body: list
    vectors: dict[str, Vector]
    input: str
    output: str

    def instrs(self) -> Iterator[Instr]:
        """Yield every instruction in order, with loop bodies."""
        for node in self.body:
            if isinstance(node, Loop):
                yield from node.body
            else:
                yield node


@dataclass(eq=False)
class Program:
    """An algorithm: its parameters, states and functions.

    :ivar digest: of its meaning (the IR before any pass): equal digests, equal payloads
    :ivar optimized: whether all passes have run
    """

    name: str
    summary: str
    params: list[Param]
    states: list[str]
    encode: Function | None
    decode: Function | None
    source: str = ""
    path: str = "<text>"
    digest: str = ""
    optimized: bool = False

    @property
    def identifier(self) -> str:
        """The name as a part of a C++ identifier."""
        return re.sub(r"\W", "_", self.name)

    @property
    def functions(self) -> list[Function]:
        return [function for function in (self.encode, self.decode) if function is not None]

    @property
    def exact(self) -> bool:
        """Whether payloads contain the gradient with all its bits, in its own type."""
        return any(
            instr.op in ("pack_floats", "unpack_floats")
            for function in self.functions
            for instr in function.instrs()
        )

    @property
    def uses_step(self) -> bool:
        """Whether a payload depends on states, or, as random numbers do, on the number of
        encodes."""
        if self.encode is None:
            return False
        loops = [node for node in self.encode.body if isinstance(node, Loop)]
        used = [value for instr in self.encode.instrs() for value in instr.args]
        used += [value for loop in loops for value in (loop.domain, loop.guard)]
        drawn = {"random", "random16", "random_indices"}
        return (
            bool(self.states)
            or any(instr.op in drawn for instr in self.encode.instrs())
            or any(value is not None and value.op == "step" for value in used)
        )


_READS = {"load", "load_at", "bucket_load", "element", "count_where", "gaps_bytes", "emit"}
_WRITES = {
    "store",
    "bucket_reduce",
    "compact",
    "topk",
    "sort",
    "random_indices",
    "scatter",
    "field_vector",
    "pack_ascending",
    "unpack_ascending",
    "pack_where",
    "unpack_where",
    "pack_gaps",
    "unpack_gaps",
    "pack_floats",
    "unpack_floats",
    "dct",
    "idct",
}
_SOURCES_FOLLOW = {
    "compact",
    "topk",
    "sort",
    "pack_ascending",
    "unpack_ascending",
    "pack_where",
    "unpack_where",
    "pack_gaps",
    "unpack_gaps",
    "pack_floats",
    "dct",
    "idct",
}


def reads(instr: Instr) -> list[str]:
    """Return the vectors whose content an instruction reads."""
    if instr.op == "scatter":
        return list(instr.vec)  # what it does not write stays
    if instr.op in _SOURCES_FOLLOW:
        return instr.vec[1:]
    return list(instr.vec) if instr.op in _READS else []


def writes(instr: Instr) -> list[str]:
    """Return the vectors that an instruction changes: by convention the first of `vec`."""
    return instr.vec[:1] if instr.op in _WRITES else []


def has_effect(instr: Instr) -> bool:
    """Return whether an instruction must stay even if its value is unused."""
    return instr.op in (
        "emit",
        "require",
        "end_of_payload",
        "field",
        "field_vector",
        "unpack_ascending",
        "unpack_gaps",
        "unpack_floats",
    )


def node_reads(node: Instr | Loop) -> set[str]:
    parts = node.body if isinstance(node, Loop) else [node]
    return {name for part in parts for name in reads(part)}


def node_writes(node: Instr | Loop) -> set[str]:
    parts = node.body if isinstance(node, Loop) else [node]
    return {name for part in parts for name in writes(part)}


def node_uses(node: Instr | Loop) -> set[int]:
    """Return the ids of the values that a node needs and does not define itself."""
    if isinstance(node, Instr):
        return {arg.id for arg in node.args}
    inside = {instr.id for instr in node.body}
    used = {arg.id for instr in node.body for arg in instr.args} | {node.domain.id}
    used |= {node.guard.id} if node.guard is not None else set()
    return used - inside


def node_defines(node: Instr | Loop) -> set[int]:
    return {node.id} if isinstance(node, Instr) else {instr.id for instr in node.results}
