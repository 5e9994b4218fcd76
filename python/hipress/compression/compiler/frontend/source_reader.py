"""A whole source text to a typed program: parameters, functions and statements."""

from __future__ import annotations

import hashlib
import math
from functools import partial
from pathlib import Path
from typing import Any

from hipress.compression.compiler.compiler_errors import CompileError, Pos, expect
from hipress.compression.compiler.frontend import ast, builtins, payloads
from hipress.compression.compiler.frontend.expressions import (
    FLOAT,
    OUTPUT,
    Closure,
    Expressions,
    Names,
    Range,
    Scalar,
    Signature,
    Value,
    Vec,
    restore,
    storage,
)
from hipress.compression.compiler.frontend.parser import parse
from hipress.compression.compiler.ir.ir import (
    TRANSFORMS,
    Block,
    Function,
    Instr,
    Program,
    ProgramParam,
    Vector,
    backward,
)
from hipress.compression.compiler.ir.printer import print_program

RESERVED = ("spec", "entropy")
"""Names of parameters that the engine adds to any codec's own."""
_RANGES = {"uint8": 2**8 - 1, "uint16": 2**16 - 1, "uint32": 2**32 - 1}


def read_program(source: str, path: str = "<text>") -> Program:
    """Parse and type-check a source text.

    Args:
        source: The text.
        path: The file's name, for messages; its stem is the algorithm's default name.

    Raises:
        CompileError: With line and column, for anything wrong in it.
    """
    try:
        return _Reader(parse(source), path, source).program()
    except CompileError as error:
        raise error.located(source, path) from None


