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


# Numbers that every thread computes, and statements that read the payload.
_NUMBERS = {
    "step": "static_cast<int64_t>(call.step)",
    "topk": "Clip({a0}, {n1})",
    "random_indices": "Clip({a1}, Clip({a0}, n))",
    "pack_ascending": "AscendingBytes({n1}, n)",
    "end_of_payload": "reader.End();",
}


def number_text(context: FunctionContext, instr: Instr) -> str:
    """CUDA of a number that every thread computes, or a statement that reads the payload."""
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


def _step(
    context: FunctionContext, instr: Instr, size: Instr, text: str, allocate: bool = False,
    each: int = 8192, **more: str,
) -> Step:  # fmt: skip
    """A step that is one statement; see FunctionNames.fill().

    :param size: {size} of the statement, elements that say how many blocks are of use
    :param allocate: vector 0 is made here
    """
    step = context.new_step(size, each)
    if allocate:
        context.allocate(instr.vec[0])
    step.body.append(context.fill(f"{text};", instr, size=context.value(size), **more))
    return step


def _size(context: FunctionContext, name: str) -> Instr:
    return context.function.vectors[name].size


# Numbers and payload fields ---------------------------------------------------------------


def _read_by_every_step(context: FunctionContext, instr: Instr) -> None:
    """See number_text()."""


def _end_of_payload(context: FunctionContext, instr: Instr) -> None:
    """A decoder that scatters checks all indices of the payload before it writes."""
    if context.index_fields:
        _check_order(context, context.index_fields)


def _require(context: FunctionContext, instr: Instr) -> None:
    if not context.everywhere(instr.args[0]):
        raise CompileError("for CUDA, require can only look at numbers of the payload")


def _check_order(context: FunctionContext, names: list[str]) -> None:
    """A step that checks that indices ascend and are below n."""
    step = context.new_step(_size(context, names[0]))
    for name in names:
        c_type = "uint32_t" if context.function.vectors[name].elem == "u32" else "int32_t"
        bad = f"BadIndices(team, {context.vector_texts['v'](name)}, n, {c_type}())"
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
    source, text = context.unsorted.get(name), context.fill("Element({v0}, {a0})", instr)
    if source is None:
        context.define(instr, text)
        return
    # The value with `at` smaller ones is the (size - at)-th largest: no need to sort.
    rank = "{n0} - Clip({a0}, {n0} - 1)"
    selection = _select(context, instr, source, _size(context, name), rank)
    text = f"{{n0}} > 0 ? FromOrdered({selection}.prefix) : 0.0f"
    context.define(instr, context.fill(text, instr))


# Ordered results ----------------------------------------------------------------------


def _count(context: FunctionContext, instr: Instr, mask: int, words: str) -> str:
    """A step whose number is how many bits are set; what lies before each block's part.

    :param mask: its number among the instruction's vectors
    """
    counts = context.scratch(f"counts{context.number(instr)}", *_ARRAY)
    text = f"CountBits(team, shared, {words}, {{n{mask}}}, {counts})"
    _step(context, instr, _size(context, instr.vec[mask]), text, each=_BITS_EACH)
    context.define(instr, f"ScanArray(shared, {counts}, team.Blocks())", joined=True)
    return counts


def _compact(context: FunctionContext, instr: Instr) -> None:
    counts = _count(context, instr, 1, "MaskWords{{{v1}}}")
    write = "{m0}[j] = static_cast<int32_t>(i);"
    text = (f"WriteBits(team, shared, MaskWords{{{{{{v1}}}}}}, {{size}}, {counts}, "
            f"[&](int64_t j, int64_t i) {{{{ {write} }}}})")  # fmt: skip
    _step(context, instr, _size(context, instr.vec[1]), text, True, _BITS_EACH)


