"""C++ of operations on whole vectors and of payload fields, in a function's own scope.

STATEMENTS has a function for each operation, which adds the operation's lines to the context.
"""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import COUNTS, FIELD
from hipress.compression.compiler.backends.common.text import quoted
from hipress.compression.compiler.backends.cpp.context import BAD_INDICES, CppContext, refuse
from hipress.compression.compiler.ir.ir import FIELD_BYTES, Instr, has_effect

# Whole vectors ----------------------------------------------------------------------

# Operations that are one call: C++ of the value, if there is one, and of the call that fills
# vector 0, which is of that size; see CStyleEmitter.fill().
_CALLS = {
    "topk": (COUNTS["topk"], "TopK({v1}, {value}, &arena, {m0});"),
    "sort": ("", "Sort({v1}, {m0});"),
    "pack_ascending": (COUNTS["pack_ascending"], "PackAscending({v1}, n, {m0});"),
    "pack_gaps": ("", "PackGaps({v1}, n, {a0}, {m0});"),
    "pack_where": ("CountBits({v2})", "PackWhere({m1}, {v2}, {m0});"),
    "unpack_where": ("", "UnpackWhere({v1}, {v2}, {m0});"),
    "unpack_ascending": ("", "if (!UnpackAscending({m1}, {n0}, n, {m0})) {bad_indices}"),
    "unpack_gaps": ("", "if (!UnpackGaps({m1}, {b1}, {n0}, n, {m0})) {bad_indices}"),
    "compact": ("CountBits({v1})", "Compact({v1}, {m0});"),
    "random_indices": (
        COUNTS["random_indices"],
        "{draw}(Clip({a0}, n), {value}, key, {site}, {arena}{m0});",
    ),
}


def _call(context: CppContext, instr: Instr) -> None:
    value, call = _CALLS[instr.op]
    if value:
        context.allocate_counted(instr, context.fill(value, instr))
    else:
        context.allocate(instr.vec[0])
    runs = instr.attrs.get("run", 1) > 1
    context.lines.append(
        context.fill(
            call,
            instr,
            bad_indices=BAD_INDICES,
            draw="SampleRuns" if runs else "Strata",
            arena="&arena, " if runs else "",
            site=instr.attrs.get("site"),
        )
    )


def _element(context: CppContext, instr: Instr) -> None:
    text = "Element({v0}, {a0})"
    if instr.vec[0] in context.selected:
        source = context.vector_texts["v"](context.selected[instr.vec[0]])
        text = f"NthElement({source}, {{a0}}, &arena)"
    context.define(instr, context.fill(text, instr))


def _count_where(context: CppContext, instr: Instr) -> None:
    context.define(instr, context.fill("CountBits({v0})", instr))


def _gaps_bytes(context: CppContext, instr: Instr) -> None:
    context.define(instr, context.fill("GapsBytes({v0}, n)", instr))


def _pack_floats(context: CppContext, instr: Instr) -> None:
    """Make the payload's one field in place."""
    context.define(instr, "PackFloats(call)")
    context.placed.add(instr.vec[0])


def _transform(context: CppContext, instr: Instr) -> None:
    """Write a transform, which a check of a payload skips unless it uses the result."""
    context.allocate(instr.vec[0])
    inverse = "true" if instr.op == "idct" else "false"
    line = context.fill("Cosines<{inverse}>(call, {v1}, {a0}, {m0});", instr, inverse=inverse)
    body = context.function.body
    later = [node for node in body[body.index(instr) :] if isinstance(node, Instr)]
    looked_at = context.unproven or any(map(has_effect, later))
    if context.is_decode and not looked_at:
        line = f"if (!call.check_only) {line}"
    context.lines.append(line)


def _scatter(context: CppContext, instr: Instr) -> None:
    target, index = instr.vec[:2]
    field = "ReadField<{}>(reinterpret_cast<const uint8_t*>({} + j))".format
    count, at = context.size(index), field(context.c_type(index), context.memory(index))
    if len(instr.vec) > 2:
        value = field("float", context.memory(instr.vec[2]))
    else:
        value = context.value(instr.args[0])
    place = f"{context.memory(target)}[{at}]"
    condition, inside = context.has(target), ""
    if context.is_output(target):
        value = f"part.add ? {place} + {value} : {value}"
        condition = "!call.check_only"
    elif index in context.unproven:
        at = f"static_cast<int64_t>({at})"
        inside = f"if ({at} >= 0 && {at} < n) "
    loop = f"for (int64_t j = 0; j < {count}; ++j) {inside}{place} = {value};"
    context.lines.append(f"if ({condition}) {loop}" if condition else loop)


# Payloads ----------------------------------------------------------------------


def _emit(context: CppContext, instr: Instr) -> None:
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
    fail = refuse("must have at least %lld bytes", f"static_cast<long long>(offset + {size})")
    return f"if (!Have(part.bytes, offset, {size})) {fail}"


def _field(context: CppContext, instr: Instr) -> None:
    elem = instr.attrs["elem"]
    context.lines.append(_need(str(FIELD_BYTES[elem])))
    context.define(instr, f"ReadField<{FIELD[elem]}>({context.payload} + offset)")
    context.lines.append(f"offset += {FIELD_BYTES[elem]};")


def _field_vector(context: CppContext, instr: Instr) -> None:
    name = instr.vec[0]
    c_type, size = f"const {context.c_type(name)}*", context.bytes_of(name)
    pointer = context.pointers[name] = f"m_{name}"
    context.lines += [
        _need(f"({size})"),
        f"{c_type} const {pointer} = reinterpret_cast<{c_type}>({context.payload} + offset);",
        f"offset += {size};",
    ]
    if instr.attrs.get("zeros"):
        fail = refuse("must have zeros where bits pad a byte")
        context.lines.append(f"if (HasPadding({pointer}, {context.size(name)})) {fail}")
    if context.is_decode and name in context.unproven:
        context.check_indices([name])


def _end_of_payload(context: CppContext, instr: Instr) -> None:
    fail = refuse("must have %lld bytes", "static_cast<long long>(offset)")
    context.lines.append(f"if (offset != part.bytes) {fail}")


def _require(context: CppContext, instr: Instr) -> None:
    fail = refuse("%s", quoted(instr.attrs["message"]))
    context.lines.append(f"if (!{context.value(instr.args[0])}) {fail}")


STATEMENTS = {
    **dict.fromkeys(_CALLS, _call),
    "element": _element,
    "count_where": _count_where,
    "gaps_bytes": _gaps_bytes,
    "pack_floats": _pack_floats,
    "scatter": _scatter,
    "emit": _emit,
    "field": _field,
    "field_vector": _field_vector,
    "dct": _transform,
    "idct": _transform,
    "end_of_payload": _end_of_payload,
    "require": _require,
}
