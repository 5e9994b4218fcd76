"""Syntax tree to IR, with all type checks: statements and expressions."""

from __future__ import annotations

from hipress.compll.frontend import ast, scope
from hipress.compll.frontend.builtins import Builtins
from hipress.compll.frontend.errors import CompileError, Pos
from hipress.compll.frontend.scope import Closure, Output, Range, Scalar, Unset, Vec
from hipress.compll.ir.ir import Function, Instr, Loop, Vector

_BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "&": "and", "|": "or", "^": "xor",
    "<<": "shl", ">>": "shr", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
    "&&": "and", "||": "or",
}  # fmt: skip
_ORDER = ("bool", "i32", "u32", "i64", "f32", "f64")


class Lowerer(Builtins):
    """Lowers one function.

    :param function: the syntax
    :param kind: "encode" or "decode"
    :param params: types of the algorithm's parameters by name
    :param states: names of its states
    """

    def __init__(
        self,
        function: ast.Function,
        kind: str,
        params: dict[str, ast.TypeName],
        states: list[str],
        bucketable: set[str],
    ) -> None:
        self.syntax, self.kind, self.bucketable = function, kind, bucketable
        self.body: list = []
        self.lanes: list[Instr] | None = None
        self.scalars: dict[tuple, Instr] = {}
        self.vectors: dict[str, Vector] = {}
        self.sites = 0
        self.finished = False
        self.depth = 0
        source, target = function.formals[0].name, function.formals[1].name
        self.input, self.output = source, target
        self.n = self.emit("n", [], "i64")
        self.step = self.emit("step", [], "i64")
        self.env: dict[str, object] = {}
        for name, type_ in params.items():
            ir_type = "f32" if type_.base == "float" else "i64"
            self.env[name] = Scalar(self.emit("param", [], ir_type, name=name), type_)
        self.params = set(params)
        self.states = states
        if kind == "encode":
            self.vectors[source] = Vector(source, "f32", self.n, "input")
            self.env[source] = Vec(source)
        else:
            self.vectors[target] = Vector(target, "f32", self.n, "output")
            self.env[source] = None
        self.env[target] = Output()
        for name in states if kind == "encode" else ():
            self.vectors[name] = Vector(name, "f32", self.n, "state")
            self.env[name] = Vec(name)

    def run(self) -> Function:
        """The function's IR.

        :raises CompileError: for an error of the user's
        """
        for statement in self.syntax.body:
            self.statement(statement)
        if not self.finished:
            raise CompileError(
                f"{self.syntax.name} must assign {self.output}"
                + (" = concat(...)" if self.kind == "encode" else ""),
                self.syntax.pos,
            )
        return Function(
            self.syntax.name, self.kind, self.body, self.vectors, self.input, self.output
        )

    # Emission ----------------------------------------------------------------------

    def emit(
        self, op: str, args: list[Instr], type_: str = "none", vec: list[str] | None = None, **attrs
    ) -> Instr:
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
        return self.emit("const", [], type_, value=value)

    def uniform(self, value: Instr) -> Instr:
        """A scalar as loops can use it: i64 becomes i32, f64 becomes f32."""
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
        value = self.uniform(value)
        if value.type == type_:
            return value
        if value.op == "const" and type_ != "bool":
            number = value.attrs["value"]
            return self.const(float(number) if type_[0] == "f" else int(number), type_)
        return self.emit("cast", [value], type_)

    def convert(self, value: Instr, type_: ast.TypeName, pos: Pos) -> Instr:
        """A value as a variable of a written type holds it."""
        value = self.uniform(value)
        lane = self.lanes is not None
        if type_.base == "double" and lane:
            raise CompileError("double is for numbers outside of map and filter; use float", pos)
        if type_.base in scope.FLOATS:
            return self.cast(value, "f64" if type_.base == "double" else "f32")
        if type_.base == "bool":
            if value.type == "bool":
                return value
            return self.emit("ne", [value, self.const(0, value.type)], "bool")
        if type_.base == "uint32":
            return self.cast(value, "u32")
        whole = "i32" if lane else "i64"
        if type_.base == "int":
            return self.cast(value, whole)
        scope.storage(type_)
        bits = {"uint8": 8, "uint16": 16}.get(type_.base, type_.bits)
        if isinstance(bits, str) and bits not in self.params:
            raise CompileError(f"uint<{bits}>: {bits} must be a parameter or a number", type_.pos)
        if value.type in ("f32", "f64"):
            return self.emit("saturate", [self.cast(value, "f32")], whole, bits=bits)
        if value.type == "bool":
            return self.cast(value, whole)
        return self.emit("wrap", [self.cast(value, whole)], whole, bits=bits)

    def loop(self, domain: Instr) -> Loop:
        """Opens a loop: what is emitted from now on, up to close(), goes into it."""
        if self.lanes is not None:
            raise CompileError("map, reduce and filter cannot be used inside a lambda", None)
        self.lanes = []
        return Loop(domain, self.lanes)

    def close(self, loop: Loop) -> None:
        self.lanes = None
        self.body.append(loop)

    def new_vector(self, hint: str, elem: str, size: Instr, kind: str = "temp") -> str:
        name, number = hint, 1
        while name in self.vectors:
            name, number = f"{hint}_{number}", number + 1
        self.vectors[name] = Vector(name, elem, size, kind)
        return name

    # Statements ----------------------------------------------------------------------

    def statement(self, node: ast.Node) -> None:
        if isinstance(node, ast.LambdaDef):
            self.env[node.name] = Closure(node.value)
        elif isinstance(node, ast.Declare):
            self.declare(node)
        elif isinstance(node, ast.Assign):
            self.assign(node)
        elif isinstance(node, ast.If):
            self.if_(node)
        elif isinstance(node, ast.Call):
            self.call_statement(node)
        elif isinstance(node, ast.Return):
            raise CompileError(
                f"return is for lambdas; {self.syntax.name} assigns {self.output}", node.pos
            )
        else:
            raise CompileError("this is not a statement", node.pos)

    def declare(self, node: ast.Declare) -> None:
        if node.name in self.params or node.name in self.states:
            raise CompileError(f"{node.name} is a parameter or a state already", node.pos)
        if node.value is None:
            self.env[node.name] = Unset(node)
        elif node.vector:
            self.env[node.name] = self.to_vector(node.value, node.type, node.name)
        else:
            value = self.scalar(node.value)
            self.env[node.name] = Scalar(self.convert(value, node.type, node.value.pos), node.type)

    def to_vector(self, value: ast.Node, type_: ast.TypeName, hint: str) -> Vec:
        """Evaluates a vector expression into a variable of a written type."""
        elem = scope.storage(type_)
        result = self.expr(value, hint=hint, elem_type=type_)
        if isinstance(result, Scalar):
            raise CompileError(
                f"{scope.spelled(type_)}* needs a vector, but this is a number", value.pos
            )
        if isinstance(result, Closure):
            raise CompileError("this is a function; call map with it", value.pos)
        if isinstance(result, Vec) and self.vectors[result.name].kind == "temp":
            if self.vectors[result.name].elem == elem:
                return Vec(result.name, type_)
        return self.elementwise([result], lambda x: x, type_, hint, value.pos)

    def assign(self, node: ast.Assign) -> None:
        old = self.env.get(node.name, self)
        if old is self:
            raise CompileError(
                f"{node.name} is not declared; write its type first, "
                f"as in float {node.name} = ...",
                node.pos,
            )
        if node.name in self.params:
            raise CompileError(f"{node.name} is a parameter and cannot be assigned", node.pos)
        if isinstance(old, Output):
            self.assign_output(node)
        elif isinstance(old, Vec):
            self.assign_vector(node, old)
        elif isinstance(old, (Scalar, Unset)):
            type_ = old.type if isinstance(old, Scalar) else old.declaration.type
            if isinstance(old, Unset) and old.declaration.vector:
                self.env[node.name] = self.to_vector(node.value, type_, node.name)
            else:
                value = self.convert(self.scalar(node.value), type_, node.value.pos)
                self.env[node.name] = Scalar(value, type_)
        else:
            raise CompileError(f"{node.name} cannot be assigned", node.pos)

    def assign_output(self, node: ast.Assign) -> None:
        if self.finished:
            raise CompileError(f"{node.name} is assigned twice", node.pos)
        if self.depth:
            raise CompileError(f"{node.name} must not be assigned inside an if", node.pos)
        if self.kind == "encode":
            if not (isinstance(node.value, ast.Call) and node.value.name == "concat"):
                raise CompileError(
                    f"expected concat(...): {node.name} is made of fields", node.value.pos
                )
            self.concat(node.value)
        else:
            self.store_into(node.name, node.value)
        self.finished = True

    def assign_vector(self, node: ast.Assign, old: Vec) -> None:
        if node.name == self.input:
            raise CompileError(f"{node.name} is the input and cannot be assigned", node.pos)
        if node.name in self.states and not self.depth:
            self.store_into(node.name, node.value)
            return
        type_ = old.type or ast.TypeName("float", None, node.pos)
        self.env[node.name] = self.to_vector(node.value, type_, node.name)

    def store_into(self, name: str, value: ast.Node) -> None:
        """name = value, for a vector that lives in memory: a state or the output."""
        if isinstance(value, ast.Call) and value.name == "scatter":
            self.scatter(value, name)
            return
        result = self.expr(value, hint=name)
        if not isinstance(result, (Vec, Range)):
            raise CompileError(f"{name} needs a vector, but this is a number", value.pos)
        self.check_size(result, self.n, value.pos)
        self.copy_into(name, result)

    def copy_into(self, name: str, source: Vec | Range) -> None:
        loop = self.loop(self.n)
        element = self.cast(self.element(source), "f32")
        self.emit("store", [element], vec=[name])
        self.close(loop)

    def if_(self, node: ast.If) -> None:
        condition = self.boolean(node.condition)
        before = dict(self.env)
        self.depth += 1
        for statement in node.yes:
            self.statement(statement)
        yes, self.env = self.env, dict(before)
        for statement in node.no:
            self.statement(statement)
        no, self.env = self.env, before
        self.depth -= 1
        for name, old in list(before.items()):
            if yes[name] is old and no[name] is old:
                continue
            if name in self.states:
                merged = self.merge(condition, yes[name], no[name], node.pos, name)
                self.copy_into(name, merged)
            else:
                self.env[name] = self.merge(condition, yes[name], no[name], node.pos, name)

    def merge(
        self, condition: Instr, yes: object, no: object, pos: Pos, name: str
    ) -> Scalar | Vec:
        """What a variable is after an if whose branches leave `yes` and `no` in it."""
        if isinstance(yes, Scalar) and isinstance(no, Scalar):
            value = self.select(condition, yes.value, no.value)
            return Scalar(value, yes.type)
        if isinstance(yes, Vec) and isinstance(no, Vec):
            type_ = yes.type or no.type or ast.TypeName("float", None, pos)
            return self.elementwise(
                [yes, no], lambda a, b: self.select(condition, a, b), type_, name, pos
            )
        raise CompileError(f"{name} must have a value after both branches of this if", pos)

    # Expressions ----------------------------------------------------------------------

    def scalar(self, node: ast.Node) -> Instr:
        """An expression that must be a number."""
        result = self.expr(node)
        if isinstance(result, Scalar):
            return self.uniform(result.value)
        what = scope.WORDS.get(type(result), "not a number")
        raise CompileError(f"expected a number, but this is {what}", node.pos)

    def boolean(self, node: ast.Node) -> Instr:
        value = self.scalar(node)
        if value.type == "bool":
            return value
        return self.emit("ne", [value, self.const(0, value.type)], "bool")

    def expr(
        self, node: ast.Node, hint: str = "t", elem_type: ast.TypeName | None = None
    ) -> Scalar | Vec | Range | Closure:
        """Evaluates an expression.

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
            return Closure(node)
        if isinstance(node, ast.Call):
            return self.call(node, hint, elem_type)
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
        return self.apply([self.expr(operand) for operand in operands], function, node.pos, hint,
                          elem_type)

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
            known = ", ".join(sorted(key for key, item in self.env.items() if item is not None))
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
            value_type = "i64" if vector.value_type == "i32" else vector.value_type
            return Scalar(self.emit("element", [self.cast(at, "i64")], value_type, [base.name]))
        if at.op == "index":
            return Scalar(self.emit("load", [], vector.value_type, [base.name]))
        bucket = self.bucket_of(at)
        if bucket is not None:
            return Scalar(self.emit("bucket_load", [bucket], vector.value_type, [base.name]))
        index = self.cast(at, "i32")
        return Scalar(self.emit("load_at", [index], vector.value_type, [base.name]))

    def bucket_of(self, at: Instr) -> Instr | None:
        """The parameter b of an index i / b whose values are multiples of 64, else None."""
        if at.op != "div" or at.args[0].op != "index" or at.args[1].op != "cast":
            return None
        param = at.args[1].args[0]
        if param.op == "param" and param.attrs["name"] in self.bucketable:
            return param
        return None

    def random(self, node: ast.Random) -> Scalar:
        if node.type.base != "float":
            raise CompileError("random numbers are random<float>(low, high)", node.type.pos)
        if self.lanes is None:
            raise CompileError("random<float> is for lambdas: one for each element", node.pos)
        word = self.emit("random", [], "u32", site=self.sites)
        self.sites += 1
        shifted = self.emit("shr", [word, self.const(8, "u32")], "u32")
        unit = self.emit(
            "mul", [self.emit("cast", [shifted], "f32"), self.const(2.0**-24, "f32")], "f32"
        )
        low, high = (self.cast(self.scalar(bound), "f32") for bound in (node.low, node.high))
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
        return self.emit(
            "select", [condition, self.cast(yes, type_), self.cast(no, type_)], type_
        )

    # Lambdas and elementwise application ---------------------------------------------------------

    def apply(
        self, values: list, function, pos: Pos, hint: str, elem_type: ast.TypeName | None
    ) -> Scalar | Vec:
        """function(values), for each element if one of the values is a vector."""
        for value in values:
            if isinstance(value, Closure):
                raise CompileError("a function is not a number; call it", pos)
        if all(isinstance(value, Scalar) for value in values):
            return Scalar(function(*(self.uniform(value.value) for value in values)))
        return self.elementwise(values, function, elem_type, hint, pos)

    def elementwise(
        self, values: list, function, type_: ast.TypeName | None, hint: str, pos: Pos
    ) -> Vec:
        """A new vector: function of the values' elements, which must be of one size."""
        sources = [value for value in values if not isinstance(value, Scalar)]
        domain = self.size_of(sources[0])
        for source in sources[1:]:
            self.check_size(source, domain, pos)
        loop = self.loop(domain)
        args = [
            self.uniform(value.value) if isinstance(value, Scalar) else self.element(value)
            for value in values
        ]
        result = function(*args)
        if type_ is None:
            base = {"f32": "float", "i32": "int", "u32": "uint32", "bool": "bool"}[result.type]
            type_ = ast.TypeName(base, None, pos)
        result = self.convert(result, type_, pos)
        elem = scope.storage(type_)
        name = self.new_vector(hint, elem, domain)
        if result.type == "bool":
            result = self.cast(result, "i32")
        self.emit("store", [result], vec=[name])
        self.close(loop)
        return Vec(name, type_)

    def size_of(self, value: Vec | Range) -> Instr:
        return value.size if isinstance(value, Range) else self.vectors[value.name].size

    def check_size(self, value: Vec | Range, domain: Instr, pos: Pos) -> None:
        if self.size_of(value) is not domain:
            raise CompileError("these vectors are not known to have the same size", pos)

    def element(self, value: Vec | Range) -> Instr:
        """Element i of a vector, in an open loop."""
        if isinstance(value, Range):
            return self.emit("index", [], "i32")
        vector = self.vectors[value.name]
        loaded = self.emit("load", [], vector.value_type, [value.name])
        if vector.elem == "u<1>" and value.type is not None and value.type.base == "bool":
            return self.emit("ne", [loaded, self.const(0, "i32")], "bool")
        return loaded

    def call_lambda(self, closure: Closure, args: list[Instr], pos: Pos) -> Instr:
        """Inlines a lambda."""
        value = closure.value
        if len(args) != len(value.formals):
            raise CompileError(
                f"this function takes {len(value.formals)} values, but gets {len(args)}", pos
            )
        saved = self.env
        self.env = dict(saved)
        for formal, arg in zip(value.formals, args):
            if arg.op != "index" or formal.type.base != "int":
                arg = self.convert(arg, formal.type, formal.pos)
            self.env[formal.name] = Scalar(arg, formal.type)
        result = self.lambda_body(value.body, value)
        self.env = saved
        if result is None:
            raise CompileError("this function does not return on every path", value.pos)
        return self.convert(result, value.result, value.pos)

    def lambda_body(self, body: tuple[ast.Node, ...], owner: ast.Lambda) -> Instr | None:
        """Value of the return that a list of statements reaches; None if it reaches none."""
        for number, node in enumerate(body):
            if isinstance(node, ast.Return):
                return self.scalar(node.value)
            if isinstance(node, ast.If) and self.returns(node):
                rest = body[number + 1 :]
                condition = self.boolean(node.condition)
                before = dict(self.env)
                yes = self.lambda_body(node.yes + rest, owner)
                self.env = dict(before)
                no = self.lambda_body(node.no + rest, owner)
                self.env = before
                if yes is None or no is None:
                    return None
                return self.select(condition, yes, no)
            if isinstance(node, (ast.Call, ast.LambdaDef)):
                raise CompileError("only numbers, if and return can be used in a lambda", node.pos)
            self.statement(node)
        return None

    def returns(self, node: ast.Node) -> bool:
        """True if a return lies somewhere inside a statement."""
        if isinstance(node, ast.If):
            return any(self.returns(part) for part in node.yes + node.no)
        return isinstance(node, ast.Return)


__all__ = ["Lowerer"]
