"""Forwarding: a loop that reads v[i] computes it itself, where v's own loop is simple to repeat.

`x = residual + gradient` read by three reductions and a pack becomes an addition in each of them;
the loop that filled x is then dead. Nothing is repeated that changes its value: not past a store to
a vector that it reads, not into a loop that stores to one of which it reads other elements, and not
out of float16 or bfloat16, which round.
"""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import Function, Instr, Loop, node_writes, reads
from hipress.compression.compiler.ir.slices import backward, clone

_REPEATABLE = 64  # instructions
_BY_PLACE = ("bucket_load", "random", "random16", "store", "reduce")


def forward(function: Function) -> None:
    """Forward within one function, in place."""
    for position, node in enumerate(function.body):
        if isinstance(node, Loop):
            _forward_into(function, position, node)


def _forward_into(function: Function, position: int, loop: Loop) -> None:
    body = []
    mapping: dict = {}
    stored: set[str] = set()
    for instr in loop.body:
        instr.args = [mapping.get(arg.id, arg) for arg in instr.args]
        if instr.op == "load" and instr.vec[0] not in stored:
            found = _producer(function, position, loop, instr.vec[0])
            if found is not None:
                copies, value = found
                body += copies
                mapping[instr.id] = value
                continue
        if instr.op == "load_at" and not stored:
            found = _gathered(function, position, instr)
            if found is not None:
                copies, value = found
                body += copies
                mapping[instr.id] = value
                continue
        if instr.op == "store":
            stored.add(instr.vec[0])
        body.append(instr)
    loop.body = body


def _producer(function: Function, position: int, loop: Loop, name: str) -> tuple | None:
    """Return (instructions, value) that compute element i of a temp at this position, or None."""
    vector = function.vectors[name]
    if vector.kind != "temp" or vector.elem in ("f16", "bf16", "u16"):
        return None
    between: set[str] = set()  # written between the producer and the loop
    for earlier in reversed(function.body[:position]):
        changes = node_writes(earlier)
        if name in changes:
            if not isinstance(earlier, Loop) or earlier.domain is not loop.domain:
                return None
            store = next(i for i in earlier.body if i.op == "store" and i.vec[0] == name)
            part = backward(store.args[0], earlier.body)
            needed = {vec for instr in part for vec in reads(instr)}
            own = {vec for vec in needed if vec in node_writes(earlier)}
            if needed & between or own or len(part) > _REPEATABLE:
                return None
            elsewhere = {vec for instr in part if instr.op != "load" for vec in reads(instr)}
            if elsewhere & node_writes(loop):
                return None  # its other elements may be written before they are read
            if needed & node_writes(loop) and _reads_after_write(loop, needed):
                return None
            mapping: dict = {}
            copies = clone(part, mapping)
            return copies, mapping.get(store.args[0].id, store.args[0])
        between |= changes
    return None


def _gathered(function: Function, position: int, gather: Instr) -> tuple | None:
    """Return (instructions, value) that compute v[at] of a temp at this position, or None.

    For a few elements of a vector that is not in memory otherwise, as a sample is.
    """
    name, at = gather.vec[0], gather.args[0]
    vector = function.vectors[name]
    if vector.kind != "temp" or vector.elem not in ("f32", "i32", "u32"):
        return None
    if at.op != "load" or not _indexes(function, at.vec[0], vector.size):
        return None
    written: set[str] = set()
    for earlier in reversed(function.body[:position]):
        if name in node_writes(earlier):
            if not isinstance(earlier, Loop):
                return None
            store = next((i for i in earlier.body if i.op == "store" and i.vec[0] == name), None)
            part = backward(store.args[0], earlier.body) if store is not None else []
            needed = {vec for instr in part for vec in reads(instr)}
            plain = all(function.vectors[vec].elem in ("f32", "i32", "u32") for vec in needed)
            if not part or not plain or needed & (written | node_writes(earlier)):
                return None
            if len(part) > _REPEATABLE or any(instr.op in _BY_PLACE for instr in part):
                return None
            mapping: dict = {instr.id: at for instr in part if instr.op == "index"}
            copies = clone([instr for instr in part if instr.op != "index"], mapping)
            for copy in copies:
                if copy.op == "load":
                    copy.op, copy.args = "load_at", [at]
            return copies, mapping[store.args[0].id]
        written |= node_writes(earlier)
    return None


def _indexes(function: Function, name: str, size: Instr) -> bool:
    """Return whether a vector holds indices that are within `size` elements."""
    for node in function.body:
        if isinstance(node, Instr) and node.vec[:1] == [name]:
            if node.op == "random_indices":
                return node.args[0] is size
            if node.op in ("compact", "topk"):
                return function.vectors[node.vec[1]].size is size
    return False


def _reads_after_write(loop: Loop, needed: set[str]) -> bool:
    """Return whether a store to one of these vectors could precede the forwarded load."""
    seen_store = False
    for instr in loop.body:
        if instr.op in ("store", "bucket_reduce") and instr.vec[0] in needed:
            seen_store = True
        elif instr.op == "load" and seen_store:
            return True
    return False
