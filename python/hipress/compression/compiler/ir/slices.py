"""Copies of parts of a program, which several passes share."""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import Function, Instr, Loop


def backward(value: Instr, body: list[Instr]) -> list[Instr]:
    """Return the instructions of a body that `value` depends on, itself included, in order."""
    inside = {instr.id for instr in body}
    wanted: set[int] = set()
    todo = [value]
    while todo:
        instr = todo.pop()
        if instr.id in inside and instr.id not in wanted:
            wanted.add(instr.id)
            todo += instr.args
    return [instr for instr in body if instr.id in wanted]


def clone(instrs: list[Instr], mapping: dict[int, Instr]) -> list[Instr]:
    """Return the copies of instructions, whose operands are replaced as `mapping` says; extends
    mapping."""
    copies = []
    for instr in instrs:
        args = [mapping.get(arg.id, arg) for arg in instr.args]
        copy = Instr(instr.op, args, instr.type, list(instr.vec), dict(instr.attrs))
        mapping[instr.id] = copy
        copies.append(copy)
    return copies


def same(one: Instr, two: Instr, body: list[Instr]) -> bool:
    """Return whether a value of `body`, and one of another loop, are the same computation."""
    if one.id == two.id:
        return True
    if (one.op, one.type, one.vec, one.attrs) != (two.op, two.type, two.vec, two.attrs):
        return False
    if len(one.args) != len(two.args) or not any(one is instr for instr in body):
        return False
    return all(same(a, b, body) for a, b in zip(one.args, two.args))


def replace(function: Function, mapping: dict[int, Instr]) -> None:
    """Replace every use of a value by its entry in mapping."""
    if not mapping:
        return

    def final(value: Instr) -> Instr:
        while value.id in mapping:
            value = mapping[value.id]
        return value

    for node in function.body:
        if isinstance(node, Loop):
            node.domain = final(node.domain)
        for instr in node.body if isinstance(node, Loop) else [node]:
            instr.args = [final(arg) for arg in instr.args]
    for vector in function.vectors.values():
        vector.size = final(vector.size)
        if vector.needs is not None:
            vector.needs = final(vector.needs)
