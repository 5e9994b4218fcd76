"""Functions concat, extract and require: the content of payloads, and a decoder's checks."""

from __future__ import annotations

from hipress.compression.compiler.compiler_errors import CompileError, expect
from hipress.compression.compiler.frontend import ast
from hipress.compression.compiler.frontend.builtins import expect_args
from hipress.compression.compiler.frontend.expressions import (
    FLOAT,
    Expressions,
    Scalar,
    Vec,
    storage,
)
from hipress.compression.compiler.ir.ir import Instr, Loop, ascend

_PLANE = "a vector of uint<1> of the gradient's size"
_INDICES = {"pack_ascending": "unpack_ascending", "pack_gaps": "unpack_gaps"}
_NUMBERS = ("n", "step", "param", "const")
_NO_MASK = f"the mask of pack_where must be a field before it, {_PLANE}"


def _form(node: ast.SyntaxNode) -> str:
    """Return the function by which a field is packed, or ""."""
    return node.name if isinstance(node, ast.Call) else ""


def _pack_of(node: ast.SyntaxNode) -> tuple[ast.SyntaxNode, str, int]:
    """Return (vector, order, multiple) of pack_msb(v, m), pack_lsb(v, m) or v."""
    name = _form(node)
    if name not in ("pack_msb", "pack_lsb"):
        return node, "lsb", 1
    good = len(node.args) == 2 and isinstance(node.args[1], ast.Number)
    expect(good, f"{name} takes {name}(vector, multiple)", node.pos)
    multiple = node.args[1].value
    text = "a multiple must be 1, 2, 4, 8, 16, 32 or 64"
    expect(multiple in (1, 2, 4, 8, 16, 32, 64), text, node.args[1].pos)
    return node.args[0], name[-3:], int(multiple)


def _new_packed(x: Expressions, of: str, elem: str, size: Instr, kind: str = "temp") -> str:
    """Return a vector without a variable, with a name that no variable has."""
    name = f"{of}_packed"
    while name in x.vectors or name in x.env:
        name += "_"
    return x.new_vector(name, elem, size, kind)


def _packed(x: Expressions, op: str, elem: str, *sources: str) -> str:
    """Return a new vector that an operation packs, whose value is its size."""
    found = x.emit(op, [], "i64", ["", *sources])
    found.vec[0] = _new_packed(x, sources[0], elem, found)
    return found.vec[0]


def _is_plane(x: Expressions, name: str) -> bool:
    """Return whether a vector has one bit per element of the gradient, packed as by default."""
    vector = x.vectors[name]
    plain = (vector.order, vector.multiple) == ("lsb", 1)
    return plain and vector.elem == "u<1>" and vector.size is x.n


def _pack_indices(x: Expressions, node: ast.Call) -> tuple[Instr | None, str]:
    """Return the bytes of ascending indices, uint8, and for pack_gaps how many they are."""
    expect_args(node, 1)
    index = x.vector(node.args[0])
    expect(
        ascend(index.name, x.n, x.body, x.vectors),
        f"{node.name} takes indices of {x.signature.input} from filter, topk or "
        "random_indices, or of those what gather takes at others",
        node.pos,
    )
    if node.name == "pack_ascending":
        return None, _packed(x, node.name, "u<8>", index.name)
    size = x.emit("gaps_bytes", [], "i64", [index.name])
    packed = _new_packed(x, index.name, "u<8>", size)
    x.emit("pack_gaps", [size], vec=[packed, index.name])
    return size, packed


def _pack_where(x: Expressions, node: ast.Call, before: list[str], plain: set[str]) -> str:
    """Return the bits under a mask among the fields `before`; note their vector in `plain`."""
    expect_args(node, 2)
    bits, mask = (x.vector(arg).name for arg in node.args)
    expect(_is_plane(x, bits), f"pack_where takes {_PLANE}", node.args[0].pos)
    expect(mask in before and _is_plane(x, mask), _NO_MASK, node.args[1].pos)
    plain.add(bits)
    return _packed(x, "pack_where", "u<1>", bits, mask)