def _pack_where(context: FunctionContext, instr: Instr) -> None:
    size = _size(context, instr.vec[2])
    counts = _count(context, instr, 2, "MaskWords{{{v2}}}")
    context.allocate(instr.vec[0])
    context.current.body.append(_clear_words(context, instr, "Blocks({n2}, 32)"))
    text = (f"PackWhere(team, shared, MaskWords{{{{{{v1}}}}}}, MaskWords{{{{{{v2}}}}}}, {{size}}, "
            f"{counts}, {{m0}})")  # fmt: skip
    _step(context, instr, size, text, each=_BITS_EACH)


def _count_where(context: FunctionContext, instr: Instr) -> None:
    context.counts[instr.id] = _count(context, instr, 0, "PayloadWords{{{m0}, {b0}}}")
    context.current.counts = True


def _unpack_where(context: FunctionContext, instr: Instr) -> None:
    counts = context.counts[_size(context, instr.vec[1]).id]
    text = ("UnpackWhere(team, shared, PayloadWords{{{m1}, {b1}}}, PayloadWords{{{m2}, {b2}}}, "
            "{n2}, {counts}, {m0})")  # fmt: skip
    _step(context, instr, _size(context, instr.vec[2]), text, True, _BITS_EACH, counts=counts)


def _clear_words(context: FunctionContext, instr: Instr, count: str) -> str:
    write = "reinterpret_cast<uint32_t*>({m0})[w] = 0;"
    return context.fill(f"ForEach(team, {count}, [&](int64_t w) {{{{ {write} }}}});", instr)


def _pack_ascending(context: FunctionContext, instr: Instr) -> None:
    count = _size(context, instr.vec[1])
    if not context.everywhere(instr):
        context.define(instr, context.fill("AscendingBytes({n1}, n)", instr))
    step = context.new_step(count)
    context.allocate(instr.vec[0])
    step.body.append(_clear_words(context, instr, "Blocks({value}, 4)"))
    _step(context, instr, count, "PackAscending(team, {v1}, n, {m0})")


def _unpack_ascending(context: FunctionContext, instr: Instr) -> None:
    target, size = instr.vec[0], _size(context, instr.vec[0])
    counts = context.scratch(f"counts{context.number(instr)}", *_ARRAY)
    arguments = f"team, shared, {{m1}}, {{size}}, n, {counts}"
    step = _step(context, instr, size, f"CountAscending({arguments})")
    step.joins.append(f"const int64_t found = ScanArray(shared, {counts}, team.Blocks());")
    step.serial += _verdict(f"found != {context.value(size)}")
    _step(context, instr, size, f"UnpackAscending({arguments}, {{m0}})", True)
    _check_order(context, [target])


def _gap_array(context: FunctionContext, what: str, instr: Instr, index: str, elem: str) -> str:
    """A number of each block of gaps."""
    bound = context.bound(_size(context, index))
    bytes_ = f"GapBlocks({bound}) * sizeof({elem})"
    return context.scratch(f"{what}{context.number(instr)}", elem, bytes_)


def _gaps_bytes(context: FunctionContext, instr: Instr) -> None:
    """Also leaves each block's choice, and what lies before it."""
    index = instr.vec[0]
    lows, zeros = (_gap_array(context, n, instr, index, "uint32_t") for n in ("lows", "zeros"))
    choices = _gap_array(context, "choices", instr, index, "uint8_t")
    context.gaps[instr.id] = arrays = f"{choices}, {lows}, {zeros}"
    _step(context, instr, _size(context, index), f"ChooseGaps(team, {{v0}}, n, {arrays})")
    text = f"GapsBytes(shared, {{n0}}, {lows}, {zeros})"
    context.define(instr, context.fill(text, instr), joined=True)


def _pack_gaps(context: FunctionContext, instr: Instr) -> None:
    count, arrays = _size(context, instr.vec[1]), context.gaps[instr.args[0].id]
    step = context.new_step(count)
    context.allocate(instr.vec[0])
    step.body.append(_clear_words(context, instr, "Blocks({a0}, 4)"))
    _step(context, instr, count, f"PackGaps(team, {{v1}}, n, {arrays}, {{m0}})")


