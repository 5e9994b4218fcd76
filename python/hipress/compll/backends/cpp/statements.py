"""C++ of scalars, operations on whole vectors and payload fields, in a function's own scope.

STATEMENTS has a function for each operation; the operation's lines go to the context.
"""

from __future__ import annotations

from hipress.compll.backends.common.function import FIELD
from hipress.compll.backends.common.text import quoted
from hipress.compll.backends.cpp.context import FunctionContext
from hipress.compll.ir.ir import FIELD_BYTES, Instr


def write(context: FunctionContext, instr: Instr) -> None:
    """Writes one instruction of a function."""
    if instr.vec and instr.vec[0] in context.selected and instr.op == "sort":
        return  # of the sorted vector only one element is wanted
    if instr.op == "compact" and instr.vec[1] in context.filters:
        return  # done where the mask is made
    special = context.statements.get(instr.op) or STATEMENTS.get(instr.op)
    if special is not None:
        special(context, instr)
    elif instr.op == "step":
        context.define(instr, "static_cast<int64_t>(call.step)")
    elif instr.op not in ("const", "param", "n"):
        context.define(instr, context.expression(instr))
    context.known.add(instr.id)


def _fail(text: str, *values: str) -> str:
    """Refuses the payload."""
    return f"return Fail(call, {', '.join([quoted(text), *values])});"


def _bad_indices() -> str:
    return _fail(
        "must have indices that ascend and are below %lld", "static_cast<long long>(n)"
    )


def _vector(context: FunctionContext, name: str) -> str:
    return f"{context.memory(name)}, {context.size(name)}"


# Whole vectors ----------------------------------------------------------------------


def _element(context: FunctionContext, instr: Instr) -> None:
    name, at = instr.vec[0], context.value(instr.args[0])
    if name in context.selected:
        source = _vector(context, context.selected[name])
        context.define(instr, f"NthElement({source}, {at}, &arena)")
    else:
        context.define(instr, f"Element({_vector(context, name)}, {at})")


# Operations that are one call: C++ of the value, if there is one, and of the call. {m1} is the
# memory of vector 1, {n1} its size, {a0} operand 0, {value} the value.
_CALLS = {
    "topk": ("Clip({a0}, {n1})", "TopK({m1}, {n1}, {value}, &arena, {m0})"),
    "sort": ("", "Sort({m1}, {n1}, {m0})"),
    "pack_ascending": ("AscendingBytes({n1}, n)", "PackAscending({m1}, {n1}, n, {m0})"),
    "pack_where": ("CountBits({m2}, {n2})", "PackWhere({m1}, {m2}, {n2}, {m0})"),
    "unpack_where": ("", "UnpackWhere({m1}, {n1}, {m2}, {n2}, {m0})"),
    "compact": ("CountBits({m1}, {n1})", "Compact({m1}, {n1}, {m0})"),
}


def _call(context: FunctionContext, instr: Instr) -> None:
    target, *sources = instr.vec
    names = {f"a{k}": context.value(arg) for k, arg in enumerate(instr.args)}
    for k, name in enumerate(sources, 1):
        names |= {f"m{k}": context.memory(name), f"n{k}": context.size(name)}
    value, call = _CALLS[instr.op]
    if value:
        context.allocate_counted(instr, value.format(**names))
        names["value"] = context.value(instr)
    else:
        context.allocate(target)
    context.lines.append(f"{call.format(m0=context.memory(target), **names)};")


def _random_indices(context: FunctionContext, instr: Instr) -> None:
    size = f"Clip({context.value(instr.args[0])}, n)"
    context.allocate_counted(instr, f"Clip({context.value(instr.args[1])}, {size})")
    target = context.memory(instr.vec[0])
    strata, arena = ("Strata", "") if instr.attrs["run"] == 1 else ("SampleRuns", "&arena, ")
    context.lines.append(
        f"{strata}({size}, {context.value(instr)}, key, {instr.attrs['site']}, {arena}{target});"
    )