class _Reader:
    def __init__(self, file: ast.File, path: str, source: str) -> None:
        self.file, self.path, self.source = file, path, source
        self.types: dict[str, ast.TypeName] = {}
        self.params: list[ProgramParam] = []

    def program(self) -> Program:
        encode, decode = self.functions()
        for declared in self.file.params:
            self.add(self.param(declared), declared.type, declared.pos)
        for function in (encode, decode):
            for formal in function.formals[2:] if function else ():
                self.formal(formal)
        states = {state.name: state.condition for state in self.file.states}
        for state in self.file.states:
            kept = state.name != "residual" or state.condition is None
            expect(kept, "the residual is always kept", state.pos)
        static = _static_names(encode, decode)
        for param in self.params:
            if param.name in static:
                self.make_static(param, static[param.name])
        lowered = [
            _Lowerer(function, self.signature(function, kind, states)).run() if function else None
            for function, kind in ((encode, "encode"), (decode, "decode"))
        ]
        if encode:
            _check_optional(lowered[0])
            self.for_sums(encode)
        name, summary = self.file.name or _stem(self.path, encode or decode), self.file.summary
        program = Program(
            name, summary, self.params, list(states), *lowered, self.source, self.path
        )
        program.digest = hashlib.sha256(print_program(program).encode()).hexdigest()[:16]
        return program

    def functions(self) -> tuple[ast.Function | None, ast.Function | None]:
        """Return the encoder and the decoder, which their signatures distinguish."""
        found: dict[str, ast.Function] = {}
        kinds = {("float", "uint8"): "encode", ("uint8", "float"): "decode"}
        for function in self.file.functions:
            heads = function.formals[:2]
            kind = kinds.get(tuple(head.type.base for head in heads))
            expect(
                kind is not None and all(head.vector for head in heads),
                f"{function.name} must take (float* gradient, uint8* compressed, ...) to "
                "encode or (uint8* compressed, float* gradient, ...) to decode",
                function.pos,
            )
            first = found.setdefault(kind, function)
            text = f"{function.name} is a second {kind}r; {first.name} is the first"
            expect(first is function, text, function.pos)
        expect(found, "expected a function that encodes, one that decodes, or both")
        return found.get("encode"), found.get("decode")

    def add(self, param: ProgramParam, type_: ast.TypeName, pos: Pos) -> None:
        expect(param.name not in self.types, f"parameter {param.name} is declared twice", pos)
        text = f"a parameter cannot be called {param.name}: all codecs have it"
        expect(param.name not in RESERVED, text, pos)
        self.params.append(param)
        self.types[param.name] = type_

    def formal(self, formal: ast.Formal) -> None:
        """Read a parameter in a signature, which is declared above or here."""
        text = "a function takes two vectors, then parameters"
        expect(not formal.vector, text, formal.pos)
        known, base = self.types.get(formal.name), formal.type.base
        if known is None:
            declared = ast.Param(formal.pos, formal.type, formal.name, None, None, None, None, "")
            self.add(self.param(declared), formal.type, formal.pos)
        else:
            text = f"{formal.name} is {base} here, but {known.base} elsewhere"
            expect(known.base == base, text, formal.pos)

    def param(self, node: ast.Param) -> ProgramParam:
        text = "a parameter must be float, int, uint8, uint16 or uint32"
        expect(node.type.base in ("float", "int", *_RANGES), text, node.type.pos)
        param = ProgramParam(node.name, node.type.base, None, node.doc or "", for_sum=node.for_sum)
        if param.type in _RANGES:
            param.low, param.high = 0, _RANGES[param.type]
        if node.bounds:
            opening, values, closing = node.bounds
            numbers = [_constant(value, param) for value in values]
            if opening == "{":
                param.choices = tuple(numbers)
            else:
                param.low, param.high = numbers
                param.low_open, param.high_open = opening == "(", closing == ")"
        if node.multiple is not None:
            param.multiple = int(_constant(node.multiple, param))
            expect(param.multiple >= 1, "a multiple must be 1 at least", node.multiple.pos)
        if node.default is not None:
            param.default = _constant(node.default, param)
            text = f"the default of {param.name} must be {param.allowed()}"
            expect(param.allows(param.default), text, node.default.pos)
        return param

    def make_static(self, param: ProgramParam, use: ast.TypeName) -> None:
        """Make a parameter in uint<param> static: it has few values, each compiled separately."""
        expect(param.integer, f"uint<{param.name}> needs an integer parameter", use.pos)
        if param.choices is None:
            low, high = max(1, param.low), min(8, param.high)
            param.choices = tuple(range(int(low), int(high) + 1))
        few = all(1 <= choice <= 8 for choice in param.choices)
        expect(few, f"uint<{param.name}> needs 1 to 8 bits", use.pos)
        param.static = True

    def signature(self, function: ast.Function, kind: str, states: dict) -> Signature:
        source, target = (formal.name for formal in function.formals[:2])
        bucketable = {param.name for param in self.params if _is_bucket(param)}
        blocks = {param.name for param in self.params if _is_block(param)}
        return Signature(kind, source, target, self.types, states, bucketable, blocks)

    def for_sums(self, encode: ast.Function) -> None:
        """Lower the parameters for sums of several payloads, as functions of all + count."""
        for param in self.params:
            if param.for_sum is None:
                continue
            x = _Lowerer(encode, self.signature(encode, "encode", {}))
            env, x.env = x.env, Names()
            for name in self.types:
                x.env.declare(name, env.get(name))
            x.env.declare("count", Scalar(x.emit("param", [], "i64", name="count")))
            value = x.cast(x.scalar(param.for_sum), "i64" if param.integer else "f32")
            param.for_sum = Block([], x.body, value)


def _constant(node: ast.SyntaxNode, param: ProgramParam) -> float | int:
    if isinstance(node, ast.Unary) and node.op == "-":
        return -_constant(node.value, param)
    if isinstance(node, ast.Name) and node.name == "inf":
        return math.inf
    expect(isinstance(node, ast.Number), "expected a number", node.pos)
    whole = not param.integer or isinstance(node.value, int)
    expect(whole, f"{param.name} is an integer", node.pos)
    return node.value if param.integer else float(node.value)


def _is_bucket(param: ProgramParam) -> bool:
    """Return whether all values of a parameter are positive multiples of 64."""
    if not param.integer:
        return False
    if param.choices is not None:
        return all(choice > 0 and choice % 64 == 0 for choice in param.choices)
    positive = param.low > 0 or param.low == 0 and param.low_open
    return param.multiple % 64 == 0 and positive


def _is_block(param: ProgramParam) -> bool:
    """Return whether all values of a parameter are blocks that dct can transform."""
    choices = param.choices or () if param.integer else ()
    return bool(choices) and all(choice in TRANSFORMS for choice in choices)


def _check_optional(encode: Function) -> None:
    """Check that optional states are read and written element by element only."""
    for instr in encode.instrs():
        for name in instr.vec:
            always = encode.vectors[name].needs is None
            expect(
                always or instr.op in ("load", "load_at", "store", "scatter"),
                f"{name} is not always kept, so it can be used in map, gather and scatter only",
            )


