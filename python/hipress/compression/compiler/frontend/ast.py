"""Abstract syntax tree of a source text, before types."""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compression.compiler.errors import Pos


@dataclass(frozen=True)
class TypeName:
    """A written type: `base` and, for uint<b>, the bits (a number or a parameter's name)."""

    base: str
    bits: int | str | None
    pos: Pos | None


@dataclass(frozen=True)
class Node:
    pos: Pos


@dataclass(frozen=True)
class Number(Node):
    value: int | float


@dataclass(frozen=True)
class String(Node):
    value: str


@dataclass(frozen=True)
class Name(Node):
    name: str


@dataclass(frozen=True)
class Unary(Node):
    op: str
    value: Node


@dataclass(frozen=True)
class Binary(Node):
    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Ternary(Node):
    condition: Node
    yes: Node
    no: Node


@dataclass(frozen=True)
class Index(Node):
    base: Node
    index: Node


@dataclass(frozen=True)
class Member(Node):
    base: Node
    name: str


@dataclass(frozen=True)
class Call(Node):
    name: str
    args: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Random(Node):
    type: TypeName
    args: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Cast(Node):
    type: TypeName
    value: Node


@dataclass(frozen=True)
class Formal(Node):
    type: TypeName
    vector: bool
    name: str


@dataclass(frozen=True)
class Lambda(Node):
    formals: tuple[Formal, ...]
    result: TypeName
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Declare(Node):
    """`type name = value;`, `type* name;` or `type name[size];`."""

    type: TypeName
    vector: bool
    name: str
    value: Node | None
    size: Node | None = None


@dataclass(frozen=True)
class LambdaDef(Node):
    name: str
    value: Lambda


@dataclass(frozen=True)
class Assign(Node):
    name: str
    value: Node


@dataclass(frozen=True)
class If(Node):
    condition: Node
    yes: tuple[Node, ...]
    no: tuple[Node, ...]


@dataclass(frozen=True)
class Return(Node):
    value: Node


@dataclass(frozen=True)
class Param(Node):
    """A parameter: bounds are ("{", values) or ("[" or "(", (low, high), "]" or ")") or None."""

    type: TypeName
    name: str
    default: Node | None
    bounds: tuple | None
    multiple: Node | None
    for_sum: Node | None
    doc: str


@dataclass(frozen=True)
class State(Node):
    """:param condition: on parameters; where it is false, the state is not kept. None: it is"""

    name: str
    doc: str
    condition: Node | None = None


@dataclass(frozen=True)
class Function(Node):
    name: str
    formals: tuple[Formal, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True)
class File:
    name: str | None
    summary: str
    params: tuple[Param, ...]
    states: tuple[State, ...]
    functions: tuple[Function, ...]