def _unpack_ascending(context: FunctionContext, instr: Instr) -> None:
    target, data = instr.vec
    context.allocate(target)
    call = f"{context.memory(data)}, {context.size(target)}, n, {context.memory(target)}"
    context.lines.append(f"if (!UnpackAscending({call})) {_bad_indices()}")


def _count_where(context: FunctionContext, instr: Instr) -> None:
    context.define(instr, f"CountBits({_vector(context, instr.vec[0])})")


def _scatter(context: FunctionContext, instr: Instr) -> None:
    target, index = instr.vec[:2]
    field = "ReadField<{}>(reinterpret_cast<const uint8_t*>({} + j))".format
    count, at = context.size(index), field(context.c_type(index), context.memory(index))
    if len(instr.vec) > 2:
        value = field("float", context.memory(instr.vec[2]))
    else:
        value = context.value(instr.args[0])
    place = f"{context.memory(target)}[{at}]"
    conditions = [context.has(target)]
    if context.is_output(target):
        value = f"part.add ? {place} + {value} : {value}"
        conditions = ["!call.check_only"]
    loop = f"for (int64_t j = 0; j < {count}; ++j) {place} = {value};"
    context.lines.append(f"if ({conditions[0]}) {loop}" if conditions[0] else loop)


# Payloads ----------------------------------------------------------------------


def _emit(context: FunctionContext, instr: Instr) -> None:
    lines = context.lines
    lines.append("int64_t offset = 0;")
    for kind, what in instr.attrs["fields"]:
        at = f"{context.payload} + offset"
        if kind != "vector":
            c_type, value = FIELD[kind], context.value(instr.args[what])
            lines.append(f"WriteField<{c_type}>({at}, static_cast<{c_type}>({value}));")
            lines.append(f"offset += {FIELD_BYTES[kind]};")
            continue
        size = context.bytes_of(what)
        if what not in context.placed:
            memory = context.memory(what)
            lines.append(f"std::memcpy({at}, {memory}, static_cast<size_t>({size}));")
        lines.append(f"offset += {size};")


def _need(size: str) -> str:
    fail = _fail("must have at least %lld bytes", f"static_cast<long long>(offset + {size})")
    return f"if (!Have(part.bytes, offset, {size})) {fail}"


def _field(context: FunctionContext, instr: Instr) -> None:
    elem = instr.attrs["elem"]
    context.lines.append(_need(str(FIELD_BYTES[elem])))
    context.define(instr, f"ReadField<{FIELD[elem]}>({context.payload} + offset)")
    context.lines.append(f"offset += {FIELD_BYTES[elem]};")


def _field_vector(context: FunctionContext, instr: Instr) -> None:
    name = instr.vec[0]
    c_type, size = f"const {context.c_type(name)}*", context.bytes_of(name)
    pointer = context.pointers[name] = f"m_{name}"
    context.lines += [
        _need(f"({size})"),
        f"{c_type} const {pointer} = reinterpret_cast<{c_type}>({context.payload} + offset);",
        f"offset += {size};",
    ]
    if instr.attrs.get("zeros"):
        fail = _fail("must have zeros where bits pad a byte")
        context.lines.append(f"if (HasPadding({pointer}, {context.size(name)})) {fail}")
    if name in context.index_fields:
        valid = f"ValidIndices({pointer}, {context.size(name)}, n)"
        context.lines.append(f"if (!{valid}) {_bad_indices()}")


def _end_of_payload(context: FunctionContext, instr: Instr) -> None:
    fail = _fail("must have %lld bytes", "static_cast<long long>(offset)")
    context.lines.append(f"if (offset != part.bytes) {fail}")


def _require(context: FunctionContext, instr: Instr) -> None:
    fail = _fail("%s", quoted(instr.attrs["message"]))
    context.lines.append(f"if (!{context.value(instr.args[0])}) {fail}")


STATEMENTS = {
    **dict.fromkeys(_CALLS, _call), "element": _element, "random_indices": _random_indices,
    "unpack_ascending": _unpack_ascending, "count_where": _count_where, "scatter": _scatter,
    "emit": _emit, "field": _field, "field_vector": _field_vector,
    "end_of_payload": _end_of_payload, "require": _require,
}  # fmt: skip
