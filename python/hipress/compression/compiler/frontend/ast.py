"""Abstract syntax tree of a source text, before types."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass

from hipress.compression.compiler.compiler_errors import Pos


@dataclass(frozen=True)
class TypeName:
    """A written type: `base` and, for uint<b>, the bits (a number or a parameter's name)."""

    base: str
    bits: int | str | None = None
    pos: Pos | None = None

    def __str__(self) -> str:
        return f"uint<{self.bits}>" if self.base == "uint" else self.base


@dataclass(frozen=True)
class SyntaxNode:
    """A node at a place of the text. The list below has all kinds of nodes, and their fields."""

    pos: Pos


def _node(name: str, *fields: str | tuple) -> type[SyntaxNode]:
    return make_dataclass(name, fields, bases=(SyntaxNode,), frozen=True)


Number = _node("Number", "value")
String = _node("String", "value")
Name = _node("Name", "name")
Unary = _node("Unary", "op", "value")
Binary = _node("Binary", "left", "op", "right")
Ternary = _node("Ternary", "condition", "yes", "no")
Index = _node("Index", "base", "index")
Member = _node("Member", "base", "name")
Call = _node("Call", "name", "args")
Random = _node("Random", "type", "args")
Cast = _node("Cast", "type", "value")
Lambda = _node("Lambda", "formals", "result", "body")
Formal = _node("Formal", "type", "vector", "name")
Declare = _node("Declare", "type", "vector", "name", "value", ("size", object, None))
LambdaDef = _node("LambdaDef", "name", "value")
Assign = _node("Assign", "name", "value")
If = _node("If", "condition", "yes", "no")
Return = _node("Return", "value")
# Bounds are ("{", values) or ("[" or "(", (low, high), "]" or ")") or None.
Param = _node("Param", "type", "name", "default", "bounds", "multiple", "for_sum", "doc")
# A state is not kept where its condition on parameters is false.
State = _node("State", "name", "condition", "doc")
Function = _node("Function", "name", "formals", "body")


@dataclass(frozen=True)
class File:
    """A whole text."""

    name: str | None
    summary: str
    params: tuple[Param, ...]
    states: tuple[State, ...]
    functions: tuple[Function, ...]
