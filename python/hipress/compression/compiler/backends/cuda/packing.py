"""CUDA of packed data: masks, ascending indices, gaps, lossless floats (sparse.cuh)."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import COUNTS
from hipress.compression.compiler.backends.cuda.context import CudaContext
from hipress.compression.compiler.ir.ir import Instr

_BITS_EACH = 32 * 8192
_ARRAY = "uint32_t", "kMaxBlocks * 4"


def _count(context: CudaContext, instr: Instr, mask: int, words: str) -> str:
    """Return a step whose number is how many bits are set; what lies before each block's part.

    :param mask: its number among the instruction's vectors
    """
    counts = context.scratch(f"counts{context.number(instr)}", *_ARRAY)
    text = f"CountBits(team, shared, {words}, {{n{mask}}}, {counts})"
    context.add_step(instr, context.count(instr.vec[mask]), text, each=_BITS_EACH)
    context.define(instr, f"ScanArray(shared, {counts}, team.Blocks())", joined=True)
    return counts


def _compact(context: CudaContext, instr: Instr) -> None:
    counts = _count(context, instr, 1, "MaskWords{{{v1}}}")
    write = "{m0}[j] = static_cast<int32_t>(i);"
    text = (
        f"WriteBits(team, shared, MaskWords{{{{{{v1}}}}}}, {{size}}, {counts}, "
        f"[&](int64_t j, int64_t i) {{{{ {write} }}}})"
    )
    context.add_step(instr, context.count(instr.vec[1]), text, True, _BITS_EACH)


def _pack_where(context: CudaContext, instr: Instr) -> None:
    size = context.count(instr.vec[2])
    counts = _count(context, instr, 2, "MaskWords{{{v2}}}")
    context.allocate(instr.vec[0])
    context.current.body.append(_clear_words(context, instr, "Blocks({n2}, 32)"))
    text = (
        f"PackWhere(team, shared, MaskWords{{{{{{v1}}}}}}, MaskWords{{{{{{v2}}}}}}, {{size}}, "
        f"{counts}, {{m0}})"
    )
    context.add_step(instr, size, text, each=_BITS_EACH)


def _count_where(context: CudaContext, instr: Instr) -> None:
    context.counts[instr.id] = _count(context, instr, 0, "PayloadWords{{{m0}, {b0}}}")
    context.current.counts = True


def _unpack_where(context: CudaContext, instr: Instr) -> None:
    counts = context.counts[context.count(instr.vec[1]).id]
    text = (
        "UnpackWhere(team, shared, PayloadWords{{{m1}, {b1}}}, PayloadWords{{{m2}, {b2}}}, "
        "{n2}, {counts}, {m0})"
    )
    size = context.count(instr.vec[2])
    context.add_step(instr, size, text, True, _BITS_EACH, counts=counts)


def _clear_words(context: CudaContext, instr: Instr, count: str) -> str:
    write = "reinterpret_cast<uint32_t*>({m0})[w] = 0;"
    return context.fill(f"ForEach(team, {count}, [&](int64_t w) {{{{ {write} }}}});", instr)


def _pack_ascending(context: CudaContext, instr: Instr) -> None:
    count = context.count(instr.vec[1])
    if not context.everywhere(instr):
        context.define(instr, context.fill(COUNTS["pack_ascending"], instr))
    step = context.new_step(count)
    context.allocate(instr.vec[0])
    step.body.append(_clear_words(context, instr, "Blocks({value}, 4)"))
    context.add_step(instr, count, "PackAscending(team, {v1}, n, {m0})")


def _unpack_ascending(context: CudaContext, instr: Instr) -> None:
    target, size = instr.vec[0], context.count(instr.vec[0])
    counts = context.scratch(f"counts{context.number(instr)}", *_ARRAY)
    arguments = f"team, shared, {{m1}}, {{size}}, n, {counts}"
    step = context.add_step(instr, size, f"CountAscending({arguments})")
    step.joins.append(f"const int64_t found = ScanArray(shared, {counts}, team.Blocks());")
    context.verdict(f"found != {context.value(size)}")
    context.add_step(instr, size, f"UnpackAscending({arguments}, {{m0}})", True)
    context.check_indices([target])


def _gap_array(context: CudaContext, what: str, instr: Instr, index: str, elem: str) -> str:
    """Return a number of each block of gaps."""
    bound = context.bound(context.count(index))
    bytes_ = f"GapBlocks({bound}) * sizeof({elem})"
    return context.scratch(f"{what}{context.number(instr)}", elem, bytes_)


def _gaps_bytes(context: CudaContext, instr: Instr) -> None:
    """Write the number of bytes of gaps. Also store each block's choice and the sum before it."""
    index = instr.vec[0]
    lows, zeros = (_gap_array(context, n, instr, index, "uint32_t") for n in ("lows", "zeros"))
    choices = _gap_array(context, "choices", instr, index, "uint8_t")
    context.gaps[instr.id] = arrays = f"{choices}, {lows}, {zeros}"
    context.add_step(instr, context.count(index), f"ChooseGaps(team, {{v0}}, n, {arrays})")
    text = f"GapsBytes(shared, {{n0}}, {lows}, {zeros})"
    context.define(instr, context.fill(text, instr), joined=True)


