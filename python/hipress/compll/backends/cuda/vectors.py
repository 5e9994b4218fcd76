"""CUDA of operations on whole vectors and of payload fields, as steps (sparse.cuh, payload.cuh).

OPERATIONS has a function for each operation, which adds to the context's steps.
"""

from __future__ import annotations

from collections.abc import Callable

from hipress.compll.backends.common.function import FIELD
from hipress.compll.backends.cuda.context import FunctionContext, Step
from hipress.compll.backends.cuda.expressions import ELEMENT
from hipress.compll.errors import CompileError
from hipress.compll.ir.ir import FIELD_BYTES, Instr
from hipress.compll.passes.vector_uses import only_elements, operations

_BITS_EACH = 32 * 8192
_ARRAY = "uint32_t", "kMaxBlocks * 4"


def number_text(context: FunctionContext, instr: Instr) -> str:
    """CUDA of a number that every thread computes, or a statement that reads the payload."""
    op = instr.op
    if op == "step":
        return "static_cast<int64_t>(call.step)"
    if op == "topk":
        return f"Clip({context.value(instr.args[0])}, {context.size(instr.vec[1])})"
    if op == "random_indices":
        size = f"Clip({context.value(instr.args[0])}, n)"
        return f"Clip({context.value(instr.args[1])}, {size})"
    if op == "pack_ascending":
        return f"AscendingBytes({context.size(instr.vec[1])}, n)"
    if op == "field":
        return f"reader.Field<{FIELD[instr.attrs['elem']]}>()"
    if op == "field_vector":
        name = instr.vec[0]
        field = f"f_{context.plain(name)}"
        zeros = f" reader.Zeros({field}, {context.size(name)});" if "zeros" in instr.attrs else ""
        return f"const uint8_t* const {field} = reader.Take({context.bytes_of(name)});{zeros}"
    if op == "end_of_payload":
        return "reader.End();"
    if op == "require":
        number = operations(context.function, "require").index(instr)
        return f"reader.Require({context.value(instr.args[0])}, {number});"
    return context.expression(instr)


def _vector(context: FunctionContext, name: str) -> str:
    return f"{context.memory(name)}, {context.size(name)}"


def _for_each(count: str, statement: str, index: str = "i") -> str:
    return f"ForEach(team, {count}, [&](int64_t {index}) {{ {statement} }});"


# Numbers and payload fields ---------------------------------------------------------------


def _read_by_every_step(context: FunctionContext, instr: Instr) -> None:
    """See number_text()."""


def _end_of_payload(context: FunctionContext, instr: Instr) -> None:
    """A decoder that scatters looks at the whole payload's indices before it writes."""
    if context.index_fields:
        _check_order(context, context.index_fields)


def _require(context: FunctionContext, instr: Instr) -> None:
    if not context.everywhere(instr.args[0]):
        raise CompileError("for CUDA, require can only look at numbers of the payload")


def _check_order(context: FunctionContext, names: list[str]) -> None:
    """A step that looks whether indices ascend and are below n."""
    step = context.new_step(context.function.vectors[names[0]].size)
    for name in names:
        c_type = "uint32_t" if context.function.vectors[name].elem == "u32" else "int32_t"
        bad = f"BadIndices(team, {_vector(context, name)}, n, {c_type}())"
        step.body.append(f"if ({bad}) atomicOr(&control.disorder, 1u);")
    step.serial += _verdict("control.disorder != 0")


def _verdict(bad: str) -> list[str]:
    """What the last block says of the indices. No later step does anything if they are bad."""
    return [
        f"control.bad = {bad};",
        "call.status[0] = control.bad != 0 ? kBadIndices : kFine;",
        "call.status[1] = control.bad != 0 ? n : 0;",
    ]


def _element(context: FunctionContext, instr: Instr) -> None:
    name = instr.vec[0]
    at, size = context.value(instr.args[0]), context.size(name)
    source = context.unsorted.get(name)
    if source is None:
        context.define(instr, f"Element({context.memory(name)}, {size}, {at})")
        return

    def rank() -> str:
        # The value with `at` smaller ones is the (size - at)-th largest: no need to sort.
        size = context.size(name)
        return f"{size} - Clip({context.value(instr.args[0])}, {size} - 1)"

    selection = _select(context, source, context.function.vectors[name].size, rank)
    size = context.size(name)
    context.define(instr, f"{size} > 0 ? FromOrdered({selection}.prefix) : 0.0f")


# Ordered results ----------------------------------------------------------------------


def _words(context: FunctionContext, name: str) -> str:
    """Bits of a temp, for functions that take them 32 at a time."""
    return f"MaskWords{{{_vector(context, name)}}}"


