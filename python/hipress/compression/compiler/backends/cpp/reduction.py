"""C++ of the reductions in a loop: 32 lanes in each block, folded, joined in the blocks' order."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.expressions import SCALAR, joined, lanes, literal
from hipress.compression.compiler.backends.cpp.loop_context import CppLoopContext
from hipress.compression.compiler.ir.ir import Instr


def declare_partials(loop: CppLoopContext, instr: Instr) -> None:
    """Declare one value for each block."""
    c_type = SCALAR[instr.type]
    if instr.attrs["fn"] == "sum":
        c_type = "float" if instr.type == "f64" else "int64_t"
    count = f"({loop.domain} + kBlock - 1) / kBlock"
    part = f"part{loop.owner.number(instr)}"
    loop.setup.append(f"{c_type}* {part} = arena.Get<{c_type}>({count});")


def reduce(loop: CppLoopContext, instr: Instr) -> None:
    number, function = loop.owner.number(instr), instr.attrs["fn"]
    element = instr.args[1] if instr.op == "bucket_reduce" else instr.args[0]
    if function == "sum" and (masks := _counted(loop, element)):
        # A sum of ones: the bits that are stored anyway are counted.
        loop.prologue.append(f"int64_t count{number} = 0;")
        loop.after.append(f"count{number} += __builtin_popcountll(JoinMasks({masks}));")
        loop.finish.append(f"part{number}[block] = count{number};")
        _join(loop, instr, function)
        return
    value, sums = loop.value(element), f"sums{number}"
    scalar, combine = SCALAR[element.type], f"combine{number}"
    start = _start(loop, instr)
    loop.prologue += [
        _combiner(function, combine),
        f"{lanes.types[element.type]} {sums}[kSums];",
        f"for (int s = 0; s < kSums; ++s) {sums}[s] = Set({scalar}({start}));",
    ]
    at = f"{sums}[v % kSums]"
    update = f"{combine}({at}, {value})"
    loop.body.append(f"{at} = kTail ? Select(Valid(left), {update}, {at}) : {update};")
    bucketed = instr.op == "bucket_reduce"
    part = loop.owner.memory(instr.vec[0]) if bucketed else f"part{number}"
    loop.finish.append(f"{part}[block] = FoldLanes<{scalar}>({sums}, {combine});")
    if not bucketed:
        _join(loop, instr, function)


def _counted(loop: CppLoopContext, element: Instr) -> str | None:
    """Return the masks of a tile if they are collected for a store and `element` is 1 or 0 by
    them."""
    if element.op != "cast" or element.args[0].type != "bool":
        return None
    for store in (i for i in loop.loop.body if i.op == "store" and i.args[0] is element):
        vector = loop.owner.function.vectors[store.vec[0]]
        if vector.packed and vector.bits == 1 and store.vec[0] not in loop.owner.filters:
            return f"out_{store.vec[0]}"
    return None


def _join(loop: CppLoopContext, instr: Instr, function: object) -> None:
    """Join the blocks' results in order."""
    number, start = loop.owner.number(instr), _start(loop, instr)
    result, c_type = loop.owner.value(instr), SCALAR[instr.type]
    each = f"for (int64_t b = 0; b < ({loop.guarded_domain} + kBlock - 1) / kBlock; ++b) {result}"
    if function == "sum":
        loop.epilogue += [
            f"{c_type} {result} = 0;",
            f"{each} += static_cast<{c_type}>(part{number}[b]);",
        ]
    else:
        loop.epilogue += [
            _combiner(function, f"join{number}"),
            f"{c_type} {result} = {start};",
            f"{each} = join{number}({result}, part{number}[b]);",
        ]


def _start(loop: CppLoopContext, instr: Instr) -> str:
    least = literal(float("-inf") if instr.attrs["fn"] == "max" else float("inf"), "f32")
    return loop.start(instr) or least


def _combiner(function: object, name: str) -> str:
    """Return a C++ lambda of two values, which may be lanes or scalars."""
    return f"auto {name} = [](auto a, auto b) {{ {joined.join_body(function, 'auto')} }};"
