"""C++ of passes over blocks: of 4096 elements, or of as many whole buckets as that is.

Several buckets at once, because what follows from a bucket's reductions is a chain of operations
that wait for each other: those of several buckets are in one vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipress.compll.backends.common.expressions import SCALAR, expression, literal
from hipress.compll.backends.cpp.payload import indent
from hipress.compll.ir.ir import COMPARE, Instr, Loop, node_reads

if TYPE_CHECKING:
    from hipress.compll.backends.cpp.loop import LoopWriter


def bucket_of(loop: Loop) -> Instr | None:
    """The parameter that says the loop's blocks, if all its buckets are the same and allow it."""
    sizes = {
        instr.args[0].id: instr.args[0]
        for instr in loop.body
        if instr.op in ("bucket_reduce", "bucket_load")
    }
    reduces = any(instr.op == "reduce" for instr in loop.body)
    return next(iter(sizes.values())) if len(sizes) == 1 and not reduces else None


def block_constant(writer: LoopWriter, instr: Instr) -> str | None:
    """C++ of a bool, or of what it is made of, if it is the same for a whole block or bucket."""
    if instr.op == "const":
        return literal(instr.attrs["value"], instr.type)
    if instr.id not in writer.inside:
        return writer.owner.value(instr)
    if instr.op == "bucket_load" and writer.bucket is not None:
        return f"ReadField<{SCALAR[instr.type]}>({bucket_place(writer, instr, 'block')})"
    if instr.op not in COMPARE | {"and", "or", "not", "isfinite", "isnan"}:
        return None
    args = [block_constant(writer, arg) for arg in instr.args]
    return None if None in args else expression(instr, args, lane=False)


def bucket_place(writer: LoopWriter, load: Instr, block: str) -> str:
    """Where a bucket's number lies: at any address, as a payload may, and the vectors in it."""
    return f"reinterpret_cast<const uint8_t*>({writer.owner.memory(load.vec[0])} + {block})"


def blocks(writers: list[LoopWriter], domain: str) -> list[str]:
    """One pass over blocks that does all sections in each."""
    lines = [line for writer in writers for line in writer.setup]
    first = writers[0]
    if first.bucket is None:
        head = "[&](int64_t block, int64_t begin, int64_t end, int worker) {"
        lines += [f"ForBlocks(call, {domain}, kBlock, {head}", "  const int64_t last = end;"]
    else:
        size, number = first.owner.value(first.bucket), first.number
        arrays = max(1, len(node_reads(first.loop)))
        head = "[&](int64_t part, int64_t first, int64_t last, int worker) {"
        lines += [
            "// What one block reads, and what the next will read, is to stay in the first cache.",
            f"const int64_t group{number} = std::max<int64_t>(1, kBlock / {arrays} / {size});",
            f"ForBlocks(call, {domain}, group{number} * {size}, {head}",
            f"  const int64_t block_begin = part * group{number};",
            f"  const int64_t block_end = block_begin + (last - first + {size} - 1) / {size};",
            "  (void)block_begin, (void)block_end;",
        ]
    lines += indent([line for writer in writers for line in writer.shared])
    for writer in writers:
        section = indent(writer.section())
        if writer.bucket is not None:
            section = [
                f"for (int64_t block = block_begin, begin = first; begin < last; ++block, "
                f"begin += {size}) {{",
                f"  const int64_t end = std::min(begin + {size}, last);",
                "  (void)block;",
                *section,
                "}",
            ]
        elif len(writers) > 1:
            section = ["{", *section, "}"]
        lines += indent(section) if writer.bucket is not None or len(writers) > 1 else section
    used = "last" if first.bucket is not None else "last, (void)block"
    return [
        *lines,
        f"  (void){used}, (void)worker;",
        "});",
        *(line for writer in writers for line in writer.epilogue),
    ]
