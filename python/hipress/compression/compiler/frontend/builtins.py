"""The built-in functions of the language: their arguments, checks and IR."""

from __future__ import annotations

from hipress.compression.compiler.errors import CompileError
from hipress.compression.compiler.frontend import ast
from hipress.compression.compiler.frontend.expressions import Expressions
from hipress.compression.compiler.frontend.scope import FLOAT, INT, Closure, Range, Scalar, Vec
from hipress.compression.compiler.ir.ir import RUN, TRANSFORMS, Block, Instr
from hipress.compression.compiler.ir.slices import backward, clone

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
_OF_ELEMENTS = ("index", "load", "load_at", "bucket_load", "random", "random16")
_USAGE = {
    "map": "map(vector or range, ..., function)",
    "reduce": "reduce(vector, start, function)",
    "filter": "filter(vector or range, function)",
    "range": "range(size)",
    "sum": "sum(vector)",
    "sort": "sort(vector)",
    "quantile": "quantile(vector, q)",
    "topk": "topk(vector, k)",
    "sample": "sample(vector, size)",
    "random_indices": "random_indices(size, k)",
    "gather": "gather(vector, indices)",
    "scatter": "scatter(vector or size, indices, values)",
    "bucket_max": "bucket_max(vector, bucket)",
    "bucket_min": "bucket_min(vector, bucket)",
    "dct": "dct(vector, block)",
    "idct": "idct(vector, block)",
}


def call(x: Expressions, node: ast.Call, hint: str, elem_type: ast.TypeName | None) -> object:
    name, count = node.name, len(node.args)
    if name in ("max", "min") and count == 1:
        return _extreme(x, node)
    if name in _ELEMENTWISE:
        expect_args(node, _ELEMENTWISE[name])
        values = [x.expr(arg) for arg in node.args]
        return x.apply(values, lambda *args: _pointwise(x, node, args), node.pos, hint, elem_type)
    if name in _SPECIAL:
        if x.lanes is not None:
            raise CompileError(f"{name} cannot be used inside a lambda", node.pos)
        special, count = _SPECIAL[name]
        if count:
            expect_args(node, count)
        return special(x, node, hint, elem_type)
    function = x.env.get(name)
    if isinstance(function, Closure):
        values = [x.expr(arg) for arg in node.args]
        return x.apply(
            values,
            lambda *args: x.call_lambda(function, list(args), node.pos),
            node.pos,
            hint,
            elem_type or function.value.result,
        )
    if name == "concat":
        raise CompileError(f"concat(...) can only be assigned to {x.signature.output}", node.pos)
    known = ", ".join(sorted([*_ELEMENTWISE, *_SPECIAL]))
    raise CompileError(f"there is no function {name}; known: {known}", node.pos)


def expect_args(node: ast.Call, count: int) -> None:
    if len(node.args) != count:
        usage = _USAGE.get(node.name, f"{count} argument{'s' if count > 1 else ''}")
        raise CompileError(f"{node.name} takes {usage}, not {len(node.args)}", node.pos)


def _pointwise(x: Expressions, node: ast.Call, args: tuple[Instr, ...]) -> Instr:
    name = node.name
    values = [x.uniform(arg) for arg in args]
    if name == "bits":
        return x.emit("bitcast", [x.cast(values[0], "f32")], "u32")
    if name == "from_bits":
        return x.emit("bitcast", [x.cast(values[0], "u32")], "f32")
    if name in ("max", "min"):
        condition = x.binary(">" if name == "max" else "<", *values, node.pos)
        return x.select(condition, *values)
    value = values[0]
    if name in ("isfinite", "isnan"):
        return x.emit(name, [x.cast(value, "f32")], "bool")
    if name == "abs" and value.type == "bool":
        value = x.cast(value, "i32" if x.lanes is not None else "i64")
    if name == "abs" and value.type == "u32":
        return value
    if name in ("floor", "ceil", "sqrt") and value.type not in ("f32", "f64"):
        if name != "sqrt":
            return value
        value = x.cast(value, "f32")
    return x.emit(name, [value], value.type)


def _in_memory(x: Expressions, node: ast.Node) -> Vec:
    """Return a vector of float that is used as a whole: of a gradient of any type, or of what lies
    at any address in a payload, a copy."""
    value = x.floats(x.vector(node), node)
    if x.vectors[value.name].kind not in ("input", "field"):
        return value
    type_ = FLOAT
    return x.elementwise([value], lambda element: element, type_, "copy", node.pos)


def _is_of_payload(value: Instr) -> bool:
    """Return whether a number of a decoder depends on the payload's content."""
    return value.op == "field" or bool(value.vec) or any(map(_is_of_payload, value.args))