def _payload_words(context: FunctionContext, name: str) -> str:
    """The same of a field of the payload."""
    return f"PayloadWords{{{context.memory(name)}, {context.bytes_of(name)}}}"


def _count(context: FunctionContext, instr: Instr, mask: str, words: Callable) -> str:
    """A step whose number is how many bits are set; what lies before each block's part."""
    counts = context.scratch(f"counts{context.number(instr)}", *_ARRAY)
    step = context.new_step(context.function.vectors[mask].size, _BITS_EACH)
    call = f"{words(context, mask)}, {context.size(mask)}, {counts}"
    step.body.append(f"CountBits(team, shared, {call});")
    context.define(instr, f"ScanArray(shared, {counts}, team.Blocks())", joined=True)
    return counts


def _compact(context: FunctionContext, instr: Instr) -> None:
    target, mask = instr.vec
    size = context.function.vectors[mask].size
    counts = _count(context, instr, mask, _words)
    step = context.new_step(size, _BITS_EACH)
    context.allocate(target)
    write = f"{context.memory(target)}[j] = static_cast<int32_t>(i);"
    step.body.append(
        f"WriteBits(team, shared, {_words(context, mask)}, {context.value(size)}, {counts}, "
        f"[&](int64_t j, int64_t i) {{ {write} }});"
    )


def _clear_words(context: FunctionContext, target: str, count: str) -> str:
    write = f"reinterpret_cast<uint32_t*>({context.memory(target)})[w] = 0;"
    return _for_each(count, write, "w")


def _pack_where(context: FunctionContext, instr: Instr) -> None:
    target, bits, mask = instr.vec
    size = context.function.vectors[mask].size
    counts = _count(context, instr, mask, _words)
    context.allocate(target)
    count = f"Blocks({context.value(size)}, 32)"
    context.current.body.append(_clear_words(context, target, count))
    step = context.new_step(size, _BITS_EACH)
    words = f"{_words(context, bits)}, {_words(context, mask)}"
    call = f"{words}, {context.value(size)}, {counts}, {context.memory(target)}"
    step.body.append(f"PackWhere(team, shared, {call});")


def _count_where(context: FunctionContext, instr: Instr) -> None:
    context.counts[instr.id] = _count(context, instr, instr.vec[0], _payload_words)
    context.current.counts = True


def _unpack_where(context: FunctionContext, instr: Instr) -> None:
    target, packed, mask = instr.vec
    vectors = context.function.vectors
    step = context.new_step(vectors[mask].size, _BITS_EACH)
    context.allocate(target)
    words = f"{_payload_words(context, packed)}, {_payload_words(context, mask)}"
    counts = context.counts[vectors[packed].size.id]
    call = f"{words}, {context.size(mask)}, {counts}, {context.memory(target)}"
    step.body.append(f"UnpackWhere(team, shared, {call});")


def _pack_ascending(context: FunctionContext, instr: Instr) -> None:
    target, index = instr.vec
    count = context.function.vectors[index].size
    if not context.everywhere(instr):
        context.define(instr, f"AscendingBytes({context.value(count)}, n)")
    step = context.new_step(count)
    context.allocate(target)
    step.body.append(_clear_words(context, target, f"Blocks({context.value(instr)}, 4)"))
    step = context.new_step(count)
    call = f"{context.memory(index)}, {context.value(count)}, n, {context.memory(target)}"
    step.body.append(f"PackAscending(team, {call});")


def _unpack_ascending(context: FunctionContext, instr: Instr) -> None:
    target, data = instr.vec
    size = context.function.vectors[target].size
    counts = context.scratch(f"counts{context.number(instr)}", *_ARRAY)
    arguments = f"team, shared, {context.memory(data)}, {{}}, n, {counts}"
    step = context.new_step(size)
    step.body.append(f"CountAscending({arguments.format(context.value(size))});")
    step.joins.append(f"const int64_t found = ScanArray(shared, {counts}, team.Blocks());")
    step.serial += _verdict(f"found != {context.value(size)}")
    step = context.new_step(size)
    context.allocate(target)
    call = f"{arguments.format(context.value(size))}, {context.memory(target)}"
    step.body.append(f"UnpackAscending({call});")
    _check_order(context, [target])


def _select(context: FunctionContext, source: str, size: Instr, k: Callable[[], str]) -> str:
    """Three steps that find the k-th largest value; the name of the state."""
    state = f"control.selection{context.selections}"
    context.selections += 1
    for digit in range(3):
        step = context.new_step(size)
        call = f"team, shared, {context.memory(source)}, {context.value(size)}, &{state}"
        step.body.append(f"CountDigit<{digit}>({call});")
        step.joins.append(f"PickDigit<{digit}>(shared, {k()}, &{state});")
    return state