def _unpack_gaps(context: FunctionContext, instr: Instr) -> None:
    target, size, number = instr.vec[0], _size(context, instr.vec[0]), context.number(instr)
    lows = _gap_array(context, "lows", instr, target, "uint32_t")
    counts = context.scratch(f"counts{number}", *_ARRAY)
    ends = context.scratch(f"ends{number}", "uint32_t", f"{context.bound(size)} * 4")
    sums = context.scratch(f"sums{number}", "int64_t", "kMaxBlocks * 8")
    bits = context.scratch(f"bits{number}", "int64_t", "8")
    about = "{m1}, {b1}, {size}, n"

    def step(text: str, scan: str, good: str = "", allocate: bool = False) -> None:
        one = _step(context, instr, size, text, allocate)
        if scan:
            one.joins.append(context.fill(f"const int64_t found = {scan};", instr))
            one.serial += _verdict(f"!({context.fill(good, instr)})")

    step(f"SumLows(team, {about}, {lows})", f"LowestBits(shared, {{b1}}, {{n0}}, {lows})",
         "GoodParts({m1}, {b1}, {n0}, n, found)")  # fmt: skip
    context.current.serial.append(f"{bits}[0] = found;")
    about += f", {bits}[0]"
    step(f"CountGaps(team, shared, {about}, {counts})",
         f"ScanArray(shared, {counts}, team.Blocks())", "found == {n0}")  # fmt: skip
    step(f"FindGaps(team, shared, {about}, {counts}, {ends})", "")
    step(f"SumGaps(team, shared, {about}, {lows}, {ends}, {sums})",
         f"ScanArray(shared, {sums}, team.Blocks())", "found <= n")  # fmt: skip
    step(f"UnpackGaps(team, shared, {about}, {lows}, {ends}, {sums}, {{m0}})", "", "", True)


def _pack_floats(context: FunctionContext, instr: Instr) -> None:
    size = _size(context, instr.vec[1])
    number, blocks = context.number(instr), "FloatBlocks(n)"
    kept = context.scratch(f"kept{number}", "uint32_t", "n * 4")
    sizes = context.scratch(f"sizes{number}", "int64_t", f"{blocks} * 8")
    _step(context, instr, size, f"PlanFloats(team, shared, call, {kept}, {sizes})")
    total = f"TableBytes({blocks}) + ScanArray(shared, {sizes}, {blocks})"
    context.define(instr, total, joined=True)
    _step(context, instr, size, f"WriteFloats(team, call, {kept}, {sizes})")
    context.placed.add(instr.vec[0])


def _unpack_floats(context: FunctionContext, instr: Instr) -> None:
    size, blocks = _size(context, instr.vec[0]), "FloatBlocks(n)"
    sizes = context.scratch(f"sizes{context.number(instr)}", "int64_t", f"{blocks} * 8")
    step = _step(context, instr, size, f"MeasureFloats(team, call, {sizes}, &control.disorder)")
    step.joins.append(f"const int64_t found = ScanArray(shared, {sizes}, {blocks});")
    step.serial.append("control.bad = JudgeFloats(call, found, control.disorder);")
    step = _step(context, instr, size, f"CheckFloats(team, call, {sizes}, &control.disorder)")
    step.serial.append("control.bad = JudgeCounts(call, control.disorder);")
    _step(context, instr, size, f"UnpackFloats(team, call, {sizes}, add)")


def _select(context: FunctionContext, instr: Instr, source: str, size: Instr, rank: str) -> str:
    """Three steps that find the largest value but `rank` - 1 of a source; the state's name."""
    state = f"control.selection{context.selections}"
    context.selections += 1
    for digit in range(3):
        step = context.new_step(size)
        call = f"team, shared, {context.memory(source)}, {context.value(size)}, &{state}"
        step.body.append(f"CountDigit<{digit}>({call});")
        step.joins.append(f"PickDigit<{digit}>(shared, {context.fill(rank, instr)}, &{state});")
    return state


