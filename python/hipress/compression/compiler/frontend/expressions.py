"""Syntax tree to IR: values of names, conversions, expressions, and lambdas.

Emitter adds to a function's IR; Expressions evaluates expressions into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from hipress.compression.compiler.compiler_errors import CompileError, Pos, expect
from hipress.compression.compiler.frontend import ast
from hipress.compression.compiler.ir.ir import (
    COMPARE,
    OPS,
    RANK,
    Instr,
    Loop,
    Vector,
    counts_buckets,
)

# Names and their values ---------------------------------------------------------------


@dataclass(frozen=True)
class Signature:
    """Kind of a function, its vectors, and the algorithm's parameters and states."""

    kind: str
    input: str
    output: str
    params: dict[str, ast.TypeName]
    states: dict[str, ast.SyntaxNode | None]  # their conditions; None if a state is always kept
    bucketable: set[str]  # parameters that may be a bucket's size
    blocks: set[str]  # parameters that may be the size of a transform's blocks


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


OUTPUT = object()
"""Value of the function's result, which is to be assigned once."""
# A variable that has no value yet has its declaration as its value.
Value = Union[Vec, Range, Closure, Scalar]
_WORDS = {Vec: "a vector", Range: "a range", Closure: "a function", Scalar: "a number"}


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

    def get(self, name: str) -> Any:
        """Return the value of a name, or None."""
        variable = self._variables.get(name)
        return None if variable is None else variable.value

    def declare(self, name: str, value: object) -> None:
        """Declare a name in this block."""
        self._variables[name] = _Variable(value)
        self._own.add(name)

    def assign(self, name: str, value: object) -> None:
        """Assign the variable of a name."""
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
        return sorted(name for name, value in self.values().items() if value is not None)

    def values(self) -> dict[str, Any]:
        """Return the values of all names."""
        return {name: variable.value for name, variable in self._variables.items()}

    def state(self) -> dict[_Variable, object]:
        """Return the values of all variables, for restore()."""
        return {variable: variable.value for variable in self._variables.values()}


def restore(state: dict[_Variable, object]) -> None:
    """Restore the values of state()."""
    for variable, value in state.items():
        variable.value = value


# Types --------------------------------------------------------------------------------

FLOAT, INT = ast.TypeName("float"), ast.TypeName("int")
"""Types of vectors that no text declares."""
_STORAGE = {
    "float": "f32",
    "int": "i32",
    "uint32": "u32",
    "uint16": "u16",
    "float16": "f16",
    "bfloat16": "bf16",
    "bool": "u<1>",
    "uint8": "u<8>",
}
_BITS = {"i32": 32, "u32": 32, "i64": 64}


def storage(type_: ast.TypeName) -> str:
    """Return the IR's storage type of a vector with such elements."""
    if type_.base == "uint":
        bits = type_.bits
        good = isinstance(bits, str) or 1 <= bits <= 8
        expect(good, f"uint<b> needs 1 to 8 bits, not {bits}", type_.pos)
        return f"u<{bits}>"
    expect(
        type_.base in _STORAGE, "a vector cannot have elements of type double; use float", type_.pos
    )
    return _STORAGE[type_.base]


def _whole(value: float | int, type_: str) -> int:
    """Return a constant as an integer: integers wrap around, floats saturate, NaN is 0."""
    least = 0 if type_ == "u32" else -(2 ** (_BITS[type_] - 1))
    if isinstance(value, int):
        return (value - least) % 2 ** _BITS[type_] + least
    most = least + 2 ** _BITS[type_]  # a float; the type's own largest is none
    below = float(np.nextafter(np.float32(most), np.float32(0)))
    return 0 if math.isnan(value) else int(min(max(value, least), below))


# Instructions -------------------------------------------------------------------------


