"""CUDA of operations on whole vectors and of payload fields, as steps (sparse.cuh, packing.cuh).

OPERATIONS has a function for each operation, which adds to the context's steps.
"""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import COUNTS, FIELD
from hipress.compression.compiler.backends.cuda import packing, selection
from hipress.compression.compiler.backends.cuda.context import CudaContext
from hipress.compression.compiler.backends.cuda.expressions import ELEMENT
from hipress.compression.compiler.errors import CompileError
from hipress.compression.compiler.ir.ir import FIELD_BYTES, Instr
from hipress.compression.compiler.passes.vector_uses import operations

# Numbers that every thread computes, and statements that read the payload.
_NUMBERS = {
    "step": "static_cast<int64_t>(call.step)",
    **COUNTS,
    "end_of_payload": "reader.End();",
}


def number_text(context: CudaContext, instr: Instr) -> str:
    """Return the CUDA of a number that every thread computes, or a statement that reads the
    payload."""
    op = instr.op
    if op in _NUMBERS:
        return context.fill(_NUMBERS[op], instr)
    if op == "field":
        return f"reader.Field<{FIELD[instr.attrs['elem']]}>()"
    if op == "field_vector":
        field = f"f_{context.plain(instr.vec[0])}"
        zeros = " reader.Zeros({field}, {n0});" if "zeros" in instr.attrs else ""
        text = f"const uint8_t* const {{field}} = reader.Take({{b0}});{zeros}"
        return context.fill(text, instr, field=field)
    if op == "require":
        number = operations(context.function, "require").index(instr)
        return f"reader.Require({context.value(instr.args[0])}, {number});"
    return context.expression(instr)


# Numbers and payload fields ---------------------------------------------------------------


def _read_by_every_step(context: CudaContext, instr: Instr) -> None:
    """Do nothing here; see number_text()."""


def _end_of_payload(context: CudaContext, instr: Instr) -> None:
    """Check all indices of the payload, if the decoder scatters, before it writes."""
    fields = [name for name in context.unproven if context.is_field(name)]
    if fields:
        context.check_indices(fields)


def _require(context: CudaContext, instr: Instr) -> None:
    if not context.everywhere(instr.args[0]):
        raise CompileError("for CUDA, require can only look at numbers of the payload")


def _element(context: CudaContext, instr: Instr) -> None:
    name = instr.vec[0]
    source, text = context.unsorted.get(name), context.fill("Element({v0}, {a0})", instr)
    if source is None:
        context.define(instr, text)
        return
    # The value with `at` smaller ones is the (size - at)-th largest: no need to sort.
    rank = "{n0} - Clip({a0}, {n0} - 1)"
    chosen = selection.select(context, instr, source, context.count(name), rank)
    text = f"{{n0}} > 0 ? FromOrdered({chosen}.prefix) : 0.0f"
    context.define(instr, context.fill(text, instr))


# Transforms ------------------------------------------------------------------------------


def _transform(context: CudaContext, instr: Instr) -> None:
    inverse = "true" if instr.op == "idct" else "false"
    text = f"Cosines<{inverse}>(team, shared, {{v1}}, {{a0}}, kCosines, {{m0}})"
    context.add_step(instr, context.count(instr.vec[1]), text, True)


# Indices --------------------------------------------------------------------------------


def _random_indices(context: CudaContext, instr: Instr) -> None:
    run, site = instr.attrs["run"], str(instr.attrs["site"])
    step = context.new_step(instr)
    step.key = True
    context.allocate(instr.vec[0])
    step.body.append(
        context.fill(
            "{strata}(team, Clip({a0}, n), {value}, key, {site}, "
            "[&](int64_t j, int64_t index) {{ {put}; }});",
            instr,
            site=site,
            strata="ForStrata" if run == 1 else f"ForRuns<{run}>",
            put=context.put(instr.vec[0], "j", "static_cast<int32_t>(index)"),
        )
    )


def _scatter(context: CudaContext, instr: Instr) -> None:
    target, index = instr.vec[:2]
    step = context.current
    if step.scatters != index:  # otherwise one pass over the indices for all states
        step = context.new_step(context.count(index))
        step.scatters = index
    if len(instr.vec) > 2:
        value = context.get(instr.vec[2], "j")
    else:
        value = context.value(instr.args[0])
    place = context.get(target, "i")
    there = " && ".join(filter(None, ("i >= 0 && i < n", context.kept(target))))
    if context.is_output(target):
        value = f"add ? {place} + {value} : {value}"
    step.body += [
        f"ForEach(team, {context.size(index)}, [&](int64_t j) {{",
        f"  const int64_t i = static_cast<int64_t>({context.get(index, 'j')});",
        f"  if ({there}) {context.put(target, 'i', value)};",
        "});",
    ]


# Payloads ----------------------------------------------------------------------


def _emit(context: CudaContext, instr: Instr) -> None:
    if not context.steps:
        context.new_step()
    fields = instr.attrs["fields"]
    vectors = [what for kind, what in fields if kind == "vector"]
    for name in vectors:
        if name not in context.placed:
            _copy(context, name)
    used = [*instr.args, *(context.count(name) for name in vectors)]
    last = context.steps[-1].defines
    late = any(not context.everywhere(number) and number.id in last for number in used)
    lines = ["int64_t offset = 0;"]
    for kind, what in fields:
        if kind == "vector":
            lines.append(f"offset += {context.bytes_of(what)};")
            continue
        bits = f"FieldBits(static_cast<{FIELD[kind]}>({context.value(instr.args[what])}))"
        size = FIELD_BYTES[kind]
        lines.append(f"WriteBytes<{size}>(call.payload + offset, {bits}, {size});")
        lines.append(f"offset += {size};")
    lines.append("*call.bytes = offset;")
    (context.current.serial if late else context.current.first).extend(lines)


def _copy(context: CudaContext, name: str) -> None:
    """Add a step that copies a vector from the workspace, or a state, into the payload."""
    vector = context.function.vectors[name]
    step = context.new_step(vector.size)
    to = f"call.payload + {context.field_offset(name, '0')}"
    if vector.packed or vector.bits != 32:
        source = f"reinterpret_cast<const uint8_t*>({context.memory(name)})[j]"
        count, write = context.bytes_of(name), f"({to})[j] = {source};"
    else:
        write = f"Write<{ELEMENT[vector.elem]}>({to}, j, {context.memory(name)}[j]);"
        count = context.size(name)
    step.body.append(f"ForEach(team, {count}, [&](int64_t j) {{ {write} }});")


OPERATIONS = {
    **packing.OPERATIONS,
    **selection.OPERATIONS,
    "field": _read_by_every_step,
    "field_vector": _read_by_every_step,
    "end_of_payload": _end_of_payload,
    "require": _require,
    "element": _element,
    "random_indices": _random_indices,
    "scatter": _scatter,
    "emit": _emit,
    "dct": _transform,
    "idct": _transform,
}
