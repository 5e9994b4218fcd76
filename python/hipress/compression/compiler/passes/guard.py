"""Guards: a reduction whose result only one side of a `?:` uses need not run for the other side.

`clip > 0 ? clip / sqrt(sum(gradient * gradient)) : 1` computes both sides by definition. Where the
condition is known before the loop, the loop gets it as its guard.
"""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import Function, Instr, Loop, has_effect, node_uses


def guard(function: Function) -> None:
    """Set the guards of one function's loops, in place."""
    known: set[int] = set()
    for node in function.body:
        if isinstance(node, Loop):
            if node.body and all(instr.op != "store" for instr in node.body):
                node.guard = _guard_of(function, node, known)
            known |= {instr.id for instr in node.results}
        else:
            known.add(node.id)


def _guard_of(function: Function, loop: Loop, known: set[int]) -> Instr | None:
    """Return a condition, made before the loop, without which nothing uses its results."""
    if any(instr.op == "bucket_reduce" for instr in loop.body):
        return None
    for node in function.body:
        if isinstance(node, Instr) and node.op == "select" and node.args[0].id in known:
            if _only_under(function, {instr.id for instr in loop.results}, node.args[0]):
                return node.args[0]
    return None


def _only_under(function: Function, results: set[int], condition: Instr) -> bool:
    """Return whether all uses of `results` end in the first branch of selects by `condition`."""
    tainted = set(results)
    if any(vector.size.id in tainted for vector in function.vectors.values()):
        return False
    for node in function.body:
        if not node_uses(node) & tainted:
            continue
        if isinstance(node, Loop) or has_effect(node) or node.vec:
            return False
        others = [arg.id for arg in node.args[2:]] + [node.args[0].id]
        if node.op == "select" and node.args[0] is condition and not tainted & set(others):
            continue
        tainted.add(node.id)
    return True
