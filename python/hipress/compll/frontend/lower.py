"""Syntax tree to IR, with all type checks: functions and statements."""

from __future__ import annotations

from hipress.compll.errors import CompileError, Pos
from hipress.compll.frontend import ast, scope
from hipress.compll.frontend.expressions import Expressions
from hipress.compll.frontend.scope import Closure, Output, Range, Scalar, Unset, Vec
from hipress.compll.ir.ir import Function, Instr, Loop, Vector
from hipress.compll.ir.slices import backward


class Lowerer(Expressions):
    """Lowers one function.

    :param function: the syntax
    :param kind: "encode" or "decode"
    :param params: types of the algorithm's parameters by name
    :param states: the conditions of its states by name, None for those that are always kept
    """

    def __init__(
        self,
        function: ast.Function,
        kind: str,
        params: dict[str, ast.TypeName],
        states: dict[str, ast.Node | None],
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
        needs = {
            name: self.condition(name, condition) for name, condition in states.items()
            if kind == "encode" and condition is not None
        }  # fmt: skip
        if kind == "encode":
            self.vectors[source] = Vector(source, "f32", self.n, "input")
            self.env[source] = Vec(source)
        else:
            self.vectors[target] = Vector(target, "f32", self.n, "output")
            self.env[source] = None
        self.env[target] = Output()
        for name in states if kind == "encode" else ():
            self.vectors[name] = Vector(name, "f32", self.n, "state", needs=needs.get(name))
            self.env[name] = Vec(name)

    def condition(self, name: str, node: ast.Node) -> Instr:
        """Whether a state is kept: a bool of the parameters."""
        value = self.boolean(node)
        for instr in backward(value, self.body):
            if instr.vec or instr.op in ("n", "step"):
                raise CompileError(f"{name} can only depend on parameters and numbers", node.pos)
        return value

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
