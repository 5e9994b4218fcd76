"""Loops whose work can be done bucket by bucket, so that a second pass finds its bucket cached."""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import (
    Function,
    Instr,
    Loop,
    node_defines,
    node_reads,
    node_uses,
    node_writes,
)
from hipress.compression.compiler.passes.vector_uses import operations, spread_bits


def bucket_of(loop: Loop) -> Instr | None:
    """Return the parameter that says the loop's blocks, if all its buckets are the same and allow
    it."""
    bucketed = [i.args[0] for i in loop.body if i.op in ("bucket_reduce", "bucket_load")]
    one = len({size.id for size in bucketed}) == 1
    return bucketed[0] if one and not loop.results else None


def bucket_group(function: Function, position: int) -> list | None:
    """Return a pass that reduces buckets, what is made of them, and a pass that reads that: or
    None."""
    body = function.body
    first = body[position]
    made = {i.vec[0] for i in first.body if i.op == "bucket_reduce"}
    if not made or bucket_of(first) is None:
        return None
    size = function.vectors[next(iter(made))].size
    for end in range(position + 1, len(body)):
        node = body[end]
        if isinstance(node, Instr):
            if node.vec or node_uses(node) & node_defines(first):
                return None
        elif node.domain is size and not node.results:
            if _needs_whole_tiles(function, node):  # a block's buckets begin anywhere
                return None
            made |= node_writes(node)
        elif node.domain is first.domain and bucket_of(node) is bucket_of(first):
            anywhere = {n for i in node.body if i.op == "load_at" for n in i.vec}
            if anywhere & made or not node_reads(node) & made:
                return None
            return body[position : end + 1]
        else:
            return None
    return None


def _needs_whole_tiles(function: Function, loop: Loop) -> bool:
    """Return whether its tiles must begin at multiples of their length: of packed codes, of
    draws."""
    return any(
        instr.op in ("random", "random16")
        or any(function.vectors[name].packed for name in instr.vec)
        for instr in loop.body
    )


def is_dense(function: Function) -> bool:
    """Return whether a decoder is one loop that writes the output from fields and bits under masks.

    One operation that does the same also counts.
    """
    loops = [node for node in function.body if isinstance(node, Loop)]
    if operations(function, "unpack_floats"):
        return True
    if len(loops) != 1 or loops[0].results or loops[0].domain.op != "n":
        return False
    if any(instr.op == "scatter" for instr in function.instrs()):
        return False
    stores = [instr for instr in loops[0].body if instr.op in ("store", "bucket_reduce")]
    loads = {name for instr in loops[0].body if instr.op != "store" for name in instr.vec}
    spread = spread_bits(function)
    if spread and bucket_of(loops[0]) is not None:
        return False  # the counted blocks have the usual size
    return len(stores) == 1 and all(
        function.vectors[name].kind == "field" or name in spread for name in loads
    )
