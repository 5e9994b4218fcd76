"""What names stand for while a function is lowered, and how written types map to the IR's."""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compll.errors import CompileError
from hipress.compll.frontend import ast
from hipress.compll.ir.ir import Instr


@dataclass(frozen=True)
class Signature:
    """What a function is called with.

    :ivar kind: "encode" or "decode"
    :ivar input: name of the vector that it reads
    :ivar output: name of the one that it assigns
    :ivar params: types of the algorithm's parameters by name
    :ivar states: the conditions of its states by name, None for those that are always kept
    :ivar bucketable: names of the parameters that may be a bucket's size
    """

    kind: str
    input: str
    output: str
    params: dict[str, ast.TypeName]
    states: dict[str, ast.Node | None]
    bucketable: set[str]


@dataclass(frozen=True)
class Vec:
    """A vector in memory."""

    name: str
    type: ast.TypeName | None = None


@dataclass(frozen=True)
class Range:
    """range(size): the numbers from 0 to size - 1, never in memory."""

    size: Instr


@dataclass(frozen=True)
class Closure:
    """A lambda, or a built-in function passed by name."""

    value: ast.Lambda


@dataclass(frozen=True)
class Scalar:
    """A value and the type it was declared with (None: that of an expression)."""

    value: Instr
    type: ast.TypeName | None = None


@dataclass(frozen=True)
class Unset:
    """A variable declared without a value."""

    declaration: ast.Declare


@dataclass(frozen=True)
class Output:
    """The function's result, to be assigned once."""


WORDS = {Vec: "a vector", Range: "a range", Closure: "a function", Scalar: "a number"}
FLOATS = ("float", "double", "float16", "bfloat16")
FLOAT, INT = ast.TypeName("float", None, None), ast.TypeName("int", None, None)
"""Types of vectors that no text declares."""


def storage(type_: ast.TypeName) -> str:
    """The IR's storage type of a vector with such elements."""
    simple = {
        "float": "f32", "int": "i32", "uint32": "u32", "uint16": "u16", "float16": "f16",
        "bfloat16": "bf16", "bool": "u<1>", "uint8": "u<8>",
    }  # fmt: skip
    if type_.base in simple:
        return simple[type_.base]
    if type_.base == "uint":
        if isinstance(type_.bits, int) and not 1 <= type_.bits <= 8:
            raise CompileError(f"uint<b> needs 1 to 8 bits, not {type_.bits}", type_.pos)
        return f"u<{type_.bits}>"
    raise CompileError("a vector cannot have elements of type double; use float", type_.pos)


def spelled(type_: ast.TypeName) -> str:
    return f"uint<{type_.bits}>" if type_.base == "uint" else type_.base