def _topk(context: FunctionContext, instr: Instr) -> None:
    target, source = instr.vec
    size = context.function.vectors[source].size
    count = f"Clip({context.value(instr.args[0])}, {context.value(size)})"
    if not context.everywhere(instr):
        context.define(instr, count)
    state = _select(context, source, size, lambda: context.value(instr))
    step = context.new_step(size)
    arguments = f"team, shared, {context.memory(source)}, {context.value(size)}, &{state}"
    step.body.append(f"CountChosen({arguments});")
    step.joins.append(f"ScanChosen(team, shared, &{state});")
    step = context.new_step(size)
    context.allocate(target)
    arguments = f"team, shared, {context.memory(source)}, {context.value(size)}, &{state}"
    step.body.append(f"WriteChosen({arguments}, {context.memory(target)});")


def _sort(context: FunctionContext, instr: Instr) -> None:
    target, source = instr.vec
    if only_elements(context.function, instr):
        context.unsorted[target] = source
        return
    size = context.function.vectors[source].size
    number, bound = context.number(instr), context.bound(size)
    keys = [context.scratch(f"keys{number}_{k}", "uint32_t", f"{bound} * 4") for k in range(2)]
    counts = context.scratch(f"digits{number}", "uint32_t", "kDigits * kSortBlocks * 4")

    def each(statement: Callable[[], str]) -> None:
        step = context.new_step(size)
        step.body.append(_for_each(context.value(size), statement()))

    def sorted_element() -> str:
        context.allocate(target)
        return f"{context.put(target, 'i', f'FromOrdered({keys[0]}[i])')};"

    def part(name: str, keys: str, digit: int, more: str) -> Step:
        step = context.new_step(size)
        step.most_blocks = "kSortBlocks"
        call = f"team, shared, {keys}, {context.value(size)}, {8 * digit}, {counts}{more}"
        step.body.append(f"{name}SortDigit({call});")
        return step

    each(lambda: f"{keys[0]}[i] = Ordered({context.get(source, 'i')});")
    scan = f"ScanArray(shared, {counts}, int64_t(kDigits) * team.Blocks());"
    for digit in range(4):
        one, two = keys[digit % 2], keys[(digit + 1) % 2]
        part("Count", one, digit, "").joins.append(scan)
        part("Move", one, digit, f", {two}")
    each(sorted_element)


def _random_indices(context: FunctionContext, instr: Instr) -> None:
    target = instr.vec[0]
    step = context.new_step(instr)
    step.key = True
    context.allocate(target)
    put = context.put(target, "j", "static_cast<int32_t>(index)")
    run, size = instr.attrs["run"], context.value(instr.args[0])
    strata = "ForStrata" if run == 1 else f"ForRuns<{run}>"
    step.body.append(
        f"{strata}(team, Clip({size}, n), {context.value(instr)}, key, "
        f"{instr.attrs['site']}, [&](int64_t j, int64_t index) {{ {put}; }});"
    )


def _scatter(context: FunctionContext, instr: Instr) -> None:
    target, index = instr.vec[:2]
    step = context.current
    if step.scatters != index:  # else one pass over the indices for all states
        step = context.new_step(context.function.vectors[index].size)
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


def _emit(context: FunctionContext, instr: Instr) -> None:
    if not context.steps:
        context.new_step()
    fields = instr.attrs["fields"]
    vectors = [what for kind, what in fields if kind == "vector"]
    for name in vectors:
        if name not in context.placed:
            _copy(context, name)
    used = [*instr.args, *(context.function.vectors[name].size for name in vectors)]
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


def _copy(context: FunctionContext, name: str) -> None:
    """A step that copies a vector from the workspace, or from a state, into the payload."""
    vector = context.function.vectors[name]
    step = context.new_step(vector.size)
    to = f"call.payload + {context.place(name, '0')}"
    if vector.packed or vector.bits != 32:
        source = f"reinterpret_cast<const uint8_t*>({context.memory(name)})[j]"
        line = _for_each(context.bytes_of(name), f"({to})[j] = {source};", "j")
    else:
        write = f"Write<{ELEMENT[vector.elem]}>({to}, j, {context.memory(name)}[j]);"
        line = _for_each(context.size(name), write, "j")
    step.body.append(line)


OPERATIONS = {
    "field": _read_by_every_step, "field_vector": _read_by_every_step,
    "end_of_payload": _end_of_payload, "require": _require, "element": _element,
    "compact": _compact, "pack_where": _pack_where, "count_where": _count_where,
    "unpack_where": _unpack_where, "pack_ascending": _pack_ascending,
    "unpack_ascending": _unpack_ascending, "topk": _topk, "sort": _sort,
    "random_indices": _random_indices, "scatter": _scatter, "emit": _emit,
}  # fmt: skip
