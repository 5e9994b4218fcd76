"""Functions concat, extract and require: the content of payloads, and a decoder's checks."""

from __future__ import annotations

from hipress.compression.compiler.errors import CompileError
from hipress.compression.compiler.frontend import ast, scope
from hipress.compression.compiler.frontend.builtins import expect_args
from hipress.compression.compiler.frontend.expressions import Expressions
from hipress.compression.compiler.frontend.scope import Scalar, Unset, Vec
from hipress.compression.compiler.ir.indices import ascend
from hipress.compression.compiler.ir.ir import Instr, Loop

_PLANE = "a vector of uint<1> of the gradient's size"
_INDICES = {"pack_ascending": "unpack_ascending", "pack_gaps": "unpack_gaps"}
_NUMBERS = {"n", "step", "param", "const"}
_NO_MASK = f"the mask of pack_where must be a field before it, {_PLANE}"


def _pack_of(x: Expressions, node: ast.Node) -> tuple[ast.Node, str, int]:
    """Return (vector, order, multiple) of pack_msb(v, m), pack_lsb(v, m) or v."""
    if isinstance(node, ast.Call) and node.name in ("pack_msb", "pack_lsb"):
        if len(node.args) != 2 or not isinstance(node.args[1], ast.Number):
            raise CompileError(f"{node.name} takes {node.name}(vector, multiple)", node.pos)
        if node.args[1].value not in (1, 2, 4, 8, 16, 32, 64):
            raise CompileError("a multiple must be 1, 2, 4, 8, 16, 32 or 64", node.args[1].pos)
        return node.args[0], node.name[-3:], int(node.args[1].value)
    return node, "lsb", 1


def _pack_indices(x: Expressions, node: ast.Call) -> tuple[Instr | None, str]:
    """Return the bytes of ascending indices, uint8, and for pack_gaps how many they are."""
    expect_args(node, 1)
    index = x.vector(node.args[0])
    if not ascend(index.name, x.n, x.body, x.vectors):
        raise CompileError(
            f"{node.name} takes indices of {x.signature.input} from filter, topk or "
            "random_indices, or of those what gather takes at others",
            node.pos,
        )
    if node.name == "pack_gaps":
        size = x.emit("gaps_bytes", [], "i64", [index.name])
        packed = _new_packed(x, index.name, "u<8>", size)
        x.emit("pack_gaps", [size], "none", [packed, index.name])
        return size, packed
    found = x.emit(node.name, [], "i64", ["", index.name])
    found.vec[0] = _new_packed(x, index.name, "u<8>", found)
    return None, found.vec[0]


def _new_packed(x: Expressions, of: str, elem: str, size: Instr, kind: str = "temp") -> str:
    """Return a vector without a variable, with a name that no variable has."""
    name = f"{of}_packed"
    while name in x.vectors or name in x.env:
        name += "_"
    return x.new_vector(name, elem, size, kind)


def _pack_where(x: Expressions, node: ast.Call, before: list[str], plain: set[str]) -> Vec:
    """Return uint<1>: the bits under a mask, which is one of the fields before.

    :param plain: gets the name of the vector with the bits
    """
    bits, mask = (x.vector(arg).name for arg in node.args)
    if not _is_plane(x, bits):
        raise CompileError(f"pack_where takes {_PLANE}", node.args[0].pos)
    if mask not in before or not _is_plane(x, mask):
        raise CompileError(_NO_MASK, node.args[1].pos)
    plain.add(bits)
    found = x.emit("pack_where", [], "i64", ["", bits, mask])
    found.vec[0] = _new_packed(x, bits, "u<1>", found)
    return Vec(found.vec[0])


def _is_plane(x: Expressions, name: str) -> bool:
    """Return whether a vector has one bit per element of the gradient, packed as by default."""
    vector = x.vectors[name]
    plain = (vector.order, vector.multiple) == ("lsb", 1)
    return plain and vector.elem == "u<1>" and vector.size is x.n


def _pack_floats(x: Expressions, node: ast.Call) -> None:
    """Emit the whole payload: the gradient with all its bits."""
    expect_args(node, 1)
    inner = node.args[0]
    if not isinstance(inner, ast.Name) or inner.name != x.signature.input or x.signature.states:
        raise CompileError(
            f"pack_floats takes {x.signature.input} itself, in an algorithm without states",
            node.pos,
        )
    found = x.emit("pack_floats", [], "i64", ["", inner.name])
    found.vec[0] = _new_packed(x, inner.name, "u<8>", found)
    x.emit("emit", [], "none", [found.vec[0]], fields=[("vector", found.vec[0])])


