"""The built-in functions of the language: their arguments, checks and IR."""

from __future__ import annotations

from collections.abc import Callable

from hipress.compression.compiler.compiler_errors import CompileError, expect
from hipress.compression.compiler.frontend import ast
from hipress.compression.compiler.frontend.expressions import (
    FLOAT,
    INT,
    Closure,
    Expressions,
    Range,
    Scalar,
    Value,
    Vec,
)
from hipress.compression.compiler.ir.ir import OPS, RUN, TRANSFORMS, Block, Instr, backward, clone

_ELEMENTWISE = {
    "floor": 1,
    "ceil": 1,
    "abs": 1,
    "sqrt": 1,
    "isfinite": 1,
    "isnan": 1,
    "max": 2,
    "min": 2,
    "bits": 1,
    "from_bits": 1,
}
_VECTOR_FUNCTIONS: dict[str, Callable] = {}
_USAGE: dict[str, str] = {}


def _builtin(usage: str) -> Callable:
    """Return a decorator of the function that evaluates a built-in one."""

    def register(function: Callable) -> Callable:
        name = usage.partition("(")[0]
        _VECTOR_FUNCTIONS[name], _USAGE[name] = function, usage
        return function

    return register


def call(x: Expressions, node: ast.Call, hint: str, elem_type: ast.TypeName | None) -> Value:
    """Evaluate a call."""
    name = node.name
    if name in ("max", "min") and len(node.args) == 1:
        source = x.floats(node.args[0])
        return Scalar(_reduced(x, source, lambda e: x.emit("reduce", [e], "f32", fn=name)))
    if name in _ELEMENTWISE:
        expect_args(node, _ELEMENTWISE[name])
        values = [x.expr(arg) for arg in node.args]
        return x.apply(values, lambda *args: _pointwise(x, node, args), node.pos, hint, elem_type)
    if name in _VECTOR_FUNCTIONS:
        expect(x.lanes is None, f"{name} cannot be used inside a lambda", node.pos)
        if name != "map":
            expect_args(node, _USAGE[name].count(",") + 1)
        return _VECTOR_FUNCTIONS[name](x, node, hint)
    function = x.env.get(name)
    if isinstance(function, Closure):
        values = [x.expr(arg) for arg in node.args]
        type_ = elem_type or function.value.result
        return x.apply(values, _applied(x, function, node), node.pos, hint, type_)
    text = f"concat(...) can only be assigned to {x.signature.output}"
    expect(name != "concat", text, node.pos)
    known = ", ".join(sorted([*_ELEMENTWISE, *_VECTOR_FUNCTIONS]))
    raise CompileError(f"there is no function {name}; known: {known}", node.pos)


def expect_args(node: ast.Call, count: int) -> None:
    """Check the number of arguments."""
    usage = _USAGE.get(node.name, f"{count} argument{'s' if count > 1 else ''}")
    text = f"{node.name} takes {usage}, not {len(node.args)}"
    expect(len(node.args) == count, text, node.pos)


def _applied(x: Expressions, function: Closure, node: ast.Call) -> Callable[..., Instr]:
    return lambda *args: x.call_lambda(function, list(args), node.pos)


def _pointwise(x: Expressions, node: ast.Call, args: tuple[Instr, ...]) -> Instr:
    name = node.name
    values = [x.uniform(arg) for arg in args]
    value = values[0]
    if name == "bits":
        return x.emit("bitcast", [x.cast(value, "f32")], "u32")
    if name == "from_bits":
        return x.emit("bitcast", [x.cast(value, "u32")], "f32")
    if name in ("max", "min"):
        condition = x.binary(">" if name == "max" else "<", *values, node.pos)
        return x.select(condition, *values)
    if name in ("isfinite", "isnan"):
        return x.emit(name, [x.cast(value, "f32")], "bool")
    if name == "abs" and value.type == "bool":
        value = x.cast(value, x.int_type)
    if name == "abs" and value.type == "u32":
        return value
    if name in ("floor", "ceil", "sqrt") and value.type not in ("f32", "f64"):
        if name != "sqrt":
            return value
        value = x.cast(value, "f32")
    return x.emit(name, [value], value.type)


# Loops --------------------------------------------------------------------------------


@_builtin("map(vector or range, ..., function)")
def _map(x: Expressions, node: ast.Call, hint: str) -> Vec:
    expect(len(node.args) > 1, f"map takes {_USAGE['map']}", node.pos)
    sources = [x.vector(arg, ranges=True) for arg in node.args[:-1]]
    function = x.function(node.args[-1])
    applied = _applied(x, function, node)
    return x.elementwise(sources, applied, function.value.result, hint, node.pos)


@_builtin("filter(vector or range, function)")
def _filter(x: Expressions, node: ast.Call, hint: str) -> Vec:
    source = x.vector(node.args[0], ranges=True)
    applied = _applied(x, x.function(node.args[1]), node)
    bool_ = ast.TypeName("bool", None, node.pos)
    mask = x.elementwise([source], applied, bool_, f"{hint}_mask", node.pos)
    if isinstance(source, Range):
        return _indices(x, "compact", [], hint, mask)
    return _gathered(x, source, _indices(x, "compact", [], f"{hint}_at", mask), hint)


