"""concat, extract and require: what a payload has, and what a decoder refuses."""

from __future__ import annotations

from hipress.compll.frontend import ast, scope
from hipress.compll.frontend.errors import CompileError
from hipress.compll.frontend.scope import Scalar, Unset, Vec
from hipress.compll.ir.ir import Vector


class Payloads:
    """Part of Lowerer: fields of payloads."""

    def pack_of(self, node: ast.Node) -> tuple[ast.Node, str, int]:
        """(vector, order, multiple) of pack_msb(v, m), pack_lsb(v, m) or v."""
        if isinstance(node, ast.Call) and node.name in ("pack_msb", "pack_lsb"):
            if len(node.args) != 2 or not isinstance(node.args[1], ast.Number):
                raise CompileError(f"{node.name} takes {node.name}(vector, multiple)", node.pos)
            if node.args[1].value not in (1, 2, 4, 8, 16, 32, 64):
                raise CompileError("a multiple must be 1, 2, 4, 8, 16, 32 or 64", node.args[1].pos)
            return node.args[0], node.name[-3:], int(node.args[1].value)
        return node, "lsb", 1

    def concat(self, node: ast.Call) -> None:
        fields, args, vectors = [], [], []
        for arg in node.args:
            inner, order, multiple = self.pack_of(arg)
            value = self.expr(inner)
            if isinstance(value, Vec):
                vector = self.vectors[value.name]
                if vector.kind != "temp" or value.name in vectors:
                    copy_type = value.type or ast.TypeName("float", None, arg.pos)
                    value = self.elementwise([value], lambda x: x, copy_type, "field", arg.pos)
                    vector = self.vectors[value.name]
                vector.order, vector.multiple = order, multiple
                fields.append(("vector", value.name))
                vectors.append(value.name)
            elif isinstance(value, Scalar):
                elem = self.field_type(inner, value)
                fields.append((elem, len(args)))
                args.append(value.value)
            else:
                raise CompileError("a field must be a number or a vector", arg.pos)
        self.emit("emit", args, "none", vectors, fields=fields)

    def field_type(self, node: ast.Node, value: Scalar) -> str:
        """Storage of a scalar field: its declared type, or float."""
        type_ = node.type if isinstance(node, ast.Cast) else value.type
        if type_ is None:
            if value.value.type == "f32":
                return "f32"
            raise CompileError(
                "a field needs a type: write uint32(...), or declare a variable", node.pos
            )
        allowed = {"float": "f32", "uint8": "u8", "uint16": "u16", "uint32": "u32"}
        if type_.base not in allowed:
            raise CompileError(
                f"a field must be float, uint8, uint16 or uint32, not {scope.spelled(type_)}",
                node.pos,
            )
        return allowed[type_.base]

    def call_statement(self, node: ast.Call) -> None:
        if node.name == "require":
            if len(node.args) != 2 or not isinstance(node.args[1], ast.String):
                raise CompileError('require takes require(condition, "message")', node.pos)
            if self.kind != "decode":
                raise CompileError("require is for decoders: it refuses a payload", node.pos)
            condition = self.boolean(node.args[0])
            self.emit("require", [condition], "none", message=node.args[1].value)
        elif node.name == "extract":
            self.extract(node)
        else:
            raise CompileError(
                f"{node.name}(...) alone does nothing; expected extract or require", node.pos
            )

    def extract(self, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        if self.kind != "decode" or not (isinstance(first, ast.Name) and first.name == self.input):
            raise CompileError(
                f"extract takes extract({self.input}, fields...) in a decoder", node.pos
            )
        for arg in node.args[1:]:
            inner, order, multiple = self.pack_of(arg)
            if not isinstance(inner, ast.Name):
                raise CompileError("extract fills variables; expected a name", arg.pos)
            target = self.env.get(inner.name)
            if isinstance(target, Scalar) and inner.name in self.params:
                self.expect_param(inner, target)
            elif isinstance(target, Unset):
                self.extract_field(inner, target.declaration, order, multiple)
            else:
                raise CompileError(
                    f"{inner.name} must be declared without a value, or be a parameter", arg.pos
                )
        self.emit("end_of_payload", [])

    def expect_param(self, node: ast.Name, target: Scalar) -> None:
        """A parameter that travels in the payload must be the one we decode with."""
        elem = self.field_type(node, target)
        value = self.emit("field", [], "f32" if elem == "f32" else "i64", elem=elem)
        same = self.emit("eq", [value, target.value], "bool")
        message = f"{node.name} must be the one that this decoder was made with"
        self.emit("require", [same], "none", message=message)

    def extract_field(self, node: ast.Name, declaration: ast.Declare, order: str,
                      multiple: int) -> None:  # fmt: skip
        type_ = declaration.type
        if not declaration.vector:
            elem = self.field_type(node, Scalar(self.n, type_))
            value = self.emit("field", [], "f32" if elem == "f32" else "i64", elem=elem)
            if type_.base == "uint32":
                value = self.cast(value, "u32")
            self.env[node.name] = Scalar(value, type_)
            return
        size = self.n
        if declaration.size is not None:
            size = self.whole(declaration.size)
        if size is not self.n:
            fits = self.emit("le", [size, self.n], "bool")
            message = f"{node.name} must not have more elements than the gradient"
            self.emit("require", [fits], "none", message=message)
        self.vectors[node.name] = Vector(
            node.name, scope.storage(type_), size, "field", order, multiple
        )
        self.emit("field_vector", [size], "none", [node.name])
        self.env[node.name] = Vec(node.name, type_)
