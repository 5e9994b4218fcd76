"""C++ of passes over blocks: of 4096 elements, or of as many whole buckets as that is.

Several buckets at once, because what follows from a bucket's reductions is a chain of operations
that wait for each other: those of several buckets are in one vector.
"""

from __future__ import annotations

from hipress.compression.compiler.backends.common.expressions import SCALAR, literal, scalars
from hipress.compression.compiler.backends.common.text import block, indent
from hipress.compression.compiler.backends.cpp.loop_context import CppLoopContext
from hipress.compression.compiler.ir.ir import COMPARE, Instr, node_reads


def block_constant(loop: CppLoopContext, instr: Instr) -> str | None:
    """Return the C++ of a bool, or of its operand, if it is the same for a whole block or
    bucket."""
    if instr.op == "const":
        return literal(instr.attrs["value"], instr.type)
    if instr.id not in loop.inside:
        return loop.owner.value(instr)
    if instr.op == "bucket_load" and loop.bucket is not None:
        return bucket_value(loop, instr, "block")
    if instr.op not in COMPARE | {"and", "or", "not", "isfinite", "isnan"}:
        return None
    args = [block_constant(loop, arg) for arg in instr.args]
    return None if None in args else scalars(instr, args)


def bucket_value(loop: CppLoopContext, load: Instr, number: str) -> str:
    """Return a bucket's number. Its vectors may be at any address, as a payload may be."""
    at = f"{loop.owner.memory(load.vec[0])} + {number}"
    return f"ReadField<{SCALAR[load.type]}>(reinterpret_cast<const uint8_t*>({at}))"


def blocks(loops: list[CppLoopContext], domain: str) -> list[str]:
    """Return one pass over blocks that does all sections in each."""
    first = loops[0]
    setup = [line for loop in loops for line in loop.setup]
    shared = [line for loop in loops for line in loop.shared]
    epilogue = [line for loop in loops for line in loop.epilogue]
    if first.bucket is None:
        size, unit, arguments = "", "kBlock", "block, int64_t begin, int64_t end"
        head, unused = ["const int64_t last = end;"], "(void)last, (void)block, (void)worker;"
    else:
        size, number = first.owner.value(first.bucket), first.number
        arrays = max(1, len(node_reads(first.loop)))
        setup += [
            "// What one block reads, and what the next will read, is to stay in the first cache.",
            f"const int64_t group{number} = std::max<int64_t>(1, kBlock / {arrays} / {size});",
        ]
        unit, arguments = f"group{number} * {size}", "part, int64_t first, int64_t last"
        unused = "(void)last, (void)worker;"
        head = [
            f"const int64_t block_begin = part * group{number};",
            f"const int64_t block_end = block_begin + (last - first + {size} - 1) / {size};",
            "(void)block_begin, (void)block_end;",
        ]
    sections = []
    for loop in loops:
        if loop.bucket is not None:
            sections += block(
                "for (int64_t block = block_begin, begin = first; begin < last; ++block, "
                f"begin += {size})",
                f"const int64_t end = std::min(begin + {size}, last);",
                "(void)block;",
                loop.section(),
            )
        else:
            sections += block("", loop.section()) if len(loops) > 1 else loop.section()
    return [
        *setup,
        f"ForBlocks(call, {domain}, {unit}, [&](int64_t {arguments}, int worker) {{",
        *indent([*head, *shared, *sections, unused]),
        "});",
        *epilogue,
    ]
