"""Syntax tree to IR, with all type checks: functions and statements."""

from __future__ import annotations

from functools import partial

from hipress.compression.compiler.errors import CompileError, Pos
from hipress.compression.compiler.frontend import ast, builtins, payloads, scope
from hipress.compression.compiler.frontend.expressions import Expressions
from hipress.compression.compiler.frontend.scope import Closure, Output, Range, Scalar, Unset, Vec
from hipress.compression.compiler.ir.ir import Function, Instr, Vector
from hipress.compression.compiler.ir.slices import backward


class Lowerer:
    """Lowering of one function."""

    def __init__(self, function: ast.Function, signature: scope.Signature) -> None:
        self.syntax, self.signature = function, signature
        self.x = x = Expressions(signature, builtins.call, self.statement)
        self.finished = False
        self.depth = 0
        for name, type_ in signature.params.items():
            ir_type = "f32" if type_.base == "float" else "i64"
            x.env.declare(name, Scalar(x.emit("param", [], ir_type, name=name), type_))
        source, target = signature.input, signature.output
        if signature.kind == "decode":
            x.vectors[target] = Vector(target, "f32", x.n, "output")
            x.env.declare(source, None)
            x.env.declare(target, Output())
            return
        needs = {
            name: self.condition(name, condition)
            for name, condition in signature.states.items()
            if condition is not None
        }
        x.vectors[source] = Vector(source, "f32", x.n, "input")
        x.env.declare(source, Vec(source))
        x.env.declare(target, Output())
        for name in signature.states:
            x.vectors[name] = Vector(name, "f32", x.n, "state", needs=needs.get(name))
            x.env.declare(name, Vec(name))

    def condition(self, name: str, node: ast.Node) -> Instr:
        """Return whether a state is kept: a bool of the parameters."""
        value = self.x.boolean(node)
        for instr in backward(value, self.x.body):
            if instr.vec or instr.op in ("n", "step"):
                raise CompileError(f"{name} can only depend on parameters and numbers", node.pos)
        return value

    def run(self) -> Function:
        """Return the function's IR.

        :raises CompileError: for an error of the user's
        """
        for statement in self.syntax.body:
            self.statement(statement)
        name, signature = self.syntax.name, self.signature
        if not self.finished:
            how = " = concat(...)" if signature.kind == "encode" else ""
            raise CompileError(f"{name} must assign {signature.output}{how}", self.syntax.pos)
        x = self.x
        return Function(name, signature.kind, x.body, x.vectors, signature.input, signature.output)

    # Statements ----------------------------------------------------------------------

    def statement(self, node: ast.Node) -> None:
        if isinstance(node, ast.LambdaDef):
            self.expect_new(node)
            self.x.env.declare(node.name, Closure(node.value, scope.Names(self.x.env)))
        elif isinstance(node, ast.Declare):
            self.declare(node)
        elif isinstance(node, ast.Assign):
            self.assign(node)
        elif isinstance(node, ast.If):
            self.if_(node)
        elif isinstance(node, ast.Call):
            if self.depth:  # it would be done whatever the condition is
                raise CompileError(f"{node.name} must not be inside an if", node.pos)
            if payloads.call_statement(self.x, node):
                self.finish(node.pos)
        elif isinstance(node, ast.Return):
            assigns = f"{self.syntax.name} assigns {self.signature.output}"
            raise CompileError(f"return is for lambdas; {assigns}", node.pos)
        else:
            raise CompileError("this is not a statement", node.pos)

    def declare(self, node: ast.Declare) -> None:
        if node.name in self.signature.params or node.name in self.signature.states:
            raise CompileError(f"{node.name} is a parameter or a state already", node.pos)
        self.expect_new(node)
        if node.value is None:
            made = Unset(node)
        elif node.vector:
            made = self.to_vector(node.value, node.type, node.name)
        else:
            value = self.x.convert(self.x.scalar(node.value), node.type, node.value.pos)
            made = Scalar(value, node.type)
        self.x.env.declare(node.name, made)

    def expect_new(self, node: ast.Declare | ast.LambdaDef) -> None:
        if self.x.env.declared_here(node.name):
            raise CompileError(f"{node.name} is declared already", node.pos)

    def to_vector(self, value: ast.Node, type_: ast.TypeName, hint: str) -> Vec:
        """Evaluate a vector expression into a variable of a written type."""
        elem = scope.storage(type_)
        result = self.x.expr(value, hint=hint, elem_type=type_)
        if isinstance(result, Scalar):
            raise CompileError(
                f"{scope.spelled(type_)}* needs a vector, but this is a number", value.pos
            )
        if isinstance(result, Closure):
            raise CompileError("this is a function; call map with it", value.pos)
        if isinstance(result, Vec) and self.x.vectors[result.name].kind == "temp":
            if self.x.vectors[result.name].elem == elem:
                return Vec(result.name, type_)
        return self.x.elementwise([result], lambda x: x, type_, hint, value.pos)

    def assign(self, node: ast.Assign) -> None:
        old = self.x.env.get(node.name, self)
        if old is self:
            raise CompileError(
                f"{node.name} is not declared; write its type first, as in float {node.name} = ...",
                node.pos,
            )
        if node.name in self.signature.params:
            raise CompileError(f"{node.name} is a parameter and cannot be assigned", node.pos)
        if self.x.inside is not None and self.x.env.same(node.name, self.x.inside):
            raise CompileError(
                f"{node.name} is declared outside of this lambda, so the lambda cannot assign it",
                node.pos,
            )
        if isinstance(old, Output):
            self.assign_output(node)
        elif isinstance(old, Vec):
            self.assign_vector(node, old)
        elif isinstance(old, (Scalar, Unset)):
            type_ = old.type if isinstance(old, Scalar) else old.declaration.type
            if isinstance(old, Unset) and old.declaration.vector:
                self.x.env.assign(node.name, self.to_vector(node.value, type_, node.name))
            else:
                value = self.x.convert(self.x.scalar(node.value), type_, node.value.pos)
                self.x.env.assign(node.name, Scalar(value, type_))
        else:
            raise CompileError(f"{node.name} cannot be assigned", node.pos)

    def assign_output(self, node: ast.Assign) -> None:
        self.finish(node.pos)
        if self.signature.kind == "encode":
            if not (isinstance(node.value, ast.Call) and node.value.name == "concat"):
                raise CompileError(
                    f"expected concat(...): {node.name} is made of fields", node.value.pos
                )
            payloads.concat(self.x, node.value)
        else:
            self.store_into(node.name, node.value)

    def finish(self, pos: Pos) -> None:
        """Note that the output is assigned.

        :raises CompileError: if it was, or may not be
        """
        name = self.signature.output
        if self.finished:
            raise CompileError(f"{name} is assigned twice", pos)
        if self.depth:
            raise CompileError(f"{name} must not be assigned inside an if", pos)
        self.finished = True

    def assign_vector(self, node: ast.Assign, old: Vec) -> None:
        if node.name == self.signature.input:
            raise CompileError(f"{node.name} is the input and cannot be assigned", node.pos)
        if node.name in self.signature.states and not self.depth:
            self.store_into(node.name, node.value)
            return
        type_ = old.type or scope.FLOAT
        self.x.env.assign(node.name, self.to_vector(node.value, type_, node.name))

    def store_into(self, name: str, value: ast.Node) -> None:
        """Emit name = value for a vector in memory: a state or the output."""
        if isinstance(value, ast.Call) and value.name == "scatter":
            builtins.scatter(self.x, value, name)
            return
        result = self.x.expr(value, hint=name)
        if not isinstance(result, (Vec, Range)):
            raise CompileError(f"{name} needs a vector, but this is a number", value.pos)
        self.x.check_size(result, self.x.n, value.pos)
        self.x.store_each(name, lambda: self.x.element(result))

    def if_(self, node: ast.If) -> None:
        condition = self.x.boolean(node.condition)
        yes, no = self.branch(node.yes), self.branch(node.no)
        for name, old in self.x.env.values().items():
            if yes[name] is old and no[name] is old:
                continue
            merged = self.merge(condition, yes[name], no[name], node.pos, name)
            if name in self.signature.states:
                self.x.store_each(name, partial(self.x.element, merged))
            else:
                self.x.env.assign(name, merged)

    def branch(self, body: tuple[ast.Node, ...]) -> dict[str, object]:
        """Execute one side of an if, and return the values of outer names after it."""
        outer = self.x.env
        before = outer.state()
        self.x.env = scope.Names(outer)
        self.depth += 1
        for statement in body:
            self.statement(statement)
        self.depth -= 1
        self.x.env, after = outer, outer.values()
        scope.restore(before)
        return after

    def merge(self, condition: Instr, yes: object, no: object, pos: Pos, name: str) -> Scalar | Vec:
        """Return a variable's value after an if whose branches leave `yes` and `no` in it."""
        if isinstance(yes, Scalar) and isinstance(no, Scalar):
            value = self.x.select(condition, yes.value, no.value)
            return Scalar(value, yes.type)
        if isinstance(yes, Vec) and isinstance(no, Vec):
            type_ = yes.type or no.type or scope.FLOAT
            return self.x.elementwise(
                [yes, no], lambda a, b: self.x.select(condition, a, b), type_, name, pos
            )
        raise CompileError(f"{name} must have a value after both branches of this if", pos)