def _is_floats(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.name == "pack_floats"


def _alone(x: Expressions, args: tuple, node: ast.Node) -> None:
    """Check that a function contains only pack_floats."""
    if len(args) != 1 or any(isinstance(i, Loop) or i.op not in _NUMBERS for i in x.body):
        raise CompileError("pack_floats must be the only field, and nothing else done", node.pos)


def concat(x: Expressions, node: ast.Call) -> None:
    for arg in filter(_is_floats, node.args):
        _alone(x, node.args, arg)
        return _pack_floats(x, arg)
    fields, args, vectors = [], [], []
    plain: set[str] = set()  # operands of pack_where, which must stay packed
    for arg in node.args:
        inner, order, multiple = _pack_of(x, arg)
        if isinstance(arg, ast.Call) and arg.name in _INDICES:
            size, packed = _pack_indices(x, arg)
            if size is not None:
                fields.append(("u32", len(args)))
                args.append(size)
            value = Vec(packed)
        elif isinstance(arg, ast.Call) and arg.name == "pack_where":
            expect_args(arg, 2)
            value = _pack_where(x, arg, vectors, plain)
        else:
            value = x.expr(inner)
        if isinstance(value, Vec):
            vector = x.vectors[value.name]
            if vector.kind != "temp" or value.name in vectors or value.name in plain:
                copy_type = value.type or scope.FLOAT
                value = x.elementwise([value], lambda x: x, copy_type, "field", arg.pos)
                vector = x.vectors[value.name]
            vector.order, vector.multiple = order, multiple
            fields.append(("vector", value.name))
            vectors.append(value.name)
        elif isinstance(value, Scalar):
            elem = _field_type(x, inner, value)
            fields.append((elem, len(args)))
            args.append(value.value)
        else:
            raise CompileError("a field must be a number or a vector", arg.pos)
    x.emit("emit", args, "none", vectors, fields=fields)


def _field_type(x: Expressions, node: ast.Node, value: Scalar) -> str:
    """Return the storage type of a scalar field: its declared type, or float."""
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


def call_statement(x: Expressions, node: ast.Call) -> bool:
    """Return an extract or a require; returns True if it has assigned the output."""
    if node.name == "require":
        if len(node.args) != 2 or not isinstance(node.args[1], ast.String):
            raise CompileError('require takes require(condition, "message")', node.pos)
        if x.signature.kind != "decode":
            raise CompileError("require is for decoders: it refuses a payload", node.pos)
        condition = x.boolean(node.args[0])
        x.emit("require", [condition], "none", message=node.args[1].value)
    elif node.name == "extract":
        return _extract(x, node)
    else:
        raise CompileError(
            f"{node.name}(...) alone does nothing; expected extract or require", node.pos
        )
    return False


def _extract(x: Expressions, node: ast.Call) -> bool:
    first = node.args[0] if node.args else None
    source = x.signature.input
    if x.signature.kind != "decode" or not isinstance(first, ast.Name) or first.name != source:
        raise CompileError(f"extract takes extract({source}, fields...) in a decoder", node.pos)
    for arg in filter(_is_floats, node.args[1:]):
        expect_args(arg, 1)
        target = arg.args[0]
        if not isinstance(target, ast.Name) or target.name != x.signature.output:
            raise CompileError(f"pack_floats fills {x.signature.output} itself", arg.pos)
        _alone(x, node.args[1:], arg)
        x.emit("unpack_floats", [], "none", [target.name])
        return True
    packed: list[tuple[str, list[Instr], list[str]]] = []
    for arg in node.args[1:]:
        inner, order, multiple = _pack_of(x, arg)
        form = arg.name if isinstance(arg, ast.Call) else ""
        if form in (*_INDICES, "pack_where"):
            expect_args(arg, 2 if form == "pack_where" else 1)
            inner = arg.args[0]
        if not isinstance(inner, ast.Name):
            raise CompileError("extract fills variables; expected a name", arg.pos)
        target = x.env.get(inner.name)
        if isinstance(target, Scalar) and inner.name in x.signature.params:
            _expect_param(x, inner, target)
        elif isinstance(target, Unset) and form in _INDICES:
            numbers, *vectors = _extract_indices(x, form, inner, target.declaration)
            packed.append((_INDICES[form], numbers, vectors))
        elif isinstance(target, Unset) and form == "pack_where":
            vectors = _extract_where(x, inner, target.declaration, arg.args[1])
            packed.append(("unpack_where", [], vectors))
        elif isinstance(target, Unset):
            _extract_field(x, inner, target.declaration, order, multiple)
        else:
            raise CompileError(
                f"{inner.name} must be declared without a value, or be a parameter", arg.pos
            )
    x.emit("end_of_payload", [])
    for op, args, vectors in packed:
        x.emit(op, args, "none", vectors)
    return False


def _expect_param(x: Expressions, node: ast.Name, target: Scalar) -> None:
    """Check that a parameter in the payload equals the decoder's."""
    elem = _field_type(x, node, target)
    value = x.emit("field", [], "f32" if elem == "f32" else "i64", elem=elem)
    same = x.emit("eq", [value, target.value], "bool")
    message = f"{node.name} must be the one that this decoder was made with"
    x.emit("require", [same], "none", message=message)


def _extract_field(
    x: Expressions, node: ast.Name, declaration: ast.Declare, order: str, multiple: int
) -> None:
    type_ = declaration.type
    if not declaration.vector:
        elem = _field_type(x, node, Scalar(x.n, type_))
        value = x.emit("field", [], "f32" if elem == "f32" else "i64", elem=elem)
        if type_.base == "uint32":
            value = x.cast(value, "u32")
        x.env.assign(node.name, Scalar(value, type_))
        return
    size = _field_size(x, node, declaration)
    name = x.new_vector(node.name, scope.storage(type_), size, "field")
    x.vectors[name].order, x.vectors[name].multiple = order, multiple
    x.emit("field_vector", [size], "none", [name])
    x.env.assign(node.name, Vec(name, type_))


def _field_size(x: Expressions, node: ast.Name, declaration: ast.Declare) -> Instr:
    """Return the elements of a vector in the payload: as many as the gradient's, or fewer."""
    if declaration.size is None:
        return x.n
    size = x.whole(declaration.size)
    x.limit(size, node.name)
    return size


def _extract_indices(
    x: Expressions, form: str, node: ast.Name, declaration: ast.Declare
) -> tuple[list[Instr], str, str]:
    """Take the bytes of ascending indices from the payload; how many indices they are, for
    pack_gaps how many bytes, and the names of the indices and of the bytes."""
    type_ = declaration.type
    if not declaration.vector or scope.storage(type_) != "i32":
        raise CompileError(f"{node.name} must be a vector of int: indices", node.pos)
    count = _field_size(x, node, declaration)
    numbers = [count]
    if form == "pack_gaps":
        size = x.emit("field", [], "i64", elem="u32")
        numbers.append(size)
    else:
        size = x.emit("ascending_bytes", [count, x.n], "i64")
    data = _new_packed(x, node.name, "u<8>", size, "field")
    x.emit("field_vector", [size], "none", [data])
    name = x.new_vector(node.name, "i32", count)
    x.env.assign(node.name, Vec(name, type_))
    return numbers, name, data


def _extract_where(
    x: Expressions, node: ast.Name, declaration: ast.Declare, mask: ast.Node
) -> list[str]:
    """Take the bits under a mask from the payload; the names of the vector that they will be in
    where they were, of these bits and of the mask."""
    type_ = declaration.type
    if not declaration.vector or declaration.size is not None or scope.storage(type_) != "u<1>":
        raise CompileError(f"{node.name} must be {_PLANE}", node.pos)
    value = x.env.get(mask.name) if isinstance(mask, ast.Name) else None
    fields = {
        instr.vec[0]: instr
        for instr in x.body
        if isinstance(instr, Instr) and instr.op == "field_vector"
    }
    if not isinstance(value, Vec) or value.name not in fields or not _is_plane(x, value.name):
        raise CompileError(_NO_MASK, mask.pos)
    fields[value.name].attrs["zeros"] = True  # one payload for one gradient
    count = x.emit("count_where", [], "i64", [value.name])
    data = _new_packed(x, node.name, "u<1>", count, "field")
    x.emit("field_vector", [count], "none", [data], zeros=True)
    name = x.new_vector(node.name, "u<1>", x.n)
    x.env.assign(node.name, Vec(name, type_))
    return [name, data, value.name]
