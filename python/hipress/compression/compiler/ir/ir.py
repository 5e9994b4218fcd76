"""The one intermediate representation, typed and in SSA form.

A :class:`Function` is a list of nodes. A node is an :class:`Instr` (a scalar computation or an
operation on whole vectors) or a :class:`Loop`, whose body runs once for each element and must not
depend on the order of elements. Values are instructions; vectors are named memory.

Types of values: f32, f64, i32, i64, u32, bool. Inside loops there is no i64 and no f64: scalars
are narrowed before they go in. Storage types of vectors add f16, bf16, u16 and u<b> (packed codes).
OPS lists the operations.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple


class OpInfo(NamedTuple):
    """One operation of the IR, as all passes and backends see it."""

    symbol: str = ""
    """Infix operator in the language, in the IR's text, and (but for / % << >>) in C."""
    python: Callable | None = None
    """The operation on integers of Python and on arrays of NumPy."""
    place: str = ""
    """Place where it may be: "loop", "function" (outside of loops), or anywhere."""
    pure: bool = False
    """Whether its value follows from its operands alone."""
    reads: int | None = None
    """Position in `vec` of the first vector whose content it reads; all later ones follow."""
    writes: bool = False
    """Whether it changes the first vector of `vec`."""
    effect: bool = False
    """Whether it must stay even if its value is unused."""


def _operator(symbol: str, python: Callable) -> OpInfo:
    return OpInfo(symbol, python, pure=True)


_SCALAR = OpInfo(pure=True)
_LOAD = OpInfo(place="loop", reads=0)
_DRAW = OpInfo(place="loop")
_COUNT = OpInfo(place="function", reads=0)
_MAKE = OpInfo(place="function", reads=1, writes=True)
_UNPACK = OpInfo(place="function", reads=1, writes=True, effect=True)
_CHECK = OpInfo(place="function", effect=True)

OPS = {
    # Of scalars and of elements.
    "const": _SCALAR,
    "param": OpInfo(place="function", pure=True),
    "n": OpInfo(place="function", pure=True),  # the gradient's number of elements
    "step": OpInfo(place="function"),
    "add": _operator("+", operator.add),
    "sub": _operator("-", operator.sub),
    "mul": _operator("*", operator.mul),
    "div": _operator("/", operator.truediv),  # of floats; integers are divided as C does
    "mod": _operator("%", operator.mod),
    "and": _operator("&", operator.and_),
    "or": _operator("|", operator.or_),
    "xor": _operator("^", operator.xor),
    "shl": _operator("<<", operator.lshift),
    "shr": _operator(">>", operator.rshift),
    "lt": _operator("<", operator.lt),
    "le": _operator("<=", operator.le),
    "gt": _operator(">", operator.gt),
    "ge": _operator(">=", operator.ge),
    "eq": _operator("==", operator.eq),
    "ne": _operator("!=", operator.ne),
    "neg": _operator("", operator.neg),
    "abs": _operator("", abs),
    "not": _SCALAR,
    "floor": _SCALAR,
    "ceil": _SCALAR,
    "sqrt": _SCALAR,
    "isfinite": _SCALAR,
    "isnan": _SCALAR,
    "cast": _SCALAR,
    "bitcast": _SCALAR,
    "saturate": _SCALAR,  # a float to 0 .. 2^bits - 1
    "wrap": _SCALAR,  # the low `bits` of an integer
    "select": _SCALAR,
    "ascending_bytes": _SCALAR,  # the bytes of args[0] ascending indices below args[1]
    "gaps_most": _SCALAR,  # the most bytes of args[0] indices below args[1], packed by gaps
    "floats_bytes": _SCALAR,  # the most bytes of args[0] floats with all their bits
    # Of elements in a loop.
    "index": OpInfo(place="loop"),
    "random": _DRAW,  # a u32 word by element and site
    "random16": _DRAW,  # 16 random bits as i32
    "load": _LOAD,  # v[i]
    "load_at": _LOAD,  # v[args[0]], clamped into v
    "bucket_load": _LOAD,  # v[i / bucket]
    "store": OpInfo(place="loop", writes=True),  # v[i]
    "reduce": OpInfo(place="loop"),  # its value is a scalar outside of the loop
    "bucket_reduce": OpInfo(place="loop", writes=True),
    # Of whole vectors. Those that choose or pack elements have the number of them as their value.
    "element": _COUNT,
    "sort": _MAKE,
    "topk": _MAKE,
    "compact": _MAKE,  # indices where a mask is 1
    "random_indices": OpInfo(place="function", writes=True),  # in runs of neighbors: 1 or RUN
    "scatter": OpInfo(place="function", reads=0, writes=True),  # what it does not write stays
    "dct": _MAKE,  # of vector 1, in blocks of args[0] elements
    "idct": _MAKE,
    # Of payloads.
    "pack_ascending": _MAKE,  # indices to bytes
    "unpack_ascending": _UNPACK,  # bytes to indices, or the payload is refused
    "gaps_bytes": _COUNT,  # the bytes of indices packed by their gaps
    "pack_gaps": _MAKE,  # the last operand is that number
    "unpack_gaps": _UNPACK,
    "count_where": _COUNT,  # how many bits of a mask are 1
    "pack_where": _MAKE,  # bits under a mask
    "unpack_where": _MAKE,  # bits under a mask to where they were, 0 elsewhere
    "pack_floats": _MAKE,  # the gradient to bytes
    "unpack_floats": OpInfo(
        place="function", writes=True, effect=True
    ),  # the payload to the output
    "field": _CHECK,
    "field_vector": OpInfo(place="function", writes=True, effect=True),
    "end_of_payload": _CHECK,
    "require": _CHECK,
    "emit": OpInfo(place="function", reads=0, effect=True),
}
BINARY = {name for name, op in OPS.items() if op.symbol}
COMPARE = {"lt", "le", "gt", "ge", "eq", "ne"}
RANK = ("bool", "i32", "u32", "i64", "f32", "f64")
"""Types of values: of two operands the earlier one is converted."""
RUN = 4
"""Consecutive elements in a run of `sample`: they are in one cache line, 16 bytes for one load."""
TRANSFORMS = (16, 32, 64, 128, 256, 512, 1024)
"""Blocks of dct and idct. Lanes divide the least, and a GPU's block has memory for the largest."""
FIELD_BYTES = {"u8": 1, "u16": 2, "u32": 4, "f32": 4}
"""Sizes of the numbers that a payload can have as fields."""
STORAGE_BITS = {"f32": 32, "i32": 32, "u32": 32, "f16": 16, "bf16": 16, "u16": 16}

