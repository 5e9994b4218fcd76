"""A whole source text to a typed program."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

from hipress.compression.compiler.errors import CompileError
from hipress.compression.compiler.frontend import ast
from hipress.compression.compiler.frontend.lower import Lowerer
from hipress.compression.compiler.frontend.parser import parse
from hipress.compression.compiler.frontend.scope import Names, Scalar, Signature
from hipress.compression.compiler.ir.ir import TRANSFORMS, Block, Function, Param, Program
from hipress.compression.compiler.ir.printer import print_program

RESERVED = ("spec", "entropy")
"""Names of parameters that the engine adds to any codec's own."""
_RANGES = {"uint8": 2**8 - 1, "uint16": 2**16 - 1, "uint32": 2**32 - 1}


def read_program(source: str, path: str = "<text>") -> Program:
    """Parse and type-check a source text.

    :param path: the file's name, for messages; its stem is the algorithm's default name
    :raises CompileError: with line and column, for anything wrong in it
    """
    file = parse(source, path)
    try:
        return _Reader(file, path, source).program()
    except CompileError as error:
        raise error.located(source, path) from None


class _Reader:
    def __init__(self, file: ast.File, path: str, source: str) -> None:
        self.file, self.path, self.source = file, path, source
        self.types: dict[str, ast.TypeName] = {}
        self.params: list[Param] = []

    def program(self) -> Program:
        encode, decode = self.functions()
        for declared in self.file.params:
            self.add(self.param(declared), declared.type, declared.pos)
        for function in (encode, decode):
            for formal in function.formals[2:] if function else ():
                self.formal(formal)
        states = {state.name: state.condition for state in self.file.states}
        for state in self.file.states:
            if state.name == "residual" and state.condition is not None:
                raise CompileError("the residual is always kept", state.pos)
        static = _static_names(encode, decode)
        for param in self.params:
            if param.name in static:
                self.make_static(param, static[param.name])
        lowered = [
            Lowerer(function, self.signature(function, kind, states)).run() if function else None
            for function, kind in ((encode, "encode"), (decode, "decode"))
        ]
        if encode:
            _check_optional(lowered[0])
            self.for_sums(encode)
        name = self.file.name or _stem(self.path, encode or decode)
        program = Program(
            name, self.file.summary, self.params, list(states), *lowered, self.source, self.path
        )
        program.digest = hashlib.sha256(print_program(program).encode()).hexdigest()[:16]
        return program

    def functions(self) -> tuple[ast.Function | None, ast.Function | None]:
        """Return the encoder and the decoder, which their signatures distinguish."""
        found: dict[str, ast.Function] = {}
        for function in self.file.functions:
            heads = [(f.type.base, f.vector) for f in function.formals[:2]]
            if heads == [("float", True), ("uint8", True)]:
                kind = "encode"
            elif heads == [("uint8", True), ("float", True)]:
                kind = "decode"
            else:
                raise CompileError(
                    f"{function.name} must take (float* gradient, uint8* compressed, ...) to "
                    "encode or (uint8* compressed, float* gradient, ...) to decode",
                    function.pos,
                )
            if kind in found:
                raise CompileError(
                    f"{function.name} is a second {kind}r; {found[kind].name} is the first",
                    function.pos,
                )
            found[kind] = function
        if not found:
            raise CompileError("expected a function that encodes, one that decodes, or both")
        return found.get("encode"), found.get("decode")

    def add(self, param: Param, type_: ast.TypeName, pos: object) -> None:
        if param.name in self.types:
            raise CompileError(f"parameter {param.name} is declared twice", pos)
        if param.name in RESERVED:
            text = f"a parameter cannot be called {param.name}: all codecs have it"
            raise CompileError(text, pos)
        self.params.append(param)
        self.types[param.name] = type_

    def formal(self, formal: ast.Formal) -> None:
        """Read a parameter in a signature, which is declared above or here."""
        if formal.vector:
            raise CompileError("a function takes two vectors, then parameters", formal.pos)
        known = self.types.get(formal.name)
        if known is None:
            declared = ast.Param(formal.pos, formal.type, formal.name, None, None, None, None, "")
            self.add(self.param(declared), formal.type, formal.pos)
        elif known.base != formal.type.base:
            raise CompileError(
                f"{formal.name} is {formal.type.base} here, but {known.base} elsewhere", formal.pos
            )

    def param(self, node: ast.Param) -> Param:
        if node.type.base not in ("float", "int", *_RANGES):
            raise CompileError(
                "a parameter must be float, int, uint8, uint16 or uint32", node.type.pos
            )
        param = Param(node.name, node.type.base, None, node.doc, for_sum=node.for_sum)
        if param.integer:
            param.low, param.high = 0, _RANGES.get(param.type)
            if param.type == "int":
                param.low = None
        if node.bounds:
            opening, values, closing = node.bounds
            numbers = [self.constant(value, param) for value in values]
            if opening == "{":
                param.choices = tuple(numbers)
            else:
                low, high = numbers
                param.low = None if low == -math.inf else low
                param.high = None if high == math.inf else high
                param.low_open, param.high_open = opening == "(", closing == ")"
        if node.multiple is not None:
            param.multiple = int(self.constant(node.multiple, param))
            if param.multiple < 1:
                raise CompileError("a multiple must be 1 at least", node.multiple.pos)
        if node.default is not None:
            param.default = self.constant(node.default, param)
            if not param.allows(param.default):
                raise CompileError(
                    f"the default of {param.name} must be {param.allowed()}", node.default.pos
                )
        return param

    def constant(self, node: ast.Node, param: Param) -> float | int:
        if isinstance(node, ast.Unary) and node.op == "-":
            return -self.constant(node.value, param)
        if isinstance(node, ast.Name) and node.name == "inf":
            return math.inf
        if not isinstance(node, ast.Number):
            raise CompileError("expected a number", node.pos)
        if param.integer and isinstance(node.value, float):
            raise CompileError(f"{param.name} is an integer", node.pos)
        return node.value if param.integer else float(node.value)

    def make_static(self, param: Param, use: ast.TypeName) -> None:
        """Make a parameter in uint<param> static: it has few values, each compiled separately."""
        if not param.integer:
            raise CompileError(f"uint<{param.name}> needs an integer parameter", use.pos)
        if param.choices is None:
            low = max(1, param.low or 0)
            high = min(8, 8 if param.high is None or param.high > 8 else param.high)
            param.choices = tuple(range(int(low), int(high) + 1))
        if not all(1 <= choice <= 8 for choice in param.choices):
            raise CompileError(f"uint<{param.name}> needs 1 to 8 bits", use.pos)
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
            x = Lowerer(encode, self.signature(encode, "encode", {})).x
            env, x.env = x.env, Names()
            for name in self.types:
                x.env.declare(name, env.get(name))
            x.env.declare("count", Scalar(x.emit("param", [], "i64", name="count")))
            value = x.cast(x.scalar(param.for_sum), "i64" if param.integer else "f32")
            param.for_sum = Block([], x.body, value)


