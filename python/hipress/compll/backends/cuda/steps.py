"""Steps that several operations are made of: one statement, or a check of indices."""

from __future__ import annotations

from hipress.compll.backends.cuda.context import FunctionContext, Step
from hipress.compll.ir.ir import Instr


def add_step(
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


def size_of(context: FunctionContext, name: str) -> Instr:
    return context.function.vectors[name].size


def check_order(context: FunctionContext, names: list[str]) -> None:
    """A step that checks that indices ascend and are below n."""
    step = context.new_step(size_of(context, names[0]))
    for name in names:
        elem = context.function.vectors[name].elem
        c_type = {"u32": "uint32_t", "u16": "uint16_t"}.get(elem, "int32_t")
        bad = f"BadIndices(team, {context.vector_texts['v'](name)}, n, {c_type}())"
        step.body.append(f"if ({bad}) atomicOr(&control.disorder, 1u);")
    step.serial += verdict("control.disorder != 0")


def verdict(bad: str) -> list[str]:
    """What the last block says of the indices. No later step does anything if they are bad."""
    return [
        f"control.bad = {bad};",
        "call.status[0] = control.bad != 0 ? kBadIndices : kFine;",
        "call.status[1] = control.bad != 0 ? n : 0;",
    ]