def _indices(
    x: Expressions, op: str, args: list[Instr], hint: str, *sources: Vec, **attrs: int
) -> Vec:
    """Return new indices, of an operation whose value is their number."""
    found = x.emit(op, args, "i64", ["", *(source.name for source in sources)], **attrs)
    found.vec[0] = x.new_vector(hint, "i32", found)
    return Vec(found.vec[0], INT)


def _reduced(x: Expressions, source: Vec, function: Callable[[Instr], Instr]) -> Instr:
    return x.loop(x.size_of(source), lambda: function(x.element(source)))


@_builtin("reduce(vector, start, function)")
def _reduce(x: Expressions, node: ast.Call, hint: str) -> Scalar:
    source = x.vector(node.args[0])
    start = x.scalar(node.args[1])
    function = x.function(node.args[2])
    two = len(function.value.formals) == 2
    expect(two, "reduce needs a function of two values", node.args[2].pos)
    type_ = x.vectors[source.name].value_type
    start = x.cast(start, type_)

    def reduce(element: Instr) -> Instr:
        combiner = _combiner(x, function, type_, node)
        return x.emit("reduce", [element, start], type_, fn=combiner)

    result = _reduced(x, source, reduce)
    return Scalar(x.cast(result, "i64") if type_ == "i32" else result)


def _combiner(x: Expressions, function: Closure, type_: str, node: ast.Call) -> Block:
    """Return a lambda of two values as a separate block, which may use constants only."""
    lanes, x.lanes = x.lanes, []
    params = [Instr("arg", [], type_, attrs={"number": number}) for number in (0, 1)]
    result = x.cast(x.call_lambda(function, params, node.pos), type_)
    body, x.lanes = x.lanes, lanes
    inside = {instr.id for instr in [*params, *body]}
    used = {arg.id: arg for instr in body for arg in instr.args} | {result.id: result}
    outside = [value for id_, value in used.items() if id_ not in inside]
    alone = all(value.op == "const" for value in outside)
    expect(
        alone and all(OPS[instr.op].place != "loop" for instr in body),
        "reduce's function may use its two values and constants only: it joins, in any order",
        node.args[2].pos,
    )
    mapping: dict[int, Instr] = {}
    body = clone(backward(result, [*outside, *body]), mapping)
    return Block(params, body, mapping.get(result.id, result))


@_builtin("sum(vector)")
def _sum(x: Expressions, node: ast.Call, hint: str) -> Scalar:
    def add(element: Instr) -> Instr:
        if element.type == "f32":
            return x.emit("reduce", [element], "f64", fn="sum")
        return x.emit("reduce", [x.cast(element, "i32")], "i64", fn="sum")

    return Scalar(_reduced(x, x.vector(node.args[0]), add))


@_builtin("bucket_max(vector, bucket)")
@_builtin("bucket_min(vector, bucket)")
def _bucket_extreme(x: Expressions, node: ast.Call, hint: str) -> Vec:
    source = x.floats(node.args[0])
    bucket = x.whole(node.args[1])
    expect(
        bucket.op == "param" and bucket.attrs["name"] in x.signature.bucketable,
        "a bucket must be an int parameter that is a multiple of 64, and 64 at least: declare "
        "it with a lower bound and multiple 64",
        node.args[1].pos,
    )
    less = x.emit("sub", [bucket, x.const(1, "i64")], "i64")
    size = x.emit("div", [x.emit("add", [x.size_of(source), less], "i64"), bucket], "i64")
    name, function = x.new_vector(hint, "f32", size), node.name[-3:]
    _reduced(x, source, lambda e: x.emit("bucket_reduce", [bucket, e], vec=[name], fn=function))
    return Vec(name, FLOAT)


# Whole vectors ------------------------------------------------------------------------


@_builtin("range(size)")
def _range(x: Expressions, node: ast.Call, hint: str) -> Range:
    size = x.whole(node.args[0])
    sized = bool(size.vec) or size.id in x.limited  # that of what a vector has, or a field
    if x.signature.kind == "decode" and not sized and _is_of_payload(size):
        x.limit(size, "a range")
    return Range(size)


def _is_of_payload(value: Instr) -> bool:
    """Return whether a number of a decoder depends on the payload's content."""
    return value.op == "field" or bool(value.vec) or any(map(_is_of_payload, value.args))


def _in_memory(x: Expressions, node: ast.SyntaxNode) -> Vec:
    """Return a vector of float in memory: a copy of a gradient or of a payload's field."""
    value = x.floats(node)
    if x.vectors[value.name].kind not in ("input", "field"):
        return value
    return x.elementwise([value], lambda element: element, FLOAT, "copy", node.pos)