class Emitter:
    """Emitter into the body of a function, or of the open loop.

    Attributes:
        lanes: The open loop's body, or None.
        domain: How many elements that loop has, or the last one had.
        scalars: Those emitted so far, so that equal ones are one.
        limited: Ids of sizes that limit() was called for.
        sites: How many random calls there are.
    """

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.body: list = []
        self.lanes: list[Instr] | None = None
        self.scalars: dict[tuple, Instr] = {}
        self.vectors: dict[str, Vector] = {}
        self.sites = 0
        self.domain: Instr | None = None
        self.limited: set[int] = set()
        self.n = self.emit("n", [], "i64")
        self.step = self.emit("step", [], "i64")

    @property
    def int_type(self) -> str:
        """Type of integers here."""
        return "i64" if self.lanes is None else "i32"

    def emit(
        self, op: str, args: list[Instr], type_: str = "none", vec: list[str] | None = None, **attrs
    ) -> Instr:
        """Emit an instruction, or return the equal number that exists."""
        instr = Instr(op, args, type_, vec or [], attrs)
        if self.lanes is not None:
            self.lanes.append(instr)
            return instr
        if type_ != "none" and not vec and op not in ("field", "random_indices"):
            # Equal scalars are one value, so that sizes computed twice are known to be equal.
            same = self.scalars.setdefault(instr.key(), instr)
            if same is not instr:
                return same
        self.body.append(instr)
        return instr

    def const(self, value: float | int | bool, type_: str) -> Instr:
        """Emit a constant, converted to a type."""
        if type_ in _BITS and not isinstance(value, bool):
            value = _whole(value, type_)
        return self.emit("const", [], type_, value=value)

    def uniform(self, value: Instr) -> Instr:
        """Return a scalar as loops can use it: i64 becomes i32, f64 becomes f32."""
        if self.lanes is None or value.type not in ("i64", "f64"):
            return value
        narrow = "i32" if value.type == "i64" else "f32"
        if value.op == "const":
            return self.const(value.attrs["value"], narrow)
        lanes, self.lanes = self.lanes, None
        result = self.emit("cast", [value], narrow)
        self.lanes = lanes
        return result

    def cast(self, value: Instr, type_: str) -> Instr:
        """Emit a conversion, if there is one."""
        value = self.uniform(value)
        if value.type == type_:
            return value
        if value.op == "const" and type_ != "bool":
            number = value.attrs["value"]
            return self.const(float(number) if type_[0] == "f" else number, type_)
        return self.emit("cast", [value], type_)

    def truth(self, value: Instr) -> Instr:
        """Emit value != 0, unless it is a bool."""
        if value.type == "bool":
            return value
        return self.emit("ne", [value, self.const(0, value.type)], "bool")

    def convert(self, value: Instr, type_: ast.TypeName, pos: Pos) -> Instr:
        """Return a value as a variable of a written type holds it."""
        value, whole, base = self.uniform(value), self.int_type, type_.base
        if base == "double":
            text = "double is for numbers outside of map and filter; use float"
            expect(self.lanes is None, text, pos)
            return self.cast(value, "f64")
        if base in ("float", "float16", "bfloat16"):
            return self.cast(value, "f32")
        if base == "bool":
            return self.truth(value)
        if base in ("uint32", "int"):
            return self.cast(value, "u32" if base == "uint32" else whole)
        storage(type_)
        bits = {"uint8": 8, "uint16": 16}.get(base, type_.bits)
        known = isinstance(bits, int) or bits in self.signature.params
        expect(known, f"uint<{bits}>: {bits} must be a parameter or a number", type_.pos)
        if value.type in ("f32", "f64"):
            return self.emit("saturate", [self.cast(value, "f32")], whole, bits=bits)
        if value.type == "bool":
            return self.cast(value, whole)
        return self.emit("wrap", [self.cast(value, whole)], whole, bits=bits)

    def loop(self, domain: Instr, emit: Callable[[], Any]) -> Any:
        """Return what `emit` returns; what it emits is in a loop over a domain."""
        expect(self.lanes is None, "map, reduce and filter cannot be used inside a lambda")
        self.lanes, self.domain = [], domain
        loop = Loop(domain, self.lanes)
        result = emit()
        self.lanes = None
        self.body.append(loop)
        return result

    def limit(self, size: Instr, what: str) -> None:
        """Refuse a payload with more elements than the gradient has."""
        if size is not self.n:
            fits = self.emit("le", [size, self.n], "bool")
            message = f"{what} must not have more elements than the gradient"
            self.emit("require", [fits], "none", message=message)
            self.limited.add(size.id)

    def new_vector(self, hint: str, elem: str, size: Instr, kind: str = "temp") -> str:
        """Return the name of a new vector."""
        name, number = hint, 1
        while name in self.vectors:
            name, number = f"{hint}_{number}", number + 1
        self.vectors[name] = Vector(name, elem, size, kind)
        return name