_ids = count()


def _read(instr: Instr) -> list[str]:
    first = OPS[instr.op].reads
    return [] if first is None else instr.vec[first:]


class IrNode:
    """An instruction, or a loop with several."""

    body: list[Instr]
    """Its instructions; of an instruction itself."""

    @property
    def reads(self) -> set[str]:
        """Vectors whose content it reads."""
        return {name for instr in self.body for name in _read(instr)}

    @property
    def writes(self) -> set[str]:
        """Vectors that it changes."""
        return {instr.vec[0] for instr in self.body if OPS[instr.op].writes}

    @property
    def uses(self) -> set[int]:
        """Ids of the values that it needs and does not make itself."""
        used = {arg.id for instr in self.body for arg in instr.args}
        return used - {instr.id for instr in self.body}

    @property
    def defines(self) -> set[int]:
        """Ids of the values that it makes for later nodes."""
        return {instr.id for instr in self.body}

    @property
    def effect(self) -> bool:
        """Whether it must stay even if its value is unused."""
        return any(OPS[instr.op].effect for instr in self.body)


@dataclass(eq=False)
class Instr(IrNode):
    """One operation and the value it makes; `vec` names the vectors that it reads or writes."""

    op: str
    args: list[Instr] = field(default_factory=list)
    type: str = "none"
    vec: list[str] = field(default_factory=list)
    attrs: dict = field(default_factory=dict)
    id: int = field(default_factory=lambda: next(_ids))

    @property
    def body(self) -> list[Instr]:
        """List of the instruction itself."""
        return [self]

    def key(self) -> tuple:
        """Return a key that instructions with the same value of the same operands share."""
        args = tuple(arg.id for arg in self.args)
        return (self.op, args, self.type, tuple(self.vec), repr(sorted(self.attrs.items())))

    def copy(self, args: list[Instr]) -> Instr:
        """Return the same operation on other operands."""
        return Instr(self.op, args, self.type, list(self.vec), dict(self.attrs))


@dataclass(eq=False)
class Block:
    """A function of scalars, for reduce: `result` computed by `body` from `params`."""

    params: list[Instr]
    body: list[Instr]
    result: Instr


