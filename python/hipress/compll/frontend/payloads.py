"""concat, extract and require: what a payload has, and what a decoder refuses."""

from __future__ import annotations

from hipress.compll.errors import CompileError
from hipress.compll.frontend import ast, scope
from hipress.compll.frontend.scope import Scalar, Unset, Vec
from hipress.compll.ir.ir import Instr, Loop, Vector, node_writes

_PLANE = "a vector of uint<1> of the gradient's size"
_NO_MASK = f"the mask of pack_where must be a field before it, {_PLANE}"


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

    def pack_ascending(self, node: ast.Call) -> Vec:
        """uint8: the bytes of ascending indices."""
        index = self.vector(node.args[0])
        if not self.ascends(index.name, self.n):
            raise CompileError(
                f"pack_ascending takes indices of {self.input} from filter, topk or "
                "random_indices, or of those what gather takes at others",
                node.pos,
            )
        found = self.emit("pack_ascending", [], "i64", ["", index.name])
        found.vec[0] = self.new_packed(index.name, "u<8>", found)
        return Vec(found.vec[0])

    def new_packed(self, of: str, elem: str, size: Instr, kind: str = "temp") -> str:
        """A vector without a variable, with a name that no variable has."""
        name = f"{of}_packed"
        while name in self.vectors or name in self.env:
            name += "_"
        return self.new_vector(name, elem, size, kind)

    def ascends(self, name: str, below: Instr) -> bool:
        """True if a vector has ascending indices below a size, whatever the gradient is."""
        for node in self.body:
            if isinstance(node, Instr) and node.vec[:1] == [name]:
                if node.op == "random_indices":
                    return node.attrs["run"] == 1 and node.args[0] is below
                sparse = node.op in ("compact", "topk")
                return sparse and self.vectors[node.vec[1]].size is below
            if isinstance(node, Loop) and name in node_writes(node):
                if [instr.op for instr in node.body] != ["load", "load_at", "store"]:
                    return False
                at, source = node.body[0].vec[0], node.body[1].vec[0]
                return self.ascends(at, self.vectors[source].size) and self.ascends(source, below)
        return False

    def pack_where(self, node: ast.Call, before: list[str], plain: set[str]) -> Vec:
        """uint<1>: the bits under a mask, which is one of the fields before.

        :param plain: gets the name of the vector with the bits
        """
        bits, mask = (self.vector(arg).name for arg in node.args)
        if not self.is_plane(bits):
            raise CompileError(f"pack_where takes {_PLANE}", node.args[0].pos)
        if mask not in before or not self.is_plane(mask):
            raise CompileError(_NO_MASK, node.args[1].pos)
        plain.add(bits)
        found = self.emit("pack_where", [], "i64", ["", bits, mask])
        found.vec[0] = self.new_packed(bits, "u<1>", found)
        return Vec(found.vec[0])

    def is_plane(self, name: str) -> bool:
        """True if a vector has one bit for each element of the gradient, packed as by default."""
        vector = self.vectors[name]
        plain = (vector.order, vector.multiple) == ("lsb", 1)
        return plain and vector.elem == "u<1>" and vector.size is self.n

    def concat(self, node: ast.Call) -> None:
        fields, args, vectors = [], [], []
        plain: set[str] = set()  # what pack_where reads must stay packed as it is
        for arg in node.args:
            inner, order, multiple = self.pack_of(arg)
            if isinstance(arg, ast.Call) and arg.name == "pack_ascending":
                self.expect_args(arg, 1)
                value = self.pack_ascending(arg)
            elif isinstance(arg, ast.Call) and arg.name == "pack_where":
                self.expect_args(arg, 2)
                value = self.pack_where(arg, vectors, plain)
            else:
                value = self.expr(inner)
            if isinstance(value, Vec):
                vector = self.vectors[value.name]
                if vector.kind != "temp" or value.name in vectors or value.name in plain:
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
        packed: list[tuple[str, list[Instr], list[str]]] = []
        for arg in node.args[1:]:
            inner, order, multiple = self.pack_of(arg)
            form = arg.name if isinstance(arg, ast.Call) else ""
            if form in ("pack_ascending", "pack_where"):
                self.expect_args(arg, 1 if form == "pack_ascending" else 2)
                inner = arg.args[0]
            if not isinstance(inner, ast.Name):
                raise CompileError("extract fills variables; expected a name", arg.pos)
            target = self.env.get(inner.name)
            if isinstance(target, Scalar) and inner.name in self.params:
                self.expect_param(inner, target)
            elif isinstance(target, Unset) and form == "pack_ascending":
                data = self.extract_ascending(inner, target.declaration)
                size = self.vectors[inner.name].size
                packed.append(("unpack_ascending", [size], [inner.name, data]))
            elif isinstance(target, Unset) and form == "pack_where":
                sources = self.extract_where(inner, target.declaration, arg.args[1])
                packed.append(("unpack_where", [], [inner.name, *sources]))
            elif isinstance(target, Unset):
                self.extract_field(inner, target.declaration, order, multiple)
            else:
                raise CompileError(
                    f"{inner.name} must be declared without a value, or be a parameter", arg.pos
                )
        self.emit("end_of_payload", [])
        for op, args, vectors in packed:
            self.emit(op, args, "none", vectors)

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
        size = self.field_size(node, declaration)
        self.vectors[node.name] = Vector(
            node.name, scope.storage(type_), size, "field", order, multiple
        )
        self.emit("field_vector", [size], "none", [node.name])
        self.env[node.name] = Vec(node.name, type_)

    def field_size(self, node: ast.Name, declaration: ast.Declare) -> Instr:
        """The elements of a vector in the payload: as many as the gradient's, or fewer."""
        if declaration.size is None:
            return self.n
        size = self.whole(declaration.size)
        if size is not self.n:
            fits = self.emit("le", [size, self.n], "bool")
            message = f"{node.name} must not have more elements than the gradient"
            self.emit("require", [fits], "none", message=message)
        return size

    def extract_ascending(self, node: ast.Name, declaration: ast.Declare) -> str:
        """Takes the bytes of ascending indices from the payload; the name of these bytes."""
        type_ = declaration.type
        if not declaration.vector or scope.storage(type_) != "i32":
            raise CompileError(f"{node.name} must be a vector of int: indices", node.pos)
        count = self.field_size(node, declaration)
        size = self.emit("ascending_bytes", [count, self.n], "i64")
        data = self.new_packed(node.name, "u<8>", size, "field")
        self.emit("field_vector", [size], "none", [data])
        self.vectors[node.name] = Vector(node.name, "i32", count, "temp")
        self.env[node.name] = Vec(node.name, type_)
        return data

    def extract_where(self, node: ast.Name, declaration: ast.Declare,
                      mask: ast.Node) -> list[str]:  # fmt: skip
        """Takes the bits under a mask from the payload; the names of these bits and of the mask."""
        type_ = declaration.type
        if not declaration.vector or declaration.size is not None or scope.storage(type_) != "u<1>":
            raise CompileError(f"{node.name} must be {_PLANE}", node.pos)
        value = self.env.get(mask.name) if isinstance(mask, ast.Name) else None
        fields = {
            instr.vec[0]: instr for instr in self.body
            if isinstance(instr, Instr) and instr.op == "field_vector"
        }  # fmt: skip
        if not isinstance(value, Vec) or value.name not in fields or not self.is_plane(value.name):
            raise CompileError(_NO_MASK, mask.pos)
        fields[value.name].attrs["zeros"] = True  # one payload for one gradient
        count = self.emit("count_where", [], "i64", [value.name])
        data = self.new_packed(node.name, "u<1>", count, "field")
        self.emit("field_vector", [count], "none", [data], zeros=True)
        self.vectors[node.name] = Vector(node.name, "u<1>", self.n, "temp")
        self.env[node.name] = Vec(node.name, type_)
        return [data, value.name]