def _range(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Range:
    size = x.whole(node.args[0])
    sized = bool(size.vec) or size.id in x.limited  # that of what a vector has, or a field
    if x.signature.kind == "decode" and not sized and _is_of_payload(size):
        x.limit(size, "a range")
    return Range(size)


def _map(x: Expressions, node: ast.Call, hint: str, elem_type: ast.TypeName | None) -> Vec:
    if len(node.args) < 2:
        raise CompileError("map takes map(vector or range, ..., function)", node.pos)
    sources = [x.vector(arg, ranges=True) for arg in node.args[:-1]]
    function = x.function(node.args[-1])
    return x.elementwise(
        sources,
        lambda *args: x.call_lambda(function, list(args), node.pos),
        function.value.result,
        hint,
        node.pos,
    )


def _filter(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    source = x.vector(node.args[0], ranges=True)
    function = x.function(node.args[1])
    mask = x.elementwise(
        [source],
        lambda value: x.call_lambda(function, [value], node.pos),
        ast.TypeName("bool", None, node.pos),
        f"{hint}_mask",
        node.pos,
    )
    found = x.emit("compact", [], "i64", ["", mask.name])
    index = x.new_vector(hint if isinstance(source, Range) else f"{hint}_at", "i32", found)
    found.vec[0] = index
    indices = Vec(index, INT)
    return indices if isinstance(source, Range) else _gathered(x, source, indices, hint)


def _reduce(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Scalar:
    source = x.vector(node.args[0])
    start = x.scalar(node.args[1])
    function = x.function(node.args[2])
    formals = function.value.formals
    if len(formals) != 2:
        raise CompileError("reduce needs a function of two values", node.args[2].pos)
    type_ = x.vectors[source.name].value_type
    start = x.cast(start, type_)

    def body() -> Instr:
        element = x.element(source)
        combiner = _combiner(x, function, type_, node)
        return x.emit("reduce", [element, start], type_, fn=combiner)

    result = x.loop(x.size_of(source), body)
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
    if any(value.op != "const" for value in outside) or any(i.op in _OF_ELEMENTS for i in body):
        text = "reduce's function may use its two values and constants only: it joins, in any order"
        raise CompileError(text, node.args[2].pos)
    mapping: dict[int, Instr] = {}
    body = clone(backward(result, [*outside, *body]), mapping)
    return Block(params, body, mapping.get(result.id, result))


def _sum(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Scalar:
    source = x.vector(node.args[0])

    def body() -> Instr:
        element = x.element(source)
        if element.type == "f32":
            return x.emit("reduce", [element], "f64", fn="sum")
        return x.emit("reduce", [x.cast(element, "i32")], "i64", fn="sum")

    return Scalar(x.loop(x.size_of(source), body))


def _extreme(x: Expressions, node: ast.Call) -> Scalar:
    source = x.floats(x.vector(node.args[0]), node.args[0])
    return Scalar(
        x.loop(
            x.size_of(source), lambda: x.emit("reduce", [x.element(source)], "f32", fn=node.name)
        )
    )


def _bucket_extreme(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    source = x.floats(x.vector(node.args[0]), node.args[0])
    bucket = x.whole(node.args[1])
    if bucket.op != "param" or bucket.attrs["name"] not in x.signature.bucketable:
        raise CompileError(
            "a bucket must be an int parameter that is a multiple of 64, and 64 at least: declare "
            "it with a lower bound and multiple 64",
            node.args[1].pos,
        )
    domain = x.size_of(source)
    less = x.emit("sub", [bucket, x.const(1, "i64")], "i64")
    size = x.emit("div", [x.emit("add", [domain, less], "i64"), bucket], "i64")
    name = x.new_vector(hint, "f32", size)
    x.loop(
        domain,
        lambda: x.emit(
            "bucket_reduce", [bucket, x.element(source)], "none", [name], fn=node.name[-3:]
        ),
    )
    return Vec(name, FLOAT)


def _sort(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    source = _in_memory(x, node.args[0])
    name = x.new_vector(hint, "f32", x.size_of(source))
    x.emit("sort", [], "none", [name, source.name])
    return Vec(name, FLOAT)


def _quantile(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Scalar:
    """Return sort(v)[int(q * v.size)], at most the last element, and 0 of an empty vector."""
    ordered = _sort(x, ast.Call(node.pos, "sort", node.args[:1]), hint, elem_type)
    size = x.vectors[ordered.name].size
    share = x.cast(x.scalar(node.args[1]), "f32")
    at = x.emit("mul", [share, x.cast(size, "f32")], "f32")
    return Scalar(x.emit("element", [x.cast(at, "i64")], "f32", [ordered.name]))


def _topk(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    source = _in_memory(x, node.args[0])
    found = x.emit("topk", [x.whole(node.args[1])], "i64", ["", source.name])
    found.vec[0] = x.new_vector(hint, "i32", found)
    return Vec(found.vec[0], INT)


def _cosines(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    block = x.whole(node.args[1])
    known = block.op == "const" and block.attrs["value"] in TRANSFORMS
    if not known and (block.op != "param" or block.attrs["name"] not in x.signature.blocks):
        few = ", ".join(map(str, TRANSFORMS))
        text = f"a block must be one of {few}, or an int parameter with such choices"
        raise CompileError(text, node.args[1].pos)
    source = _in_memory(x, node.args[0])
    name = x.new_vector(hint, "f32", x.size_of(source))
    x.emit(node.name, [block], "none", [name, source.name])
    return Vec(name, FLOAT)


def _sample(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    source = x.floats(x.vector(node.args[0]), node.args[0])
    size, count = x.size_of(source), x.whole(node.args[1])
    return _gathered(x, source, _draw_indices(x, size, count, hint, RUN), hint)


def _random_indices(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    size, k = x.whole(node.args[0]), x.whole(node.args[1])
    return _draw_indices(x, size, k, hint, run=1)


def _draw_indices(x: Expressions, size: Instr, k: Instr, hint: str, run: int) -> Vec:
    found = x.emit("random_indices", [size, k], "i64", [""], site=x.sites, run=run)
    x.sites += 1
    found.vec[0] = x.new_vector(hint, "i32", found)
    return Vec(found.vec[0], INT)


def _gather(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    source = x.vector(node.args[0])
    x.anywhere(x.vectors[source.name], node)
    return _gathered(x, source, x.vector(node.args[1]), hint)


def _gathered(x: Expressions, source: Vec | Range, indices: Vec, hint: str) -> Vec:
    vector = x.vectors[source.name]
    kind = {"f32": "float", "u32": "uint32"}.get(vector.value_type, "int")
    type_ = source.type or ast.TypeName(kind, None, None)

    def load(index: Instr) -> Instr:
        at = x.cast(index, "i32")
        return x.emit("load_at", [at], vector.value_type, [source.name])

    return x.elementwise([indices], load, type_, hint, None)


def _scatter(x: Expressions, node: ast.Call, hint: str, elem_type: object) -> Vec:
    name = x.new_vector(hint, "f32", x.n)
    scatter(x, node, name)
    return Vec(name, FLOAT)


def scatter(x: Expressions, node: ast.Call, target: str) -> None:
    """Emit target = scatter(target, indices, values), or scatter(size, indices, values)."""
    expect_args(node, 3)
    base = node.args[0]
    in_place = isinstance(base, ast.Name) and base.name == target and target in x.signature.states
    if not in_place:
        source, output = x.expr(base), x.vectors[target].kind == "output"
        if output and not isinstance(source, Scalar):
            raise CompileError(f"expected {target}.size: what is not sent is 0", base.pos)
        if isinstance(source, Scalar):
            if x.cast(source.value, "i64") is not x.n:
                raise CompileError("what is scattered has the size of the gradient", base.pos)
            x.store_each(target, lambda: x.const(0.0, "f32"))
        else:
            x.check_size(source, x.n, base.pos)
            x.store_each(target, lambda: x.element(source))
    indices = x.vector(node.args[1])
    if x.vectors[indices.name].elem not in ("i32", "u32", "u16"):
        raise CompileError("indices must be int, uint32 or uint16", node.args[1].pos)
    values = x.expr(node.args[2])
    if isinstance(values, Scalar):
        value = x.cast(values.value, "f32")
        x.emit("scatter", [value], "none", [target, indices.name])
        return
    if not isinstance(values, Vec) or x.vectors[values.name].elem != "f32":
        raise CompileError("values must be a number or a vector of float", node.args[2].pos)
    x.check_size(values, x.size_of(indices), node.args[2].pos)
    x.emit("scatter", [], "none", [target, indices.name, values.name])


# Functions, and their numbers of arguments; 0: they check it themselves.
_SPECIAL = {
    "map": (_map, 0),
    "reduce": (_reduce, 3),
    "filter": (_filter, 2),
    "range": (_range, 1),
    "sum": (_sum, 1),
    "sort": (_sort, 1),
    "quantile": (_quantile, 2),
    "topk": (_topk, 2),
    "sample": (_sample, 2),
    "random_indices": (_random_indices, 2),
    "gather": (_gather, 2),
    "scatter": (_scatter, 0),
    "bucket_max": (_bucket_extreme, 2),
    "bucket_min": (_bucket_extreme, 2),
    "dct": (_cosines, 2),
    "idct": (_cosines, 2),
}