@dataclass(eq=False)
class Loop(IrNode):
    """Loop that executes its body for every i in [0, domain).

    Where `guard`, a bool made before the loop, is false, nothing uses the loop's results, and a
    backend may skip it.
    """

    domain: Instr
    body: list[Instr] = field(default_factory=list)
    guard: Instr | None = None

    @property
    def results(self) -> list[Instr]:
        """Reductions, whose values are scalars outside of the loop."""
        return self.ops("reduce")

    @property
    def uses(self) -> set[int]:
        """Ids of the values that it needs and does not make itself."""
        guard = {self.guard.id} if self.guard is not None else set()
        return super().uses | {self.domain.id} | guard

    @property
    def defines(self) -> set[int]:
        """Ids of its results."""
        return {instr.id for instr in self.results}

    def ops(self, *ops: str) -> list[Instr]:
        """Return its instructions of these operations."""
        return [instr for instr in self.body if instr.op in ops]

    def stored(self, name: str) -> Instr | None:
        """Return the value that it stores to a vector first, or None."""
        return next((i.args[0] for i in self.body if i.op == "store" and i.vec == [name]), None)


@dataclass(eq=False)
class Vector:
    """Named memory of `size` elements.

    Args:
        elem: Storage type; u<1> to u<8>, or u<p> with the name of a parameter.
        kind: input, output, state, temp or field (of the payload, when decoding).
        order: Which end of a byte the first code is in: lsb or msb.
        multiple: A packed vector is padded with zeros to a multiple of this many elements.
        needs: Bool of the parameters, for a state: where it is false, reads see 0 and nothing is
            written.
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
        """Whether elements are codes of `bits` bits."""
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
class ProgramParam:
    """A parameter of the algorithm; values are Python floats or ints."""

    name: str
    type: str
    default: float | int | None
    doc: str
    choices: tuple | None = None
    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    multiple: int = 1
    for_sum: object = None
    static: bool = False

    @property
    def integer(self) -> bool:
        """Whether values are integers."""
        return self.type != "float"

    def allows(self, value: float | int) -> bool:
        """Return whether the parameter may have this value."""
        if isinstance(value, float):
            if not math.isfinite(value) or self.integer and value != int(value):
                return False
        if self.choices is not None:
            return value in self.choices
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below and (self.multiple == 1 or value % self.multiple == 0)

    def allowed(self) -> str:
        """Return the allowed values in words."""
        kind = "an integer" if self.integer else "a finite number"
        show = str if self.integer else lambda value: repr(value).removesuffix(".0")
        if self.choices:
            return "one of " + ", ".join(show(value) for value in self.choices)
        words = []
        if self.low > -math.inf:
            words.append(f"{'>' if self.low_open else '>='} {show(self.low)}")
        if self.high < math.inf:
            words.append(f"{'<' if self.high_open else '<='} {show(self.high)}")
        text = " ".join([kind, " and ".join(words)]).strip()
        return text + (f", a multiple of {self.multiple}" if self.multiple > 1 else "")


@dataclass(eq=False)
class Function:
    """An encode or a decode: `kind` says which. Decoders write the vector `output`."""

    name: str
    kind: str
    body: list[IrNode]
    vectors: dict[str, Vector]
    input: str
    output: str

    def instrs(self) -> Iterator[Instr]:
        """Yield every instruction in order, with loop bodies."""
        for node in self.body:
            yield from node.body

    @property
    def loops(self) -> list[Loop]:
        """Loops of the function."""
        return [node for node in self.body if isinstance(node, Loop)]

    @property
    def scalars(self) -> list[Instr]:
        """Instructions outside of loops."""
        return [node for node in self.body if isinstance(node, Instr)]

    def operations(self, *ops: str) -> list[Instr]:
        """Return the instructions of these operations, outside of loops."""
        return [instr for instr in self.scalars if instr.op in ops]

    def writers(self, name: str) -> list[IrNode]:
        """Return the nodes that write a vector."""
        return [node for node in self.body if name in node.writes]


@dataclass(eq=False)
class Program:
    """An algorithm: its parameters, states and functions.

    Attributes:
        digest: Hash of its meaning (the IR before any pass): equal digests, equal payloads.
        optimized: Whether all passes have run.
    """

    name: str
    summary: str
    params: list[ProgramParam]
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
    def file(self) -> str:
        """Name of the source file, without folders."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def functions(self) -> list[Function]:
        """Encoder and decoder, those that there are."""
        return [function for function in (self.encode, self.decode) if function is not None]

    def operations(self, *ops: str) -> list[Instr]:
        """Return all functions' instructions of these operations, outside of loops."""
        return [instr for function in self.functions for instr in function.operations(*ops)]

    @property
    def exact(self) -> bool:
        """Whether payloads contain the gradient with all its bits, in its own type."""
        return bool(self.operations("pack_floats", "unpack_floats"))

    @property
    def uses_step(self) -> bool:
        """Whether a payload depends on states, or on the number of encodes, as draws do."""
        if self.encode is None:
            return False
        steps = {instr.id for instr in self.encode.operations("step")}
        drawn = any(i.op in ("random", "random16", "random_indices") for i in self.encode.instrs())
        return bool(self.states) or drawn or any(steps & node.uses for node in self.encode.body)


