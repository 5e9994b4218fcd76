"""Fusion: loops over the same elements become one, so that memory is read once.

Reductions over one input become one pass; so do map, pack and the update of the residual. A loop
moves up to an earlier one (or an earlier one down to it) if nothing between depends on the order.
"""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import (
    Function,
    Instr,
    Loop,
    has_effect,
    node_defines,
    node_reads,
    node_uses,
    node_writes,
)


def fuse(function: Function) -> None:
    """Fuse all loops that can be fused in one function, in place."""
    changed = True
    while changed:
        changed = False
        for later in range(len(function.body)):
            earlier = _partner(function, later)
            if earlier is not None:
                changed = True
                break


def _partner(function: Function, later: int) -> int | None:
    """Merge body[later] with an earlier loop, if there is one; its position, or None."""
    body = function.body
    second = body[later]
    # A vector is allocated before the loop that writes it, so its size must be known there.
    sizes = {function.vectors[name].size.id for name in node_writes(second)}
    if not isinstance(second, Loop):
        return None
    for earlier in range(later - 1, -1, -1):
        first = body[earlier]
        if not isinstance(first, Loop) or not _fusible(first, second):
            continue
        if _left_out(function, first) != _left_out(function, second):
            if _scatters(function) or first.results or second.results:
                continue
        between = body[earlier + 1 : later]
        sized = not any(sizes & node_defines(node) for node in between)
        if sized and not any(_depends(second, node) for node in between):
            first.body += second.body
            del body[later]
            # Nodes in between may define values that the second loop does not use.
            return earlier
        if not any(_depends(node, first) for node in between):
            first.body += second.body
            body[later] = first
            del body[earlier]
            return later - 1
    return None


def _left_out(function: Function, loop: Loop) -> bool:
    """Return whether a decoder skips a loop when it only checks, or adds to the output."""
    return function.kind == "decode" and function.output in node_writes(loop)


def _scatters(function: Function) -> bool:
    return any(i.op == "scatter" and i.vec[0] == function.output for i in function.instrs())


def _fusible(first: Loop, second: Loop) -> bool:
    """Return whether element i of the second loop needs only element i of the first."""
    if first.domain is not second.domain:
        return False
    if node_uses(second) & node_defines(first):
        return False
    buckets = [
        {instr.args[0].id for instr in loop.body if instr.op == "bucket_reduce"}
        for loop in (first, second)
    ]
    plain = [any(instr.op == "reduce" for instr in loop.body) for loop in (first, second)]
    if len(buckets[0] | buckets[1]) > 1 or (buckets[0] | buckets[1] and any(plain)):
        return False
    for one, other in ((first, second), (second, first)):
        anywhere = {
            name
            for instr in one.body
            if instr.op in ("load_at", "bucket_load")
            for name in instr.vec
        }
        if anywhere & node_writes(other):
            return False
        if {instr.vec[0] for instr in one.body if instr.op == "bucket_reduce"} & node_reads(other):
            return False
    return True


def _depends(later: Instr | Loop, earlier: Instr | Loop) -> bool:
    """Return whether `later` must stay after `earlier`."""
    if node_uses(later) & node_defines(earlier):
        return True
    writes_later, writes_earlier = node_writes(later), node_writes(earlier)
    if writes_later & (node_reads(earlier) | writes_earlier):
        return True
    if node_reads(later) & writes_earlier:
        return True
    return _is_effect(later) and _is_effect(earlier)


def _is_effect(node: Instr | Loop) -> bool:
    return isinstance(node, Instr) and has_effect(node)
