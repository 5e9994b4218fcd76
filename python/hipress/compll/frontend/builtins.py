"""The built-in functions of the language: their arguments, checks and IR."""

from __future__ import annotations

from hipress.compll.errors import CompileError
from hipress.compll.frontend import ast, scope
from hipress.compll.frontend.scope import Closure, Range, Scalar, Vec
from hipress.compll.ir.ir import RUN, Block, Instr

_ELEMENTWISE = {"floor": 1, "ceil": 1, "abs": 1, "sqrt": 1, "isfinite": 1, "isnan": 1,
                "max": 2, "min": 2, "bits": 1, "from_bits": 1}  # fmt: skip
_SPECIAL = {
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
}


class Builtins:
    """Part of Lowerer: calls."""

    def call(self, node: ast.Call, hint: str, elem_type: ast.TypeName | None) -> object:
        name, count = node.name, len(node.args)
        if name in ("max", "min") and count == 1:
            return self.extreme(node)
        if name in _ELEMENTWISE:
            self.expect_args(node, _ELEMENTWISE[name])
            values = [self.expr(arg) for arg in node.args]
            return self.apply(
                values, lambda *args: self.pointwise(node, args), node.pos, hint, elem_type
            )
        if name in _SPECIAL:
            if self.lanes is not None:
                raise CompileError(f"{name} cannot be used inside a lambda", node.pos)
            return getattr(self, f"do_{name}")(node, hint, elem_type)
        function = self.env.get(name)
        if isinstance(function, Closure):
            values = [self.expr(arg) for arg in node.args]
            return self.apply(
                values,
                lambda *args: self.call_lambda(function, list(args), node.pos),
                node.pos,
                hint,
                elem_type or function.value.result,
            )
        if name == "concat":
            raise CompileError(f"concat(...) can only be assigned to {self.output}", node.pos)
        known = ", ".join(sorted([*_ELEMENTWISE, *_SPECIAL]))
        raise CompileError(f"there is no function {name}; known: {known}", node.pos)

    def expect_args(self, node: ast.Call, count: int) -> None:
        if len(node.args) != count:
            usage = _SPECIAL.get(node.name, f"{count} argument{'s' if count > 1 else ''}")
            raise CompileError(f"{node.name} takes {usage}, not {len(node.args)}", node.pos)

    def pointwise(self, node: ast.Call, args: tuple[Instr, ...]) -> Instr:
        name = node.name
        values = [self.uniform(arg) for arg in args]
        if name == "bits":
            return self.emit("bitcast", [self.cast(values[0], "f32")], "u32")
        if name == "from_bits":
            return self.emit("bitcast", [self.cast(values[0], "u32")], "f32")
        if name in ("max", "min"):
            condition = self.binary(">" if name == "max" else "<", *values, node.pos)
            return self.select(condition, *values)
        value = values[0]
        if name in ("isfinite", "isnan"):
            return self.emit(name, [self.cast(value, "f32")], "bool")
        if name in ("floor", "ceil", "sqrt") and value.type not in ("f32", "f64"):
            if name != "sqrt":
                return value
            value = self.cast(value, "f32")
        return self.emit(name, [value], value.type)

    def vector(self, node: ast.Node, ranges: bool = False) -> Vec | Range:
        """An argument that must be a vector (or, if `ranges`, may be a range)."""
        value = self.expr(node)
        if isinstance(value, Vec) or (ranges and isinstance(value, Range)):
            return value
        what = scope.WORDS.get(type(value), "something else")
        raise CompileError(f"expected a vector, but this is {what}", node.pos)

    def function(self, node: ast.Node) -> Closure:
        value = self.expr(node)
        if isinstance(value, Closure):
            return value
        what = scope.WORDS.get(type(value), "something else")
        raise CompileError(f"expected a function, but this is {what}", node.pos)

    def floats(self, value: Vec, node: ast.Node) -> Vec:
        if self.vectors[value.name].elem != "f32":
            raise CompileError("expected a vector of float", node.pos)
        return value

    def in_memory(self, node: ast.Node) -> Vec:
        """A vector of float that is looked at as a whole: of a gradient of any type, a copy."""
        value = self.floats(self.vector(node), node)
        if self.vectors[value.name].kind != "input":
            return value
        type_ = ast.TypeName("float", None, node.pos)
        return self.elementwise([value], lambda element: element, type_, "copy", node.pos)

    def whole(self, node: ast.Node) -> Instr:
        value = self.scalar(node)
        if value.type in ("f32", "f64", "bool"):
            raise CompileError("expected an int, but this is a float", node.pos)
        return self.cast(value, "i64")

    # Elementwise and reductions ------------------------------------------------------------------

    def do_range(self, node: ast.Call, hint: str, elem_type: object) -> Range:
        self.expect_args(node, 1)
        return Range(self.whole(node.args[0]))

    def do_map(self, node: ast.Call, hint: str, elem_type: ast.TypeName | None) -> Vec:
        if len(node.args) < 2:
            raise CompileError("map takes map(vector or range, ..., function)", node.pos)
        sources = [self.vector(arg, ranges=True) for arg in node.args[:-1]]
        function = self.function(node.args[-1])
        return self.elementwise(
            sources,
            lambda *args: self.call_lambda(function, list(args), node.pos),
            function.value.result,
            hint,
            node.pos,
        )

    def do_filter(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        self.expect_args(node, 2)
        source = self.vector(node.args[0], ranges=True)
        function = self.function(node.args[1])
        mask = self.elementwise(
            [source],
            lambda value: self.call_lambda(function, [value], node.pos),
            ast.TypeName("bool", None, node.pos),
            f"{hint}_mask",
            node.pos,
        )
        found = self.emit("compact", [], "i64", ["", mask.name])
        index = self.new_vector(hint if isinstance(source, Range) else f"{hint}_at", "i32", found)
        found.vec[0] = index
        indices = Vec(index, ast.TypeName("int", None, node.pos))
        return indices if isinstance(source, Range) else self.gathered(source, indices, hint)

    def do_reduce(self, node: ast.Call, hint: str, elem_type: object) -> Scalar:
        self.expect_args(node, 3)
        source = self.vector(node.args[0])
        start = self.scalar(node.args[1])
        function = self.function(node.args[2])
        formals = function.value.formals
        if len(formals) != 2:
            raise CompileError("reduce needs a function of two values", node.args[2].pos)
        type_ = self.vectors[source.name].value_type
        start = self.cast(start, type_)
        loop = self.loop(self.size_of(source))
        element = self.element(source)
        combiner = self.combiner(function, type_, node)
        result = self.emit("reduce", [element, start], type_, fn=combiner)
        self.close(loop)
        return Scalar(self.cast(result, "i64") if type_ == "i32" else result)

    def combiner(self, function: Closure, type_: str, node: ast.Call) -> Block:
        """A lambda of two values as a block of its own; it may use constants only."""
        lanes, self.lanes = self.lanes, []
        env, self.env = self.env, {}
        params = [Instr("arg", [], type_, attrs={"number": number}) for number in (0, 1)]
        result = self.cast(self.call_lambda(function, params, node.pos), type_)
        block = Block(params, self.lanes, result)
        self.lanes, self.env = lanes, env
        return block

    def do_sum(self, node: ast.Call, hint: str, elem_type: object) -> Scalar:
        self.expect_args(node, 1)
        source = self.vector(node.args[0])
        loop = self.loop(self.size_of(source))
        element = self.element(source)
        if element.type != "f32":
            element = self.cast(element, "i32")
        result = self.emit("reduce", [element], "f64" if element.type == "f32" else "i64", fn="sum")
        self.close(loop)
        return Scalar(result)

    def extreme(self, node: ast.Call) -> Scalar:
        source = self.floats(self.vector(node.args[0]), node.args[0])
        loop = self.loop(self.size_of(source))
        result = self.emit("reduce", [self.element(source)], "f32", fn=node.name)
        self.close(loop)
        return Scalar(result)

    def do_bucket_max(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        self.expect_args(node, 2)
        source = self.floats(self.vector(node.args[0]), node.args[0])
        bucket = self.whole(node.args[1])
        if bucket.op != "param" or bucket.attrs["name"] not in self.bucketable:
            raise CompileError(
                "a bucket must be an int parameter that is a multiple of 64", node.args[1].pos
            )
        domain = self.size_of(source)
        more = self.emit("add", [domain, self.emit("sub", [bucket, self.const(1, "i64")], "i64")],
                         "i64")  # fmt: skip
        size = self.emit("div", [more, bucket], "i64")
        name = self.new_vector(hint, "f32", size)
        loop = self.loop(domain)
        element = self.element(source)
        self.emit("bucket_reduce", [bucket, element], "none", [name], fn=node.name[-3:])
        self.close(loop)
        return Vec(name, ast.TypeName("float", None, node.pos))

    do_bucket_min = do_bucket_max

    # Sparse ----------------------------------------------------------------------

    def do_sort(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        self.expect_args(node, 1)
        source = self.in_memory(node.args[0])
        name = self.new_vector(hint, "f32", self.size_of(source))
        self.emit("sort", [], "none", [name, source.name])
        return Vec(name, ast.TypeName("float", None, node.pos))

    def do_quantile(self, node: ast.Call, hint: str, elem_type: object) -> Scalar:
        """sort(v)[int(q * v.size)], the last element at most, 0 of an empty vector."""
        self.expect_args(node, 2)
        ordered = self.do_sort(ast.Call(node.pos, "sort", node.args[:1]), hint, elem_type)
        size = self.vectors[ordered.name].size
        share = self.cast(self.scalar(node.args[1]), "f32")
        at = self.emit("mul", [share, self.cast(size, "f32")], "f32")
        return Scalar(self.emit("element", [self.cast(at, "i64")], "f32", [ordered.name]))

    def do_topk(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        self.expect_args(node, 2)
        source = self.in_memory(node.args[0])
        found = self.emit("topk", [self.whole(node.args[1])], "i64", ["", source.name])
        found.vec[0] = self.new_vector(hint, "i32", found)
        return Vec(found.vec[0], ast.TypeName("int", None, node.pos))

    def do_sample(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        self.expect_args(node, 2)
        source = self.floats(self.vector(node.args[0]), node.args[0])
        size, count = self.size_of(source), self.whole(node.args[1])
        return self.gathered(source, self.random_indices(node, size, count, hint, RUN), hint)

    def do_random_indices(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        self.expect_args(node, 2)
        size, k = self.whole(node.args[0]), self.whole(node.args[1])
        return self.random_indices(node, size, k, hint, run=1)

    def random_indices(self, node: ast.Call, size: Instr, k: Instr, hint: str, run: int) -> Vec:
        found = self.emit("random_indices", [size, k], "i64", [""], site=self.sites, run=run)
        self.sites += 1
        found.vec[0] = self.new_vector(hint, "i32", found)
        return Vec(found.vec[0], ast.TypeName("int", None, node.pos))

    def do_gather(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        self.expect_args(node, 2)
        source = self.vector(node.args[0])
        self.anywhere(self.vectors[source.name], node)
        return self.gathered(source, self.vector(node.args[1]), hint)

    def gathered(self, source: Vec | Range, indices: Vec, hint: str) -> Vec:
        vector = self.vectors[source.name]
        kind = {"f32": "float", "u32": "uint32"}.get(vector.value_type, "int")
        type_ = source.type or ast.TypeName(kind, None, None)

        def load(index: Instr) -> Instr:
            at = self.cast(index, "i32")
            return self.emit("load_at", [at], vector.value_type, [source.name])

        return self.elementwise([indices], load, type_, hint, None)

    def do_scatter(self, node: ast.Call, hint: str, elem_type: object) -> Vec:
        raise CompileError("scatter can only be assigned to a state or to the output", node.pos)

    def scatter(self, node: ast.Call, target: str) -> None:
        """target = scatter(target, indices, values), or scatter(size, indices, values)."""
        self.expect_args(node, 3)
        base = node.args[0]
        in_place = isinstance(base, ast.Name) and base.name == target and target in self.states
        if not in_place:
            source = self.expr(base)
            if self.kind == "decode" and not isinstance(source, Scalar):
                raise CompileError(f"expected {target}.size: what is not sent is 0", base.pos)
            if isinstance(source, Scalar):
                if self.cast(source.value, "i64") is not self.n:
                    raise CompileError(f"{target} has the size of the gradient", base.pos)
                loop = self.loop(self.n)
                self.emit("store", [self.const(0.0, "f32")], vec=[target])
                self.close(loop)
            else:
                self.copy_into(target, source)
        indices = self.vector(node.args[1])
        if self.vectors[indices.name].value_type not in ("i32", "u32"):
            raise CompileError("indices must be int or uint32", node.args[1].pos)
        values = self.expr(node.args[2])
        if isinstance(values, Scalar):
            value = self.cast(values.value, "f32")
            self.emit("scatter", [value], "none", [target, indices.name])
            return
        if not isinstance(values, Vec) or self.vectors[values.name].elem != "f32":
            raise CompileError("values must be a number or a vector of float", node.args[2].pos)
        self.check_size(values, self.size_of(indices), node.args[2].pos)
        self.emit("scatter", [], "none", [target, indices.name, values.name])
