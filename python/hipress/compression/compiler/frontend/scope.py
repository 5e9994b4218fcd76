"""Values of names while a function is lowered, and the IR's types of written types."""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compression.compiler.errors import CompileError
from hipress.compression.compiler.frontend import ast
from hipress.compression.compiler.ir.ir import Instr


@dataclass(frozen=True)
class Signature:
    """Signature of a function.

    :ivar kind: "encode" or "decode"
    :ivar input: name of the vector that it reads
    :ivar output: name of the one that it assigns
    :ivar params: types of the algorithm's parameters by name
    :ivar states: the conditions of its states by name, None for those that are always kept
    :ivar bucketable: names of the parameters that may be a bucket's size
    :ivar blocks: names of those that may be the size of a transform's blocks
    """

    kind: str
    input: str
    output: str
    params: dict[str, ast.TypeName]
    states: dict[str, ast.Node | None]
    bucketable: set[str]
    blocks: set[str]


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
    """Lambda, and the values of names where it is written."""

    value: ast.Lambda
    env: Names


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


@dataclass(eq=False)
class _Variable:
    """Present value of a name."""

    value: object


class Names:
    """The variables that are visible somewhere, by name.

    What is declared in an inner block, or in a lambda, is in a copy: it ends there, and hides what
    had its name. What is assigned there is assigned to the variable itself.
    """

    def __init__(self, outer: Names | None = None) -> None:
        self._variables: dict[str, _Variable] = {} if outer is None else dict(outer._variables)
        self._own: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._variables

    def get(self, name: str, default: object = None) -> object:
        variable = self._variables.get(name)
        return default if variable is None else variable.value

    def declare(self, name: str, value: object) -> None:
        self._variables[name] = _Variable(value)
        self._own.add(name)

    def assign(self, name: str, value: object) -> None:
        self._variables[name].value = value

    def declared_here(self, name: str) -> bool:
        """Return whether this block, and not one around it, has declared a name."""
        return name in self._own

    def same(self, name: str, other: Names) -> bool:
        """Return whether a name is the same variable elsewhere."""
        variable = self._variables.get(name)
        return variable is not None and variable is other._variables.get(name)

    def known(self) -> list[str]:
        """Return the names that stand for something."""
        return sorted(name for name, item in self._variables.items() if item.value is not None)

    def values(self) -> dict[str, object]:
        return {name: variable.value for name, variable in self._variables.items()}

    def state(self) -> dict[_Variable, object]:
        """Return the values of all variables, for restore()."""
        return {variable: variable.value for variable in self._variables.values()}


def restore(state: dict[_Variable, object]) -> None:
    for variable, value in state.items():
        variable.value = value


WORDS = {Vec: "a vector", Range: "a range", Closure: "a function", Scalar: "a number"}
FLOATS = ("float", "double", "float16", "bfloat16")
FLOAT, INT = ast.TypeName("float", None, None), ast.TypeName("int", None, None)
"""Types of vectors that no text declares."""


def storage(type_: ast.TypeName) -> str:
    """Return the IR's storage type of a vector with such elements."""
    simple = {
        "float": "f32",
        "int": "i32",
        "uint32": "u32",
        "uint16": "u16",
        "float16": "f16",
        "bfloat16": "bf16",
        "bool": "u<1>",
        "uint8": "u<8>",
    }
    if type_.base in simple:
        return simple[type_.base]
    if type_.base == "uint":
        if isinstance(type_.bits, int) and not 1 <= type_.bits <= 8:
            raise CompileError(f"uint<b> needs 1 to 8 bits, not {type_.bits}", type_.pos)
        return f"u<{type_.bits}>"
    raise CompileError("a vector cannot have elements of type double; use float", type_.pos)


def spelled(type_: ast.TypeName) -> str:
    return f"uint<{type_.bits}>" if type_.base == "uint" else type_.base
