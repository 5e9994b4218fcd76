"""Lazy states: what the last pass over memory would do is left to the next encode.

Where an encoder ends in a pass that makes a state of x = gradient + state and of numbers that only
the first pass found out (onebit's means), the first pass stores x instead, and the numbers are kept
beside it. The next encode forms the state while it reads x: one pass fewer, the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compll.backends.cpp_expr import LANE, expression, literal
from hipress.compll.ir.ir import Instr, Loop, Program, node_reads, node_writes
from hipress.compll.passes.slices import backward

MAX_LAZY = 8


@dataclass
class LazyPlan:
    """`second` stores to `state` what follows from x and `uniforms`; `first` can store x.

    :ivar x: the value in the first loop
    :ivar again: the same value in the second
    :ivar body: instructions of the second loop that make `result` of `again`
    """

    state: str
    position: int
    first: Loop
    second: Loop
    x: Instr
    again: Instr
    body: list[Instr]
    result: Instr
    uniforms: list[Instr]

    def lambda_(self, names: list[str], usual: str = "false") -> list[str]:
        """`settle`, a C++ lambda that makes the state of x; its uniforms have these names.

        :param usual: a C++ constant: if it is true, so are the uniforms that are bools
        """
        known = {instr.id: f"l{number}" for number, instr in enumerate(self.uniforms)}
        known[self.again.id] = "x"
        lines = [
            f"const {LANE[instr.type]} l{number} = Set({name});"
            for number, (instr, name) in enumerate(zip(self.uniforms, names))
        ]
        body = []
        for instr in self.body:
            args = [
                known[arg.id] if arg.id in known
                else f"Set({literal(arg.attrs['value'], arg.type)})"
                for arg in instr.args
            ]  # fmt: skip
            known[instr.id] = f"y{len(known)}"
            text = expression(instr, args, lane=True)
            if instr.op == "select" and any(instr.args[0] is one for one in self.uniforms):
                text = f"{usual} ? {args[1]} : {text}"
            body.append(f"  const {LANE[instr.type]} {known[instr.id]} = {text};")
        return [
            *lines,
            "auto settle = [&](F x) __attribute__((always_inline)) {",
            *body,
            f"  return {known[self.result.id]};",
            "};",
        ]

    def saved(self) -> list[str]:
        """C++ of the uniforms as they were saved."""
        return [
            f"(call.lazy_values[{number}] != 0)" if instr.type == "bool"
            else f"call.lazy_values[{number}]"
            for number, instr in enumerate(self.uniforms)
        ]  # fmt: skip

    def variants(self) -> list[tuple[str, str]]:
        """Conditions on a call, and the template argument kLazy where they hold: first come."""
        bools = [
            f"call->lazy_values[{number}] != 0"
            for number, instr in enumerate(self.uniforms)
            if instr.type == "bool"
        ]
        usual = [(" && ".join(bools), "2")] if bools else []
        return [("!call->lazy", "0"), *usual, ("", "1")]

    def save(self, values: list[str]) -> list[str]:
        return [
            *(f"call.lazy_values[{number}] = {value};" for number, value in enumerate(values)),
            "call.lazy = 1;",
        ]

    def settle_function(self) -> list[str]:
        """The function that makes a lazy state plain."""
        return [
            "void Settle(const CompllSettleCall* given) {",
            "  const CompllSettleCall& call = *given;",
            f"  float* const state = call.states[{self.position}];",
            "  ForBlocks(call, call.n, kBlock, [&](int64_t, int64_t begin, int64_t end, int) {",
            *("    " + line for line in self.lambda_(self.saved())),
            "    for (int64_t i = begin; i < end; i += kLanes) {",
            "      const int left = static_cast<int>(std::min<int64_t>(end - i, kLanes));",
            "      Store<true>(state, i, left, settle(Load<true>(state, i, left)));",
            "    }",
            "  });",
            "}",
            "",
        ]


def lazy_plan(program: Program) -> LazyPlan | None:
    """How a program's encoder can leave its residual lazy, or None."""
    function = program.encode
    if function is None or "residual" not in program.states:
        return None
    state = "residual"
    writers = [node for node in function.body if state in node_writes(node)]
    if len(writers) != 1 or not isinstance(writers[0], Loop) or node_writes(writers[0]) != {state}:
        return None
    second = writers[0]
    readers = [node for node in function.body if state in node_reads(node) and node is not second]
    if len(readers) != 1 or not isinstance(readers[0], Loop) or second.results:
        return None
    first = readers[0]
    if first.domain is not second.domain or not any(node is first for node in function.body):
        return None
    if any(instr.op == "load_at" and state in instr.vec for instr in first.body):
        return None
    result = next(instr for instr in second.body if instr.op == "store").args[0]
    for again in second.body:
        if again.op in ("load", "const", "index") or again.type != "f32":
            continue
        body = _without(result, again, second.body)
        if body is None or not any(i.op == "load" for i in backward(again, second.body)):
            continue
        x = next((i for i in first.body if _same(i, again, first.body, second.body)), None)
        uniforms = _uniforms(body, second, again)
        if x is not None and uniforms is not None:
            position = program.states.index(state)
            return LazyPlan(state, position, first, second, x, again, body, result, uniforms)
    return None


def _without(result: Instr, cut: Instr, body: list[Instr]) -> list[Instr] | None:
    """What makes `result` of `cut` without memory; None if that is not so, or nothing is left."""
    inside = {instr.id for instr in body}
    wanted: set[int] = set()
    todo = [result]
    while todo:
        instr = todo.pop()
        if instr is cut or instr.id not in inside or instr.id in wanted:
            continue
        if instr.op in ("load", "load_at", "bucket_load", "index", "random", "random16"):
            return None
        wanted.add(instr.id)
        todo += instr.args
    return [instr for instr in body if instr.id in wanted] or None


def _uniforms(body: list[Instr], loop: Loop, cut: Instr) -> list[Instr] | None:
    """Numbers from outside of the loop that a body needs, if they can be saved as floats."""
    inside = {instr.id for instr in loop.body}
    found: dict[int, Instr] = {}
    for instr in body:
        for arg in instr.args:
            if arg is not cut and arg.id not in inside and arg.op != "const":
                found[arg.id] = arg
    known = list(found.values())
    if len(known) > MAX_LAZY or any(instr.type not in ("f32", "bool") for instr in known):
        return None
    return known


def _same(one: Instr, two: Instr, first: list[Instr], second: list[Instr]) -> bool:
    """True if two loops' values are the same computation."""
    if one.id == two.id:
        return True
    if (one.op, one.type, one.vec, one.attrs) != (two.op, two.type, two.vec, two.attrs):
        return False
    if len(one.args) != len(two.args) or not any(one is instr for instr in first):
        return False
    return all(_same(a, b, first, second) for a, b in zip(one.args, two.args))