def _made(x: Expressions, op: str, args: list[Instr], source: Vec, hint: str) -> Vec:
    """Return a new vector of a vector's size that an operation makes of it."""
    name = x.new_vector(hint, "f32", x.size_of(source))
    x.emit(op, args, vec=[name, source.name])
    return Vec(name, FLOAT)


@_builtin("sort(vector)")
def _sort(x: Expressions, node: ast.Call, hint: str) -> Vec:
    return _made(x, "sort", [], _in_memory(x, node.args[0]), hint)


@_builtin("quantile(vector, q)")
def _quantile(x: Expressions, node: ast.Call, hint: str) -> Scalar:
    """Return sort(v)[int(q * v.size)], at most the last element, and 0 of an empty vector."""
    ordered = _sort(x, node, hint)
    share = x.cast(x.scalar(node.args[1]), "f32")
    at = x.emit("mul", [share, x.cast(x.size_of(ordered), "f32")], "f32")
    return Scalar(x.emit("element", [x.cast(at, "i64")], "f32", [ordered.name]))


@_builtin("topk(vector, k)")
def _topk(x: Expressions, node: ast.Call, hint: str) -> Vec:
    source = _in_memory(x, node.args[0])
    return _indices(x, "topk", [x.whole(node.args[1])], hint, source)


@_builtin("dct(vector, block)")
@_builtin("idct(vector, block)")
def _cosines(x: Expressions, node: ast.Call, hint: str) -> Vec:
    block = x.whole(node.args[1])
    known = block.op == "const" and block.attrs["value"] in TRANSFORMS
    few = ", ".join(map(str, TRANSFORMS))
    expect(
        known or (block.op == "param" and block.attrs["name"] in x.signature.blocks),
        f"a block must be one of {few}, or an int parameter with such choices",
        node.args[1].pos,
    )
    return _made(x, node.name, [block], _in_memory(x, node.args[0]), hint)


@_builtin("sample(vector, size)")
def _sample(x: Expressions, node: ast.Call, hint: str) -> Vec:
    source = x.floats(node.args[0])
    args = [x.size_of(source), x.whole(node.args[1])]
    return _gathered(x, source, _drawn_indices(x, args, hint, RUN), hint)


@_builtin("random_indices(size, k)")
def _random_indices(x: Expressions, node: ast.Call, hint: str) -> Vec:
    return _drawn_indices(x, [x.whole(arg) for arg in node.args], hint, run=1)


def _drawn_indices(x: Expressions, args: list[Instr], hint: str, run: int) -> Vec:
    site, x.sites = x.sites, x.sites + 1
    return _indices(x, "random_indices", args, hint, site=site, run=run)


@_builtin("gather(vector, indices)")
def _gather(x: Expressions, node: ast.Call, hint: str) -> Vec:
    source = x.vector(node.args[0])
    x.anywhere(x.vectors[source.name], node.pos)
    return _gathered(x, source, x.vector(node.args[1]), hint)


def _gathered(x: Expressions, source: Vec, indices: Vec, hint: str) -> Vec:
    vector = x.vectors[source.name]
    kind = {"f32": "float", "u32": "uint32"}.get(vector.value_type, "int")

    def load(index: Instr) -> Instr:
        return x.emit("load_at", [x.cast(index, "i32")], vector.value_type, [source.name])

    return x.elementwise([indices], load, source.type or ast.TypeName(kind), hint, None)


@_builtin("scatter(vector or size, indices, values)")
def _scatter(x: Expressions, node: ast.Call, hint: str) -> Vec:
    name = x.new_vector(hint, "f32", x.n)
    scatter(x, node, name)
    return Vec(name, FLOAT)


def scatter(x: Expressions, node: ast.Call, target: str) -> None:
    """Assign a vector: itself, or zeros, with values at indices."""
    expect_args(node, 3)
    base = node.args[0]
    in_place = isinstance(base, ast.Name) and base.name == target and target in x.signature.states
    if not in_place:
        source, output = x.expr(base), x.vectors[target].kind == "output"
        sized = isinstance(source, Scalar)
        expect(not output or sized, f"expected {target}.size: what is not sent is 0", base.pos)
        if sized:
            whole = x.cast(source.value, "i64") is x.n
            expect(whole, "what is scattered has the size of the gradient", base.pos)
            x.store_each(target, lambda: x.const(0.0, "f32"))
        else:
            x.check_size(source, x.n, base.pos)
            x.store_each(target, lambda: x.element(source))
    indices = x.vector(node.args[1])
    whole = x.vectors[indices.name].elem in ("i32", "u32", "u16")
    expect(whole, "indices must be int, uint32 or uint16", node.args[1].pos)
    values, pos = x.expr(node.args[2]), node.args[2].pos
    if isinstance(values, Scalar):
        x.emit("scatter", [x.cast(values.value, "f32")], vec=[target, indices.name])
        return
    good = isinstance(values, Vec) and x.vectors[values.name].elem == "f32"
    expect(good, "values must be a number or a vector of float", pos)
    x.check_size(values, x.size_of(indices), pos)
    x.emit("scatter", [], vec=[target, indices.name, values.name])