def _static_names(*functions: ast.Function | None) -> dict[str, ast.TypeName]:
    """Return the names in uint<name>, with one of their uses."""
    found: dict[str, ast.TypeName] = {}

    def visit(item: object) -> None:
        if isinstance(item, ast.TypeName):
            if isinstance(item.bits, str):
                found.setdefault(item.bits, item)
        elif isinstance(item, tuple):
            for part in item:
                visit(part)
        elif isinstance(item, ast.SyntaxNode):
            visit(tuple(vars(item).values()))

    visit(functions)
    return found


def _stem(path: str, function: ast.Function) -> str:
    if not path.startswith("<"):
        return Path(path).stem
    return function.name.lower().removesuffix("encode").removesuffix("decode") or function.name


class _Lowerer(Expressions):
    """Lowering of one function: its statements, with all type checks."""

    def __init__(self, function: ast.Function, signature: Signature) -> None:
        super().__init__(signature)
        self.syntax = function
        self.finished = False
        self.depth = 0
        for name, type_ in signature.params.items():
            ir_type = "f32" if type_.base == "float" else "i64"
            self.env.declare(name, Scalar(self.emit("param", [], ir_type, name=name), type_))
        source, target = signature.input, signature.output
        if signature.kind == "decode":
            self.vectors[target] = Vector(target, "f32", self.n, "output")
            self.env.declare(source, None)
            self.env.declare(target, OUTPUT)
            return
        needs = {
            name: self.condition(name, condition)
            for name, condition in signature.states.items()
            if condition is not None
        }
        self.vectors[source] = Vector(source, "f32", self.n, "input")
        self.env.declare(source, Vec(source))
        self.env.declare(target, OUTPUT)
        for name in signature.states:
            self.vectors[name] = Vector(name, "f32", self.n, "state", needs=needs.get(name))
            self.env.declare(name, Vec(name))

    call = builtins.call

    def condition(self, name: str, node: ast.SyntaxNode) -> Instr:
        """Return whether a state is kept: a bool of the parameters."""
        value = self.boolean(node)
        text = f"{name} can only depend on parameters and numbers"
        for instr in backward(value, self.body):
            expect(not instr.vec and instr.op not in ("n", "step"), text, node.pos)
        return value

    def run(self) -> Function:
        """Return the function's IR."""
        for statement in self.syntax.body:
            self.statement(statement)
        name, signature = self.syntax.name, self.signature
        how = " = concat(...)" if signature.kind == "encode" else ""
        expect(self.finished, f"{name} must assign {signature.output}{how}", self.syntax.pos)
        kind, source, target = signature.kind, signature.input, signature.output
        return Function(name, kind, self.body, self.vectors, source, target)

    def statement(self, node: ast.SyntaxNode) -> None:
        if isinstance(node, ast.LambdaDef):
            self.expect_new(node)
            self.env.declare(node.name, Closure(node.value, Names(self.env)))
        elif isinstance(node, ast.Declare):
            self.declare(node)
        elif isinstance(node, ast.Assign):
            self.assign(node)
        elif isinstance(node, ast.If):
            self.if_(node)
        elif isinstance(node, ast.Call):
            # Inside an if it would be done whatever the condition is.
            expect(not self.depth, f"{node.name} must not be inside an if", node.pos)
            if payloads.call_statement(self, node):
                self.finish(node.pos)
        else:
            assigns = f"{self.syntax.name} assigns {self.signature.output}"
            raise CompileError(f"return is for lambdas; {assigns}", node.pos)

    def declare(self, node: ast.Declare) -> None:
        signature = self.signature
        taken = node.name in signature.params or node.name in signature.states
        expect(not taken, f"{node.name} is a parameter or a state already", node.pos)
        self.expect_new(node)
        made = node if node.value is None else self.converted(node, node.type, node.vector)
        self.env.declare(node.name, made)

    def expect_new(self, node: ast.Declare | ast.LambdaDef) -> None:
        known = self.env.declared_here(node.name)
        expect(not known, f"{node.name} is declared already", node.pos)

    def converted(
        self, node: ast.Declare | ast.Assign, type_: ast.TypeName, vector: bool
    ) -> Vec | Scalar:
        """Evaluate the value of a declaration or assignment into a variable of a written type."""
        if vector:
            return self.to_vector(node.value, type_, node.name)
        value = self.convert(self.scalar(node.value), type_, node.value.pos)
        return Scalar(value, type_)

    def to_vector(self, value: ast.SyntaxNode, type_: ast.TypeName, hint: str) -> Vec:
        """Evaluate a vector expression into a variable of a written type."""
        elem = storage(type_)
        result = self.expr(value, hint=hint, elem_type=type_)
        number = isinstance(result, Scalar)
        expect(not number, f"{type_}* needs a vector, but this is a number", value.pos)
        function = isinstance(result, Closure)
        expect(not function, "this is a function; call map with it", value.pos)
        if isinstance(result, Vec):
            vector = self.vectors[result.name]
            if vector.kind == "temp" and vector.elem == elem:
                return Vec(result.name, type_)
        return self.elementwise([result], lambda element: element, type_, hint, value.pos)

    def assign(self, node: ast.Assign) -> None:
        name, pos = node.name, node.pos
        text = f"{name} is not declared; write its type first, as in float {name} = ..."
        expect(name in self.env, text, pos)
        is_param = name in self.signature.params
        expect(not is_param, f"{name} is a parameter and cannot be assigned", pos)
        outer = self.inside is not None and self.env.same(name, self.inside)
        text = f"{name} is declared outside of this lambda, so the lambda cannot assign it"
        expect(not outer, text, pos)
        old = self.env.get(name)
        if old is OUTPUT:
            self.finish(pos)
            if self.signature.kind == "decode":
                self.store_into(name, node.value)
                return
            concat = isinstance(node.value, ast.Call) and node.value.name == "concat"
            text = f"expected concat(...): {name} is made of fields"
            expect(concat, text, node.value.pos)
            payloads.concat(self, node.value)
        elif isinstance(old, Vec):
            is_input = name == self.signature.input
            expect(not is_input, f"{name} is the input and cannot be assigned", pos)
            if name in self.signature.states and not self.depth:
                self.store_into(name, node.value)
            else:
                self.env.assign(name, self.to_vector(node.value, old.type or FLOAT, name))
        else:
            variable = isinstance(old, (Scalar, ast.Declare))
            expect(variable, f"{name} cannot be assigned", pos)
            vector = isinstance(old, ast.Declare) and old.vector
            self.env.assign(name, self.converted(node, old.type, vector))

    def finish(self, pos: Pos) -> None:
        """Note that the output is assigned, once and not inside an if."""
        name = self.signature.output
        expect(not self.finished, f"{name} is assigned twice", pos)
        expect(not self.depth, f"{name} must not be assigned inside an if", pos)
        self.finished = True

    def store_into(self, name: str, value: ast.SyntaxNode) -> None:
        """Emit name = value for a vector in memory: a state or the output."""
        if isinstance(value, ast.Call) and value.name == "scatter":
            builtins.scatter(self, value, name)
            return
        result = self.expr(value, hint=name)
        vector = isinstance(result, (Vec, Range))
        expect(vector, f"{name} needs a vector, but this is a number", value.pos)
        self.check_size(result, self.n, value.pos)
        self.store_each(name, lambda: self.element(result))

    def if_(self, node: ast.If) -> None:
        condition = self.boolean(node.condition)
        yes, no = self.branch(node.yes), self.branch(node.no)
        for name, old in self.env.values().items():
            if yes[name] is old and no[name] is old:
                continue
            merged = self.merge(condition, yes[name], no[name], node.pos, name)
            if name in self.signature.states:
                self.store_each(name, partial(self.element, merged))
            else:
                self.env.assign(name, merged)

    def branch(self, body: tuple[ast.SyntaxNode, ...]) -> dict[str, Any]:
        """Execute one side of an if, and return the values of outer names after it."""
        outer = self.env
        before = outer.state()
        self.env = Names(outer)
        self.depth += 1
        for statement in body:
            self.statement(statement)
        self.depth -= 1
        self.env, after = outer, outer.values()
        restore(before)
        return after

    def merge(self, condition: Instr, yes: Value, no: Value, pos: Pos, name: str) -> Scalar | Vec:
        """Return a variable's value after an if whose branches leave `yes` and `no` in it."""
        if isinstance(yes, Scalar) and isinstance(no, Scalar):
            return Scalar(self.select(condition, yes.value, no.value), yes.type)
        both = isinstance(yes, Vec) and isinstance(no, Vec)
        expect(both, f"{name} must have a value after both branches of this if", pos)
        type_ = yes.type or no.type or FLOAT
        select = partial(self.select, condition)
        return self.elementwise([yes, no], select, type_, name, pos)