def _pack_gaps(context: CudaContext, instr: Instr) -> None:
    count, arrays = context.count(instr.vec[1]), context.gaps[instr.args[0].id]
    step = context.new_step(count)
    context.allocate(instr.vec[0])
    step.body.append(_clear_words(context, instr, "Blocks({a0}, 4)"))
    context.add_step(instr, count, f"PackGaps(team, {{v1}}, n, {arrays}, {{m0}})")


def _unpack_gaps(context: CudaContext, instr: Instr) -> None:
    target, size, number = instr.vec[0], context.count(instr.vec[0]), context.number(instr)
    lows = _gap_array(context, "lows", instr, target, "uint32_t")
    counts = context.scratch(f"counts{number}", *_ARRAY)
    ends = context.scratch(f"ends{number}", "uint32_t", f"{context.bound(size)} * 4")
    sums = context.scratch(f"sums{number}", "int64_t", "kMaxBlocks * 8")
    bits = context.scratch(f"bits{number}", "int64_t", "8")
    about = "{m1}, {b1}, {size}, n"

    def step(text: str, scan: str, good: str = "", allocate: bool = False) -> None:
        one = context.add_step(instr, size, text, allocate)
        if scan:
            one.joins.append(context.fill(f"const int64_t found = {scan};", instr))
            context.verdict(f"!({context.fill(good, instr)})")

    step(
        f"SumLows(team, {about}, {lows})",
        f"LowestBits(shared, {{b1}}, {{n0}}, {lows})",
        "GoodParts({m1}, {b1}, {n0}, n, found)",
    )
    context.current.serial.append(f"{bits}[0] = found;")
    about += f", {bits}[0]"
    step(
        f"CountGaps(team, shared, {about}, {counts})",
        f"ScanArray(shared, {counts}, team.Blocks())",
        "found == {n0}",
    )
    step(f"FindGaps(team, shared, {about}, {counts}, {ends})", "")
    step(
        f"SumGaps(team, shared, {about}, {lows}, {ends}, {sums})",
        f"ScanArray(shared, {sums}, team.Blocks())",
        "found <= n",
    )
    step(f"UnpackGaps(team, shared, {about}, {lows}, {ends}, {sums}, {{m0}})", "", "", True)


def _pack_floats(context: CudaContext, instr: Instr) -> None:
    size = context.count(instr.vec[1])
    number, blocks = context.number(instr), "FloatBlocks(n)"
    kept = context.scratch(f"kept{number}", "uint32_t", "n * 4")
    sizes = context.scratch(f"sizes{number}", "int64_t", f"{blocks} * 8")
    context.add_step(instr, size, f"PlanFloats(team, shared, call, {kept}, {sizes})")
    total = f"TableBytes({blocks}) + ScanArray(shared, {sizes}, {blocks})"
    context.define(instr, total, joined=True)
    context.add_step(instr, size, f"WriteFloats(team, call, {kept}, {sizes})")
    context.placed.add(instr.vec[0])


def _unpack_floats(context: CudaContext, instr: Instr) -> None:
    size, blocks = context.count(instr.vec[0]), "FloatBlocks(n)"
    sizes = context.scratch(f"sizes{context.number(instr)}", "int64_t", f"{blocks} * 8")
    step = context.add_step(instr, size, f"MeasureFloats(team, call, {sizes}, &control.disorder)")
    step.joins.append(f"const int64_t found = ScanArray(shared, {sizes}, {blocks});")
    step.serial.append("control.bad = JudgeFloats(call, found, control.disorder);")
    step = context.add_step(instr, size, f"CheckFloats(team, call, {sizes}, &control.disorder)")
    step.serial.append("control.bad = JudgeCounts(call, control.disorder);")
    context.add_step(instr, size, f"UnpackFloats(team, call, {sizes}, add)")


OPERATIONS = {
    "compact": _compact,
    "pack_where": _pack_where,
    "count_where": _count_where,
    "unpack_where": _unpack_where,
    "pack_ascending": _pack_ascending,
    "unpack_ascending": _unpack_ascending,
    "gaps_bytes": _gaps_bytes,
    "pack_gaps": _pack_gaps,
    "unpack_gaps": _unpack_gaps,
    "pack_floats": _pack_floats,
    "unpack_floats": _unpack_floats,
}
