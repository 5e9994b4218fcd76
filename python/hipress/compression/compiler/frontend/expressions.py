"""Syntax tree to IR: expressions, lambdas and their application to each element."""

from __future__ import annotations

from collections.abc import Callable

from hipress.compression.compiler.errors import CompileError, Pos
from hipress.compression.compiler.frontend import ast, scope
from hipress.compression.compiler.frontend.emitter import Emitter
from hipress.compression.compiler.frontend.scope import Closure, Output, Range, Scalar, Unset, Vec
from hipress.compression.compiler.ir.indices import counts_buckets
from hipress.compression.compiler.ir.ir import Instr, Vector

_BINARY = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "%": "mod",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "shl",
    ">>": "shr",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
    "&&": "and",
    "||": "or",
}
_ORDER = ("bool", "i32", "u32", "i64", "f32", "f64")


class Expressions(Emitter):
    """Evaluates expressions into a function's IR.

    :param call: evaluates a call: (these expressions, node, hint, elem_type) to a value
    :param statement: executes a statement of a lambda
    :ivar env: values of names, see scope.py
    :ivar inside: their values outside of the inlined lambda, if any
    """

    def __init__(self, signature: scope.Signature, call: Callable, statement: Callable) -> None:
        super().__init__(signature)
        self.call, self.statement = call, statement
        self.env = scope.Names()
        self.inside: scope.Names | None = None

    def scalar(self, node: ast.Node) -> Instr:
        """Return an expression that must be a number."""
        result = self.expr(node)
        if isinstance(result, Scalar):
            return self.uniform(result.value)
        what = scope.WORDS.get(type(result), "not a number")
        raise CompileError(f"expected a number, but this is {what}", node.pos)

    def boolean(self, node: ast.Node) -> Instr:
        """Return an expression that must be a number, as a condition."""
        return self.truth(self.scalar(node))

    def expr(
        self, node: ast.Node, hint: str = "t", elem_type: ast.TypeName | None = None
    ) -> Scalar | Vec | Range | Closure:
        """Evaluate an expression.

        :param hint: name for a vector that comes of it
        :param elem_type: written type of such a vector's elements, if there is one
        """
        if isinstance(node, ast.Number):
            whole = "i64" if self.lanes is None else "i32"
            is_int = isinstance(node.value, int)
            return Scalar(self.const(node.value, whole if is_int else "f32"))
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.Lambda):
            return Closure(node, scope.Names(self.env))
        if isinstance(node, ast.Call):
            return self.call(self, node, hint, elem_type)
        if isinstance(node, ast.Member):
            return self.member(node)
        if isinstance(node, ast.Index):
            return self.index(node)
        if isinstance(node, ast.Random):
            return self.random(node)
        if isinstance(node, ast.Unary):
            operands, function = [node.value], lambda x: self.unary(node, x)
        elif isinstance(node, ast.Binary):
            operands = [node.left, node.right]
            function = lambda x, y: self.binary(node.op, x, y, node.pos)  # noqa: E731
        elif isinstance(node, ast.Ternary):
            operands = [node.condition, node.yes, node.no]
            function = lambda c, x, y: self.select(self.truth(c), x, y)  # noqa: E731
        elif isinstance(node, ast.Cast):
            operands = [node.value]
            function = lambda x: self.convert(x, node.type, node.pos)  # noqa: E731
            elem_type = node.type
        else:
            raise CompileError("a text is not a value here", node.pos)
        return self.apply(
            [self.expr(operand) for operand in operands], function, node.pos, hint, elem_type
        )

    def truth(self, value: Instr) -> Instr:
        if value.type == "bool":
            return value
        return self.emit("ne", [value, self.const(0, value.type)], "bool")

    def name(self, node: ast.Name) -> Scalar | Vec | Closure:
        if node.name in ("inf", "nan") and node.name not in self.env:
            return Scalar(self.const(float(node.name), "f32"))
        if node.name == "step" and node.name not in self.env:
            return Scalar(self.uniform(self.step))
        value = self.env.get(node.name)
        if value is None:
            known = ", ".join(self.env.known())
            raise CompileError(f"{node.name} is not declared; known here: {known}", node.pos)
        if isinstance(value, (Unset, Output)):
            raise CompileError(f"{node.name} has no value yet", node.pos)
        if isinstance(value, Scalar):
            return Scalar(self.uniform(value.value), value.type)
        return value

    def member(self, node: ast.Member) -> Scalar:
        if node.name != "size":
            raise CompileError(f"a vector has .size, not .{node.name}", node.pos)
        if isinstance(node.base, ast.Name) and isinstance(self.env.get(node.base.name), Output):
            return Scalar(self.uniform(self.n))
        base = self.expr(node.base)
        if isinstance(base, Vec):
            return Scalar(self.uniform(self.vectors[base.name].size))
        if isinstance(base, Range):
            return Scalar(self.uniform(base.size))
        raise CompileError("only vectors have .size", node.pos)

    def index(self, node: ast.Index) -> Scalar:
        base = self.expr(node.base)
        if not isinstance(base, Vec):
            raise CompileError("only vectors can be indexed", node.pos)
        vector = self.vectors[base.name]
        at = self.scalar(node.index)
        if at.type in ("f32", "f64", "bool"):
            raise CompileError("an index must be an int", node.index.pos)
        if self.lanes is None:
            return Scalar(self.element_at(base, self.cast(at, "i64"), node))
        if at.op == "index" and vector.size is self.domain:
            return Scalar(self.emit("load", [], vector.value_type, [base.name]))
        self.anywhere(vector, node)
        bucket = self.bucket_of(at)
        if bucket is not None and counts_buckets(vector.size, self.domain, bucket):
            return Scalar(self.emit("bucket_load", [bucket], vector.value_type, [base.name]))
        index = self.cast(at, "i32")
        return Scalar(self.emit("load_at", [index], vector.value_type, [base.name]))

    def element_at(self, base: Vec, at: Instr, node: ast.Index) -> Instr:
        """Return one element of a vector, outside of loops."""
        vector = self.vectors[base.name]
        if vector.packed:
            raise CompileError(
                "an element of a vector of uint<N> can be read in a lambda only", node.pos
            )
        if vector.elem in ("f16", "bf16"):
            raise CompileError(
                "of a vector of elements of 16 bits a lambda reads its own element only: copy it "
                "to float* first, with map",
                node.pos,
            )
        if vector.kind == "input":  # of any type: a loop of one element converts it
            last = self.emit("sub", [self.n, self.const(1, "i64")], "i64")
            at = self.select(self.emit("lt", [at, last], "bool"), at, last)
            one = Range(self.const(1, "i64"))

            def load(_: Instr) -> Instr:
                index = self.cast(at, "i32")
                return self.emit("load_at", [index], "f32", [base.name])

            base = self.elementwise([one], load, scope.FLOAT, "element", node.pos)
            at = self.const(0, "i64")
        value_type = "i64" if vector.value_type == "i32" else vector.value_type
        return self.emit("element", [at], value_type, [base.name])

    def anywhere(self, vector: Vector, node: ast.Expr) -> None:
        """Refuse reads of other elements than the lambda's own in a vector of narrow ones."""
        if vector.elem not in ("f32", "i32", "u32"):
            raise CompileError(
                "of a vector of elements of 16 bits or less a lambda reads its own element only: "
                "copy it to float* or int* first, with map",
                node.pos,
            )

    def bucket_of(self, at: Instr) -> Instr | None:
        """Return the parameter b of an index i / b whose values are multiples of 64, otherwise
        None."""
        if at.op != "div" or at.args[0].op != "index" or at.args[1].op != "cast":
            return None
        param = at.args[1].args[0]
        if param.op == "param" and param.attrs["name"] in self.signature.bucketable:
            return param
        return None

    def random(self, node: ast.Random) -> Scalar:
        base = node.type.base
        if (base, len(node.args)) not in (("float", 2), ("uint16", 0)):
            raise CompileError(
                "random numbers are random<float>(low, high) and random<uint16>()", node.type.pos
            )
        if self.lanes is None:
            raise CompileError(f"random<{base}> is for lambdas: one for each element", node.pos)
        site, self.sites = self.sites, self.sites + 1
        if base == "uint16":
            return Scalar(self.emit("random16", [], "i32", site=site), node.type)
        word = self.emit("random", [], "u32", site=site)
        shifted = self.emit("shr", [word, self.const(8, "u32")], "u32")
        unit = self.emit(
            "mul", [self.emit("cast", [shifted], "f32"), self.const(2.0**-24, "f32")], "f32"
        )
        low, high = (self.cast(self.scalar(bound), "f32") for bound in node.args)
        if [bound.attrs.get("value") for bound in (low, high)] == [0.0, 1.0]:
            return Scalar(unit)
        span = self.emit("sub", [high, low], "f32")
        scaled = self.emit("mul", [span, unit], "f32")
        return Scalar(self.emit("add", [low, scaled], "f32"))

    def unary(self, node: ast.Unary, value: Instr) -> Instr:
        if node.op == "+":
            return value
        if node.op == "!":
            return self.emit("not", [self.truth(value)], "bool")
        if value.type == "bool":
            value = self.cast(value, "i32" if self.lanes is not None else "i64")
        return self.emit("neg", [value], value.type)

    def binary(self, op: str, left: Instr, right: Instr, pos: Pos) -> Instr:
        left, right = self.uniform(left), self.uniform(right)
        if op in ("&&", "||"):
            return self.emit(_BINARY[op], [self.truth(left), self.truth(right)], "bool")
        type_ = max(left.type, right.type, key=_ORDER.index)
        if op in ("&", "|", "^", "<<", ">>", "%") and type_ in ("f32", "f64"):
            raise CompileError(f"{op} needs integers, not float", pos)
        if type_ == "bool":
            type_ = "i32" if self.lanes is not None else "i64"
        left, right = self.cast(left, type_), self.cast(right, type_)
        compare = op in ("<", "<=", ">", ">=", "==", "!=")
        return self.emit(_BINARY[op], [left, right], "bool" if compare else type_)

    def select(self, condition: Instr, yes: Instr, no: Instr) -> Instr:
        yes, no = self.uniform(yes), self.uniform(no)
        type_ = max(yes.type, no.type, key=_ORDER.index)
        return self.emit("select", [condition, self.cast(yes, type_), self.cast(no, type_)], type_)

    def apply(
        self, values: list, function, pos: Pos, hint: str, elem_type: ast.TypeName | None
    ) -> Scalar | Vec:
        """Return function(values), for each element if one of the values is a vector."""
        for value in values:
            if isinstance(value, Closure):
                raise CompileError("a function is not a number; call it", pos)
        if all(isinstance(value, Scalar) for value in values):
            return Scalar(function(*(self.uniform(value.value) for value in values)))
        return self.elementwise(values, function, elem_type, hint, pos)

    def elementwise(
        self, values: list, function, type_: ast.TypeName | None, hint: str, pos: Pos
    ) -> Vec:
        """Return a new vector: function of the values' elements, which must be of one size."""
        sources = [value for value in values if not isinstance(value, Scalar)]
        domain = self.size_of(sources[0])
        for source in sources[1:]:
            self.check_size(source, domain, pos)

        def body() -> tuple[str, ast.TypeName]:
            result = function(
                *(
                    self.uniform(value.value) if isinstance(value, Scalar) else self.element(value)
                    for value in values
                )
            )
            base = {"f32": "float", "i32": "int", "u32": "uint32", "bool": "bool"}[result.type]
            written = type_ or ast.TypeName(base, None, pos)
            result = self.convert(result, written, pos)
            name = self.new_vector(hint, scope.storage(written), domain)
            if result.type == "bool":
                result = self.cast(result, "i32")
            self.emit("store", [result], vec=[name])
            return name, written

        return Vec(*self.loop(domain, body))

    def size_of(self, value: Vec | Range) -> Instr:
        return value.size if isinstance(value, Range) else self.vectors[value.name].size

    def check_size(self, value: Vec | Range, domain: Instr, pos: Pos) -> None:
        if self.size_of(value) is not domain:
            raise CompileError("these vectors are not known to have the same size", pos)

    def element(self, value: Vec | Range) -> Instr:
        """Return element i of a vector, in an open loop."""
        if isinstance(value, Range):
            return self.emit("index", [], "i32")
        vector = self.vectors[value.name]
        loaded = self.emit("load", [], vector.value_type, [value.name])
        if vector.elem == "u<1>" and value.type is not None and value.type.base == "bool":
            return self.emit("ne", [loaded, self.const(0, "i32")], "bool")
        return loaded

    def call_lambda(self, closure: Closure, args: list[Instr], pos: Pos) -> Instr:
        """Inline a lambda."""
        value = closure.value
        if len(args) != len(value.formals):
            raise CompileError(
                f"this function takes {len(value.formals)} values, but gets {len(args)}", pos
            )
        saved = self.env, self.inside
        self.env, self.inside = scope.Names(closure.env), closure.env
        for formal, arg in zip(value.formals, args):
            if arg.op != "index" or formal.type.base != "int":
                arg = self.convert(arg, formal.type, formal.pos)
            self.env.declare(formal.name, Scalar(arg, formal.type))
        result = self.lambda_body(value.body)
        self.env, self.inside = saved
        if result is None:
            raise CompileError("this function does not return on every path", value.pos)
        return self.convert(result, value.result, value.pos)

    def lambda_body(self, body: tuple[ast.Node, ...], *rest: tuple) -> Instr | None:
        """Return the value of the return that a list of statements reaches, or None.

        :param rest: (statements, names) of the blocks around it that follow, inner ones first
        """
        for number, node in enumerate(body):
            if isinstance(node, ast.Return):
                return self.scalar(node.value)
            if isinstance(node, ast.If) and self.returns(node):
                condition = self.boolean(node.condition)
                after = ((body[number + 1 :], self.env), *rest)
                yes, no = (self.branch(part, after) for part in (node.yes, node.no))
                if yes is None or no is None:
                    return None
                return self.select(condition, yes, no)
            if isinstance(node, (ast.Call, ast.LambdaDef)):
                raise CompileError("only numbers, if and return can be used in a lambda", node.pos)
            self.statement(node)
        if not rest:
            return None
        (body, env), *rest = rest
        self.env = scope.Names(env)
        return self.lambda_body(body, *rest)

    def branch(self, body: tuple[ast.Node, ...], rest: tuple) -> Instr | None:
        """Evaluate one side of an if as lambda_body() does, and restore the names afterwards."""
        outer = self.env
        before = [env.state() for _, env in rest]
        self.env = scope.Names(outer)
        value = self.lambda_body(body, *rest)
        self.env = outer
        for state in before:
            scope.restore(state)
        return value

    def returns(self, node: ast.Node) -> bool:
        """Return whether a statement contains a return."""
        if isinstance(node, ast.If):
            return any(self.returns(part) for part in node.yes + node.no)
        return isinstance(node, ast.Return)

    def store_each(self, name: str, element: Callable[[], Instr]) -> None:
        """Assign every element of a vector of the gradient's size."""
        self.loop(self.n, lambda: self.emit("store", [self.cast(element(), "f32")], vec=[name]))

    # Arguments of calls ----------------------------------------------------------------------

    def vector(self, node: ast.Node, ranges: bool = False) -> Vec | Range:
        """Return an argument that must be a vector (or, if `ranges`, may be a range)."""
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

    def whole(self, node: ast.Node) -> Instr:
        value = self.scalar(node)
        if value.type in ("f32", "f64", "bool"):
            raise CompileError("expected an int, but this is a float", node.pos)
        return self.cast(value, "i64")
