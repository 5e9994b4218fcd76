"""Reuse of states: a repeated computation is stored in a state that is overwritten anyway.

`x = residual + gradient` is forwarded into each loop that reads x, and each of them would read both
vectors again. Suppose that a later loop overwrites the residual, and that the loops after the first
one need only x of the old one. Then the first loop stores x in its place, and later loops read one
vector. A store that depends on no result of the loops in between then moves up to the first loop,
which has read its inputs. The last loop is then often a function of the residual alone, and a
backend can leave it to the next encode (passes/lazy.py).
"""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import (
    Function,
    Instr,
    Loop,
    node_defines,
    node_reads,
    node_writes,
)
from hipress.compression.compiler.ir.slices import backward, clone, same

_ELSEWHERE = ("load_at", "bucket_load", "random", "random16")
_ROOTS = ("store", "reduce", "bucket_reduce")


def keep(function: Function) -> None:
    """Keep values in states, in one function, in place."""
    for name, vector in function.vectors.items():
        if vector.kind == "state" and vector.needs is None:
            _keep_in(function, name)


def move_up(function: Function) -> None:
    """Move stores to states up, in one function, in place."""
    for position, node in enumerate(function.body):
        if isinstance(node, Loop):
            for store in [instr for instr in node.body if instr.op == "store"]:
                if function.vectors[store.vec[0]].kind == "state":
                    _move_up(function, position, store)


def _keep_in(function: Function, state: str) -> None:
    body = function.body
    last = next((at for at, node in enumerate(body) if state in node_writes(node)), 0)
    readers = [at for at, node in enumerate(body[: last + 1]) if _loads(node, state)]
    if len(readers) < 2:
        return
    first, later = body[readers[0]], [body[at] for at in readers[1:]]
    for node in (first, body[last]):
        if not isinstance(node, Loop) or node.domain is not first.domain:
            return
        if any(instr.op.startswith("bucket_") for instr in node.body):
            return  # done bucket by bucket, in the cache
    if any(loop.domain is not first.domain for loop in later):
        return
    if any(_reaches_elsewhere(node, state) for node in body[readers[0] : last + 1]):
        return
    written = {name for node in body[readers[0] : last] for name in node_writes(node)}
    for x in reversed(first.body):
        made = backward(x, first.body)
        sources = {name for instr in made for name in instr.vec}
        if x.type != "f32" or x.op in ("load", "reduce") or any(i.op in _ELSEWHERE for i in made):
            continue
        if state not in sources or len(sources) < 2 or sources & written:
            continue
        copies = [_copies(loop, first, x) for loop in later]
        if all(_enough(loop, state, known) for loop, known in zip(later, copies)):
            # Right after x, so that it needs no register up to the end; all loads are before.
            loads = [i for i in first.body if i.op == "load" and i.vec == [state]]
            at = max(first.body.index(instr) for instr in (x, *loads))
            first.body.insert(at + 1, Instr("store", [x], vec=[state]))
            for loop, known in zip(later, copies):
                load = Instr("load", [], "f32", [state])
                for instr in loop.body:
                    instr.args = [load if arg.id in known else arg for arg in instr.args]
                loop.body.insert(0, load)
            return


def _loads(node: Instr | Loop, name: str) -> bool:
    return isinstance(node, Loop) and any(i.op == "load" and i.vec == [name] for i in node.body)


def _reaches_elsewhere(node: Instr | Loop, name: str) -> bool:
    """Return whether other elements of a vector are used than that of a loop's iteration."""
    instrs = node.body if isinstance(node, Loop) else [node]
    return any(name in i.vec and i.op not in ("load", "store") for i in instrs)


def _copies(loop: Loop, first: Loop, x: Instr) -> set[int]:
    """Return the values of a loop that are the first loop's x, made again."""
    return {instr.id for instr in loop.body if same(x, instr, first.body)}


def _enough(loop: Loop, state: str, known: set[int]) -> bool:
    """Return whether a loop needs no element of a state other than these values."""
    inside = {instr.id for instr in loop.body}
    seen: set[int] = set()
    todo = [instr for instr in loop.body if instr.op in _ROOTS]
    while todo:
        instr = todo.pop()
        if instr.id in seen or instr.id in known or instr.id not in inside:
            continue
        if instr.op == "load" and instr.vec == [state]:
            return False
        seen.add(instr.id)
        todo += instr.args
    return True


def _move_up(function: Function, position: int, store: Instr) -> None:
    """Move a store of body[position] to the first loop that reads all its inputs, if allowed."""
    body, target = function.body, store.vec[0]
    loop = body[position]
    made = backward(store.args[0], loop.body)
    sources = {name for instr in made for name in instr.vec}
    inside = {instr.id for instr in made}
    needed = {arg.id for instr in [*made, store] for arg in instr.args} - inside
    if not sources or any(instr.op in _ELSEWHERE for instr in made):
        return
    rest = Loop(loop.domain, [instr for instr in loop.body if instr is not store])
    if not _enough(rest, target, set()):
        return
    for at in range(position):
        first, between = body[at], body[at + 1 : position]
        if not isinstance(first, Loop) or first.domain is not loop.domain:
            continue
        if any(instr.op.startswith("bucket_") for instr in first.body):
            continue
        if not all(_loads(first, name) for name in sources):
            continue
        if _reaches_elsewhere(first, target):
            continue
        if any(target in node_reads(node) for node in between):
            continue
        span = body[at:position]
        written = {name for node in span for name in node_writes(node)}
        defined = {value for node in span for value in node_defines(node)}
        if (sources | {target}) & written or needed & defined:
            continue
        mapping: dict[int, Instr] = {}
        first.body += clone(made, mapping)
        first.body.append(
            Instr("store", [mapping.get(arg.id, arg) for arg in store.args], vec=[target])
        )
        loop.body.remove(store)
        return