def _is_bucket(param: Param) -> bool:
    """Return whether all values of a parameter are positive multiples of 64."""
    if not param.integer:
        return False
    if param.choices is not None:
        return all(choice > 0 and choice % 64 == 0 for choice in param.choices)
    low = -math.inf if param.low is None else param.low
    return param.multiple % 64 == 0 and (low > 0 or low == 0 and param.low_open)


def _is_block(param: Param) -> bool:
    """Return whether all values of a parameter are blocks that dct can transform."""
    choices = param.choices or () if param.integer else ()
    return bool(choices) and all(choice in TRANSFORMS for choice in choices)


def _check_optional(encode: Function) -> None:
    """Check that optional states are read and written element by element only."""
    for instr in encode.instrs():
        for name in instr.vec:
            optional = encode.vectors[name].needs is not None
            if optional and instr.op not in ("load", "load_at", "store", "scatter"):
                raise CompileError(
                    f"{name} is not always kept, so it can be used in map, gather and scatter only"
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
        elif isinstance(item, ast.Node):
            for part in vars(item).values():
                visit(part)

    for function in functions:
        visit(function)
    return found


def _stem(path: str, function: ast.Function) -> str:
    if not path.startswith("<"):
        return Path(path).stem
    return function.name.lower().removesuffix("encode").removesuffix("decode") or function.name
