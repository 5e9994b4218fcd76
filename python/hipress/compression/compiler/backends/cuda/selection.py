"""CUDA of rankings of elements: the largest ones, and all in order (sparse.cuh)."""

from __future__ import annotations

from collections.abc import Callable

from hipress.compression.compiler.backends.common.emitter import COUNTS
from hipress.compression.compiler.backends.cuda.context import CudaContext, Step
from hipress.compression.compiler.ir.ir import Instr
from hipress.compression.compiler.passes.vector_uses import only_elements


def select(context: CudaContext, instr: Instr, source: str, size: Instr, rank: str) -> str:
    """Write three steps that find the largest value except `rank` - 1; return the state's name."""
    state = f"control.selection{context.selections}"
    context.selections += 1
    for digit in range(3):
        step = context.new_step(size)
        call = f"team, shared, {context.memory(source)}, {context.value(size)}, &{state}"
        step.body.append(f"CountDigit<{digit}>({call});")
        step.joins.append(f"PickDigit<{digit}>(shared, {context.fill(rank, instr)}, &{state});")
    return state


def _topk(context: CudaContext, instr: Instr) -> None:
    source = instr.vec[1]
    size, count = context.count(source), context.fill(COUNTS["topk"], instr)
    if not context.everywhere(instr):
        context.define(instr, count)
    state = select(context, instr, source, size, "{value}")
    arguments = f"team, shared, {{v1}}, &{state}"
    step = context.add_step(instr, size, f"CountChosen({arguments})")
    step.joins.append(f"ScanChosen(team, shared, &{state});")
    context.add_step(instr, size, f"WriteChosen({arguments}, {{m0}})", True)


def _sort(context: CudaContext, instr: Instr) -> None:
    target, source = instr.vec
    if only_elements(context.function, instr):
        context.unsorted[target] = source
        return
    size = context.count(source)
    number, bound = context.number(instr), context.bound(size)
    keys = [context.scratch(f"keys{number}_{k}", "uint32_t", f"{bound} * 4") for k in range(2)]
    counts = context.scratch(f"digits{number}", "uint32_t", "kDigits * kSortBlocks * 4")

    def part(name: str, keys: str, digit: int, more: str = "") -> Step:
        call = f"team, shared, {keys}, {{size}}, {8 * digit}, {counts}{more}"
        step = context.add_step(instr, size, f"{name}SortDigit({call})")
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


OPERATIONS = {"topk": _topk, "sort": _sort}