def _topk(context: FunctionContext, instr: Instr) -> None:
    source = instr.vec[1]
    size, count = _size(context, source), context.fill(_NUMBERS["topk"], instr)
    if not context.everywhere(instr):
        context.define(instr, count)
    state = _select(context, instr, source, size, "{value}")
    arguments = f"team, shared, {{v1}}, &{state}"
    step = _step(context, instr, size, f"CountChosen({arguments})")
    step.joins.append(f"ScanChosen(team, shared, &{state});")
    _step(context, instr, size, f"WriteChosen({arguments}, {{m0}})", True)


def _sort(context: FunctionContext, instr: Instr) -> None:
    target, source = instr.vec
    if only_elements(context.function, instr):
        context.unsorted[target] = source
        return
    size = _size(context, source)
    number, bound = context.number(instr), context.bound(size)
    keys = [context.scratch(f"keys{number}_{k}", "uint32_t", f"{bound} * 4") for k in range(2)]
    counts = context.scratch(f"digits{number}", "uint32_t", "kDigits * kSortBlocks * 4")

    def part(name: str, keys: str, digit: int, more: str = "") -> Step:
        call = f"team, shared, {keys}, {{size}}, {8 * digit}, {counts}{more}"
        step = _step(context, instr, size, f"{name}SortDigit({call})")
        step.most_blocks = "kSortBlocks"
        return step

    def each(statement: Callable[[], str], allocate: bool = False) -> None:
        step = context.new_step(size)
        if allocate:
            context.allocate(target)
        count = context.value(size)
        step.body.append(f"ForEach(team, {count}, [&](int64_t i) {{ {statement()}; }});")

    each(lambda: f"{keys[0]}[i] = Ordered({context.get(source, 'i')})")
    for digit in range(4):
        one, two = keys[digit % 2], keys[(digit + 1) % 2]
        scan = f"ScanArray(shared, {counts}, int64_t(kDigits) * team.Blocks());"
        part("Count", one, digit).joins.append(scan)
        part("Move", one, digit, f", {two}")
    each(lambda: context.put(target, "i", f"FromOrdered({keys[0]}[i])"), allocate=True)


def _random_indices(context: FunctionContext, instr: Instr) -> None:
    run, site = instr.attrs["run"], str(instr.attrs["site"])
    step = context.new_step(instr)
    step.key = True
    context.allocate(instr.vec[0])
    step.body.append(context.fill(
        "{strata}(team, Clip({a0}, n), {value}, key, {site}, "
        "[&](int64_t j, int64_t index) {{ {put}; }});",
        instr, site=site, strata="ForStrata" if run == 1 else f"ForRuns<{run}>",
        put=context.put(instr.vec[0], "j", "static_cast<int32_t>(index)"),
    ))  # fmt: skip


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
    to = f"call.payload + {context.field_offset(name, '0')}"
    if vector.packed or vector.bits != 32:
        source = f"reinterpret_cast<const uint8_t*>({context.memory(name)})[j]"
        count, write = context.bytes_of(name), f"({to})[j] = {source};"
    else:
        write = f"Write<{ELEMENT[vector.elem]}>({to}, j, {context.memory(name)}[j]);"
        count = context.size(name)
    step.body.append(f"ForEach(team, {count}, [&](int64_t j) {{ {write} }});")


OPERATIONS = {
    "field": _read_by_every_step, "field_vector": _read_by_every_step,
    "end_of_payload": _end_of_payload, "require": _require, "element": _element,
    "compact": _compact, "pack_where": _pack_where, "count_where": _count_where,
    "unpack_where": _unpack_where, "pack_ascending": _pack_ascending,
    "unpack_ascending": _unpack_ascending, "gaps_bytes": _gaps_bytes, "pack_gaps": _pack_gaps,
    "unpack_gaps": _unpack_gaps, "pack_floats": _pack_floats,
    "unpack_floats": _unpack_floats, "topk": _topk, "sort": _sort,
    "random_indices": _random_indices, "scatter": _scatter, "emit": _emit,
}  # fmt: skip