def _pack_floats(
    x: Expressions, args: tuple[ast.SyntaxNode, ...], wanted: str, refused: str
) -> ast.Call | None:
    """Return the call of pack_floats, which must be the only field, of `wanted`, or None."""
    node = next((arg for arg in args if _form(arg) == "pack_floats"), None)
    if node is not None:
        busy = any(isinstance(item, Loop) or item.op not in _NUMBERS for item in x.body)
        text = "pack_floats must be the only field, and nothing else done"
        expect(len(args) == 1 and not busy, text, node.pos)
        expect_args(node, 1)
        inner = node.args[0]
        expect(isinstance(inner, ast.Name) and inner.name == wanted, refused, node.pos)
    return node


def concat(x: Expressions, node: ast.Call) -> None:
    """Emit the payload."""
    source = x.signature.input
    refused = f"pack_floats takes {source} itself, in an algorithm without states"
    exact = _pack_floats(x, node.args, source, refused)
    if exact is not None:
        expect(not x.signature.states, refused, exact.pos)
        packed = _packed(x, "pack_floats", "u<8>", source)
        x.emit("emit", [], vec=[packed], fields=[("vector", packed)])
        return
    fields: list[tuple] = []
    args: list[Instr] = []
    vectors: list[str] = []
    plain: set[str] = set()  # operands of pack_where, which must stay packed
    for arg in node.args:
        inner, order, multiple = _pack_of(arg)
        form = _form(arg)
        if form in _INDICES:
            size, packed = _pack_indices(x, arg)
            if size is not None:
                fields.append(("u32", len(args)))
                args.append(size)
            value = Vec(packed)
        elif form == "pack_where":
            value = Vec(_pack_where(x, arg, vectors, plain))
        else:
            value = x.expr(inner)
        if isinstance(value, Scalar):
            fields.append((_field_type(inner, value), len(args)))
            args.append(value.value)
            continue
        expect(isinstance(value, Vec), "a field must be a number or a vector", arg.pos)
        kind = x.vectors[value.name].kind
        if kind != "temp" or value.name in vectors or value.name in plain:
            value = x.elementwise([value], lambda e: e, value.type or FLOAT, "field", arg.pos)
        vector = x.vectors[value.name]
        vector.order, vector.multiple = order, multiple
        fields.append(("vector", value.name))
        vectors.append(value.name)
    x.emit("emit", args, vec=vectors, fields=fields)


def _field_type(node: ast.SyntaxNode, value: Scalar) -> str:
    """Return the storage type of a scalar field: its declared type, or float."""
    type_ = node.type if isinstance(node, ast.Cast) else value.type
    if type_ is None:
        text = "a field needs a type: write uint32(...), or declare a variable"
        expect(value.value.type == "f32", text, node.pos)
        return "f32"
    allowed = {"float": "f32", "uint8": "u8", "uint16": "u16", "uint32": "u32"}
    text = f"a field must be float, uint8, uint16 or uint32, not {type_}"
    expect(type_.base in allowed, text, node.pos)
    return allowed[type_.base]


def call_statement(x: Expressions, node: ast.Call) -> bool:
    """Emit an extract or a require. Return whether it has assigned the output."""
    decoding = x.signature.kind == "decode"
    if node.name == "extract":
        return _extract(x, node)
    if node.name != "require":
        text = f"{node.name}(...) alone does nothing; expected extract or require"
        raise CompileError(text, node.pos)
    good = len(node.args) == 2 and isinstance(node.args[1], ast.String)
    expect(good, 'require takes require(condition, "message")', node.pos)
    expect(decoding, "require is for decoders: it refuses a payload", node.pos)
    x.emit("require", [x.boolean(node.args[0])], message=node.args[1].value)
    return False