# Parts of a program -------------------------------------------------------------------


def backward(value: Instr, body: list[Instr]) -> list[Instr]:
    """Return the instructions of a body that `value` depends on, itself included, in order."""
    inside = {instr.id for instr in body}
    wanted: set[int] = set()
    todo = [value]
    while todo:
        instr = todo.pop()
        if instr.id in inside and instr.id not in wanted:
            wanted.add(instr.id)
            todo += instr.args
    return [instr for instr in body if instr.id in wanted]


def clone(instrs: list[Instr], mapping: dict[int, Instr]) -> list[Instr]:
    """Return copies of instructions on the operands of `mapping`, which gets the copies."""
    copies = []
    for instr in instrs:
        mapping[instr.id] = instr.copy([mapping.get(arg.id, arg) for arg in instr.args])
        copies.append(mapping[instr.id])
    return copies


def final(value: Instr, mapping: dict[int, Instr]) -> Instr:
    """Return what replaces a value in the end."""
    while value.id in mapping:
        value = mapping[value.id]
    return value


def replace(function: Function, mapping: dict[int, Instr]) -> None:
    """Replace every use of a value by its entry in mapping."""
    for node in function.body:
        if isinstance(node, Loop):
            node.domain = final(node.domain, mapping)
        for instr in node.body:
            instr.args = [final(arg, mapping) for arg in instr.args]
    for vector in function.vectors.values():
        vector.size = final(vector.size, mapping)
        if vector.needs is not None:
            vector.needs = final(vector.needs, mapping)


# Properties of sizes and indices that hold for any gradient and payload ---------------


def ascend(name: str, below: Instr, body: list[IrNode], vectors: dict[str, Vector]) -> bool:
    """Return whether a vector has ascending indices from 0 to below a size.

    `body` has the nodes of a function up to where they are used, or all of them.
    """
    for node in body:
        if name not in node.writes:
            continue
        if isinstance(node, Loop):  # one that gathers ascending indices at ascending indices
            value = node.stored(name)
            if value.op != "load_at" or value.args[0].op != "load":
                return False
            source, at = value.vec[0], value.args[0].vec[0]
            inner = ascend(at, vectors[source].size, body, vectors)
            return inner and ascend(source, below, body, vectors)
        if node.op == "random_indices":
            return node.attrs["run"] == 1 and (node.args[0] is below or below.op == "n")
        if node.op in ("unpack_ascending", "unpack_gaps"):
            return below.op == "n"  # other payloads are refused
        return node.op in ("compact", "topk") and vectors[node.vec[1]].size is below
    return False


def counts_buckets(size: Instr, domain: Instr, bucket: Instr) -> bool:
    """Return whether a size is (domain + bucket - 1) / bucket, in any order of the sum."""
    if size.op != "div" or size.args[1] is not bucket:
        return False
    terms: dict[int, int] = {}
    constant = _add_terms(size.args[0], 1, terms)
    wanted = {domain.id: 1, bucket.id: 1}
    return constant == -1 and {id_: times for id_, times in terms.items() if times} == wanted


def _add_terms(value: Instr, times: int, terms: dict[int, int]) -> int:
    """Count how often values are in a sum; return its constant."""
    if value.op in ("add", "sub"):
        right = times if value.op == "add" else -times
        left = _add_terms(value.args[0], times, terms)
        return left + _add_terms(value.args[1], right, terms)
    if value.op == "const":
        return times * value.attrs["value"]
    terms[value.id] = terms.get(value.id, 0) + times
    return 0