# Expressions --------------------------------------------------------------------------

_BINARY = {op.symbol: name for name, op in OPS.items() if op.symbol}


class Expressions(Emitter):
    """Evaluates expressions into a function's IR.

    A subclass adds call(), for the built-in functions, and statement(), for those of lambdas.

    Attributes:
        env: Values of names.
        inside: Their values outside of the inlined lambda, if any.
    """

    def __init__(self, signature: Signature) -> None:
        super().__init__(signature)
        self.env = Names()
        self.inside: Names | None = None

    def call(self, node: ast.Call, hint: str, elem_type: ast.TypeName | None) -> Value:
        """Evaluate a call of a built-in function or a lambda."""
        raise NotImplementedError

    def statement(self, node: ast.SyntaxNode) -> None:
        """Execute a statement."""
        raise NotImplementedError

    def expr(
        self, node: ast.SyntaxNode, hint: str = "t", elem_type: ast.TypeName | None = None
    ) -> Value:
        """Evaluate an expression.

        Args:
            node: The expression.
            hint: Name for a vector that comes of it.
            elem_type: Written type of such a vector's elements, if there is one.
        """
        if isinstance(node, ast.Number):
            type_ = self.int_type if isinstance(node.value, int) else "f32"
            return Scalar(self.const(node.value, type_))
        if isinstance(node, ast.Lambda):
            return Closure(node, Names(self.env))
        if isinstance(node, ast.Call):
            return self.call(node, hint, elem_type)
        for kind, evaluate in (
            (ast.Name, self._name),
            (ast.Member, self._member),
            (ast.Index, self._index),
            (ast.Random, self._random),
        ):
            if isinstance(node, kind):
                return evaluate(node)
        if isinstance(node, ast.Unary):
            operands, function = [node.value], lambda x: self._unary(node.op, x)
        elif isinstance(node, ast.Binary):
            operands = [node.left, node.right]
            function = lambda x, y: self.binary(node.op, x, y, node.pos)  # noqa: E731
        elif isinstance(node, ast.Ternary):
            operands = [node.condition, node.yes, node.no]
            function = lambda c, x, y: self.select(self.truth(c), x, y)  # noqa: E731
        elif isinstance(node, ast.Cast):
            operands, elem_type = [node.value], node.type
            function = lambda x: self.convert(x, node.type, node.pos)  # noqa: E731
        else:
            raise CompileError("a text is not a value here", node.pos)
        values = [self.expr(operand) for operand in operands]
        return self.apply(values, function, node.pos, hint, elem_type)

    def _name(self, node: ast.Name) -> Value:
        name = node.name
        if name not in self.env:
            if name in ("inf", "nan"):
                return Scalar(self.const(float(name), "f32"))
            if name == "step":
                return Scalar(self.uniform(self.step))
        value, known = self.env.get(name), ", ".join(self.env.known())
        expect(value is not None, f"{name} is not declared; known here: {known}", node.pos)
        unset = value is OUTPUT or isinstance(value, ast.Declare)
        expect(not unset, f"{name} has no value yet", node.pos)
        if isinstance(value, Scalar):
            return Scalar(self.uniform(value.value), value.type)
        return value

    def _member(self, node: ast.Member) -> Scalar:
        expect(node.name == "size", f"a vector has .size, not .{node.name}", node.pos)
        if isinstance(node.base, ast.Name) and self.env.get(node.base.name) is OUTPUT:
            return Scalar(self.uniform(self.n))
        base = self.expr(node.base)
        expect(isinstance(base, (Vec, Range)), "only vectors have .size", node.pos)
        return Scalar(self.uniform(self.size_of(base)))

    def _index(self, node: ast.Index) -> Scalar:
        base = self.expr(node.base)
        expect(isinstance(base, Vec), "only vectors can be indexed", node.pos)
        vector, vec = self.vectors[base.name], [base.name]
        at = self.scalar(node.index)
        whole = at.type not in ("f32", "f64", "bool")
        expect(whole, "an index must be an int", node.index.pos)
        if self.lanes is None:
            return Scalar(self.element_at(base, self.cast(at, "i64"), node.pos))
        if at.op == "index" and vector.size is self.domain:
            return Scalar(self.emit("load", [], vector.value_type, vec))
        self.anywhere(vector, node.pos)
        bucket = self.bucket_of(at)
        if bucket is not None and counts_buckets(vector.size, self.domain, bucket):
            return Scalar(self.emit("bucket_load", [bucket], vector.value_type, vec))
        return Scalar(self.emit("load_at", [self.cast(at, "i32")], vector.value_type, vec))

    def element_at(self, base: Vec, at: Instr, pos: Pos) -> Instr:
        """Return one element of a vector, outside of loops."""
        vector = self.vectors[base.name]
        text = "an element of a vector of uint<N> can be read in a lambda only"
        expect(not vector.packed, text, pos)
        expect(
            vector.elem not in ("f16", "bf16"),
            "of a vector of elements of 16 bits a lambda reads its own element only: copy it "
            "to float* first, with map",
            pos,
        )
        if vector.kind == "input":  # of any type: a loop of one element converts it
            last = self.emit("sub", [self.n, self.const(1, "i64")], "i64")
            at = self.select(self.emit("lt", [at, last], "bool"), at, last)
            one = Range(self.const(1, "i64"))

            def load(_: Instr) -> Instr:
                return self.emit("load_at", [self.cast(at, "i32")], "f32", [vector.name])

            base = self.elementwise([one], load, FLOAT, "element", pos)
            at = self.const(0, "i64")
        value_type = "i64" if vector.value_type == "i32" else vector.value_type
        return self.emit("element", [at], value_type, [base.name])

    def anywhere(self, vector: Vector, pos: Pos) -> None:
        """Refuse reads of other elements than the lambda's own in a vector of narrow ones."""
        expect(
            vector.elem in ("f32", "i32", "u32"),
            "of a vector of elements of 16 bits or less a lambda reads its own element only: "
            "copy it to float* or int* first, with map",
            pos,
        )

    def bucket_of(self, at: Instr) -> Instr | None:
        """Return the parameter b of an index i / b with multiples of 64 as values, or None."""
        if at.op != "div" or at.args[0].op != "index" or at.args[1].op != "cast":
            return None
        param = at.args[1].args[0]
        bucketable = param.op == "param" and param.attrs["name"] in self.signature.bucketable
        return param if bucketable else None

    def _random(self, node: ast.Random) -> Scalar:
        base = node.type.base
        expect(
            (base, len(node.args)) in (("float", 2), ("uint16", 0)),
            "random numbers are random<float>(low, high) and random<uint16>()",
            node.type.pos,
        )
        text = f"random<{base}> is for lambdas: one for each element"
        expect(self.lanes is not None, text, node.pos)
        site, self.sites = self.sites, self.sites + 1
        if base == "uint16":
            return Scalar(self.emit("random16", [], "i32", site=site), node.type)
        word = self.emit("random", [], "u32", site=site)
        shifted = self.emit("shr", [word, self.const(8, "u32")], "u32")
        unit = [self.emit("cast", [shifted], "f32"), self.const(2.0**-24, "f32")]
        unit = self.emit("mul", unit, "f32")
        low, high = (self.cast(self.scalar(bound), "f32") for bound in node.args)
        if [bound.attrs.get("value") for bound in (low, high)] == [0.0, 1.0]:
            return Scalar(unit)
        span = self.emit("sub", [high, low], "f32")
        scaled = self.emit("mul", [span, unit], "f32")
        return Scalar(self.emit("add", [low, scaled], "f32"))

    def _unary(self, op: str, value: Instr) -> Instr:
        if op == "+":
            return value
        if op == "!":
            return self.emit("not", [self.truth(value)], "bool")
        if value.type == "bool":
            value = self.cast(value, self.int_type)
        return self.emit("neg", [value], value.type)

    def binary(self, op: str, left: Instr, right: Instr, pos: Pos) -> Instr:
        """Emit a binary operator, with its operands converted to one type."""
        left, right = self.uniform(left), self.uniform(right)
        if op in ("&&", "||"):
            return self.emit(_BINARY[op[0]], [self.truth(left), self.truth(right)], "bool")
        type_ = max(left.type, right.type, key=RANK.index)
        floats = type_ in ("f32", "f64")
        whole = op in ("&", "|", "^", "<<", ">>", "%")
        expect(not (whole and floats), f"{op} needs integers, not float", pos)
        if type_ == "bool":
            type_ = self.int_type
        left, right = self.cast(left, type_), self.cast(right, type_)
        compare = _BINARY[op] in COMPARE
        return self.emit(_BINARY[op], [left, right], "bool" if compare else type_)

    def select(self, condition: Instr, yes: Instr, no: Instr) -> Instr:
        """Emit condition ? yes : no."""
        yes, no = self.uniform(yes), self.uniform(no)
        type_ = max(yes.type, no.type, key=RANK.index)
        return self.emit("select", [condition, self.cast(yes, type_), self.cast(no, type_)], type_)

    # Each element -----------------------------------------------------------------------

    def apply(
        self,
        values: list[Value],
        function: Callable[..., Instr],
        pos: Pos,
        hint: str,
        elem_type: ast.TypeName | None,
    ) -> Scalar | Vec:
        """Return function(values), for each element if one of the values is a vector."""
        for value in values:
            expect(not isinstance(value, Closure), "a function is not a number; call it", pos)
        if all(isinstance(value, Scalar) for value in values):
            return Scalar(function(*(self.uniform(value.value) for value in values)))
        return self.elementwise(values, function, elem_type, hint, pos)

    def elementwise(
        self,
        values: list[Value],
        function: Callable[..., Instr],
        type_: ast.TypeName | None,
        hint: str,
        pos: Pos,
    ) -> Vec:
        """Return a new vector: function of the values' elements, which must be of one size."""
        sources = [value for value in values if not isinstance(value, Scalar)]
        domain = self.size_of(sources[0])
        for source in sources[1:]:
            self.check_size(source, domain, pos)

        def body() -> Vec:
            result = function(*map(self.element, values))
            base = {"f32": "float", "i32": "int", "u32": "uint32", "bool": "bool"}[result.type]
            written = type_ or ast.TypeName(base, None, pos)
            result = self.convert(result, written, pos)
            name = self.new_vector(hint, storage(written), domain)
            if result.type == "bool":
                result = self.cast(result, "i32")
            self.emit("store", [result], vec=[name])
            return Vec(name, written)

        return self.loop(domain, body)

    def size_of(self, value: Vec | Range) -> Instr:
        """Return the number of elements."""
        return value.size if isinstance(value, Range) else self.vectors[value.name].size

    def check_size(self, value: Vec | Range, domain: Instr, pos: Pos) -> None:
        """Check that a vector has a size."""
        same = self.size_of(value) is domain
        expect(same, "these vectors are not known to have the same size", pos)

    def element(self, value: Scalar | Vec | Range) -> Instr:
        """Return element i of a vector, or a number, in an open loop."""
        if isinstance(value, Scalar):
            return self.uniform(value.value)
        if isinstance(value, Range):
            return self.emit("index", [], "i32")
        vector = self.vectors[value.name]
        loaded = self.emit("load", [], vector.value_type, [value.name])
        if vector.elem == "u<1>" and value.type is not None and value.type.base == "bool":
            return self.truth(loaded)
        return loaded

    def store_each(self, name: str, element: Callable[[], Instr]) -> None:
        """Assign every element of a vector of the gradient's size."""
        self.loop(self.n, lambda: self.emit("store", [self.cast(element(), "f32")], vec=[name]))

    # Lambdas ----------------------------------------------------------------------------

    def call_lambda(self, closure: Closure, args: list[Instr], pos: Pos) -> Instr:
        """Inline a lambda."""
        value = closure.value
        wanted = len(value.formals)
        text = f"this function takes {wanted} values, but gets {len(args)}"
        expect(len(args) == wanted, text, pos)
        saved = self.env, self.inside
        self.env, self.inside = Names(closure.env), closure.env
        for formal, arg in zip(value.formals, args):
            if arg.op != "index" or formal.type.base != "int":
                arg = self.convert(arg, formal.type, formal.pos)
            self.env.declare(formal.name, Scalar(arg, formal.type))
        result = self.lambda_body(value.body)
        self.env, self.inside = saved
        expect(result is not None, "this function does not return on every path", value.pos)
        return self.convert(result, value.result, value.pos)

    def lambda_body(self, body: tuple[ast.SyntaxNode, ...], *rest: tuple) -> Instr | None:
        """Return the value of the return that a list of statements reaches, or None.

        `rest` has (statements, names) of the blocks around it that follow, inner ones first.
        """
        for number, node in enumerate(body):
            if isinstance(node, ast.Return):
                return self.scalar(node.value)
            if isinstance(node, ast.If) and _returns(node):
                condition = self.boolean(node.condition)
                after = ((body[number + 1 :], self.env), *rest)
                yes, no = (self.lambda_branch(part, after) for part in (node.yes, node.no))
                return None if yes is None or no is None else self.select(condition, yes, no)
            other = isinstance(node, (ast.Call, ast.LambdaDef))
            expect(not other, "only numbers, if and return can be used in a lambda", node.pos)
            self.statement(node)
        if not rest:
            return None
        (body, env), *rest = rest
        self.env = Names(env)
        return self.lambda_body(body, *rest)

    def lambda_branch(self, body: tuple[ast.SyntaxNode, ...], rest: tuple) -> Instr | None:
        """Evaluate one side of an if as lambda_body() does, and restore the names afterwards."""
        outer = self.env
        before = [env.state() for _, env in rest]
        self.env = Names(outer)
        value = self.lambda_body(body, *rest)
        self.env = outer
        for state in before:
            restore(state)
        return value

    # Values of one kind -----------------------------------------------------------------

    def of_kind(self, node: ast.SyntaxNode, kinds: type | tuple[type, ...], wanted: str) -> Any:
        """Return an expression that must be of some kind."""
        value = self.expr(node)
        what = _WORDS[type(value)]
        expect(isinstance(value, kinds), f"expected {wanted}, but this is {what}", node.pos)
        return value

    def scalar(self, node: ast.SyntaxNode) -> Instr:
        """Return an expression that must be a number."""
        return self.uniform(self.of_kind(node, Scalar, "a number").value)

    def boolean(self, node: ast.SyntaxNode) -> Instr:
        """Return an expression that must be a number, as a condition."""
        return self.truth(self.scalar(node))

    def whole(self, node: ast.SyntaxNode) -> Instr:
        """Return an expression that must be an integer."""
        value = self.scalar(node)
        is_int = value.type not in ("f32", "f64", "bool")
        expect(is_int, "expected an int, but this is a float", node.pos)
        return self.cast(value, "i64")

    def vector(self, node: ast.SyntaxNode, ranges: bool = False) -> Any:
        """Return an expression that must be a vector (or, if `ranges`, may be a range)."""
        return self.of_kind(node, (Vec, Range) if ranges else Vec, "a vector")

    def floats(self, node: ast.SyntaxNode) -> Vec:
        """Return an expression that must be a vector of float."""
        value = self.vector(node)
        is_float = self.vectors[value.name].elem == "f32"
        expect(is_float, "expected a vector of float", node.pos)
        return value

    def function(self, node: ast.SyntaxNode) -> Closure:
        """Return an expression that must be a lambda."""
        return self.of_kind(node, Closure, "a function")


def _returns(node: ast.SyntaxNode) -> bool:
    """Return whether a statement contains a return."""
    if isinstance(node, ast.If):
        return any(map(_returns, node.yes + node.no))
    return isinstance(node, ast.Return)