def _extract(x: Expressions, node: ast.Call) -> bool:
    source, target = x.signature.input, x.signature.output
    first, *args = node.args or (None,)
    good = x.signature.kind == "decode" and isinstance(first, ast.Name) and first.name == source
    expect(good, f"extract takes extract({source}, fields...) in a decoder", node.pos)
    if _pack_floats(x, tuple(args), target, f"pack_floats fills {target} itself") is not None:
        x.emit("unpack_floats", [], vec=[target])
        return True
    packed: list[tuple[str, list[Instr], list[str]]] = []
    for arg in args:
        inner, order, multiple = _pack_of(arg)
        form = _form(arg)
        if form in (*_INDICES, "pack_where"):
            expect_args(arg, 2 if form == "pack_where" else 1)
            inner = arg.args[0]
        expect(isinstance(inner, ast.Name), "extract fills variables; expected a name", arg.pos)
        value = x.env.get(inner.name)
        if isinstance(value, Scalar) and inner.name in x.signature.params:
            same = x.emit("eq", [_field(x, inner, value), value.value], "bool")
            message = f"{inner.name} must be the one that this decoder was made with"
            x.emit("require", [same], message=message)
            continue
        text = f"{inner.name} must be declared without a value, or be a parameter"
        expect(isinstance(value, ast.Declare), text, arg.pos)
        if form in _INDICES:
            packed.append(_extract_indices(x, form, inner))
        elif form == "pack_where":
            packed.append(_extract_where(x, inner, arg.args[1]))
        else:
            _extract_field(x, inner, order, multiple)
    x.emit("end_of_payload", [])
    for op, numbers, vectors in packed:
        x.emit(op, numbers, vec=vectors)
    return False


def _field(x: Expressions, node: ast.Name, value: Scalar) -> Instr:
    elem = _field_type(node, value)
    return x.emit("field", [], "f32" if elem == "f32" else "i64", elem=elem)


def _extract_field(x: Expressions, node: ast.Name, order: str, multiple: int) -> None:
    declaration = x.env.get(node.name)
    type_ = declaration.type
    if not declaration.vector:
        value = _field(x, node, Scalar(x.n, type_))
        if type_.base == "uint32":
            value = x.cast(value, "u32")
        x.env.assign(node.name, Scalar(value, type_))
        return
    size = _field_size(x, declaration)
    name = x.new_vector(node.name, storage(type_), size, "field")
    x.vectors[name].order, x.vectors[name].multiple = order, multiple
    x.emit("field_vector", [size], vec=[name])
    x.env.assign(node.name, Vec(name, type_))


def _field_size(x: Expressions, declaration: ast.Declare) -> Instr:
    """Return the elements of a vector in the payload: as many as the gradient's, or fewer."""
    if declaration.size is None:
        return x.n
    size = x.whole(declaration.size)
    x.limit(size, declaration.name)
    return size


def _extract_indices(
    x: Expressions, form: str, node: ast.Name
) -> tuple[str, list[Instr], list[str]]:
    """Take the bytes of indices from the payload; return the operation that unpacks them."""
    name, declaration = node.name, x.env.get(node.name)
    type_ = declaration.type
    good = declaration.vector and storage(type_) == "i32"
    expect(good, f"{name} must be a vector of int: indices", node.pos)
    count = _field_size(x, declaration)
    numbers = [count]
    if form == "pack_gaps":
        size = x.emit("field", [], "i64", elem="u32")
        numbers.append(size)
    else:
        size = x.emit("ascending_bytes", [count, x.n], "i64")
    data = _new_packed(x, name, "u<8>", size, "field")
    x.emit("field_vector", [size], vec=[data])
    index = x.new_vector(name, "i32", count)
    x.env.assign(name, Vec(index, type_))
    return _INDICES[form], numbers, [index, data]


def _extract_where(
    x: Expressions, node: ast.Name, mask: ast.SyntaxNode
) -> tuple[str, list[Instr], list[str]]:
    """Take bits under a mask from the payload; return the operation that spreads them."""
    name, declaration = node.name, x.env.get(node.name)
    type_ = declaration.type
    good = declaration.vector and declaration.size is None and storage(type_) == "u<1>"
    expect(good, f"{name} must be {_PLANE}", node.pos)
    value = x.env.get(mask.name) if isinstance(mask, ast.Name) else None
    fields = {node.vec[0]: node for node in x.body if getattr(node, "op", "") == "field_vector"}
    good = isinstance(value, Vec) and value.name in fields and _is_plane(x, value.name)
    expect(good, _NO_MASK, mask.pos)
    fields[value.name].attrs["zeros"] = True  # one payload for one gradient
    count = x.emit("count_where", [], "i64", [value.name])
    data = _new_packed(x, name, "u<1>", count, "field")
    x.emit("field_vector", [count], vec=[data], zeros=True)
    bits = x.new_vector(name, "u<1>", x.n)
    x.env.assign(name, Vec(bits, type_))
    return "unpack_where", [], [bits, data, value.name]
