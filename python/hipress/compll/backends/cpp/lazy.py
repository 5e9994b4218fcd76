"""Lazy states: what the last pass over memory would do is left to the next encode.

Where the first pass keeps x = gradient + residual in the residual (passes/keep.py), and the last
makes the new residual of it and of numbers that were only found out in between (onebit's means),
the last is not done, and the numbers are saved instead. The next encode forms the residual while
it reads x: one pass fewer, the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compll.backends.common.expressions import LANE, expression, literal
from hipress.compll.ir.ir import Instr, Loop, Program, node_reads, node_writes

MAX_LAZY = 8
_BY_PLACE = ("index", "random", "random16")


@dataclass
class LazyPlan:
    """`last` makes `state` of what `first` has stored in it, and of `uniforms`.

    :ivar x: the load of it in the last loop
    :ivar body: instructions of the last loop that make `result` of `x`
    """

    state: str
    position: int
    first: Loop
    last: Loop
    x: Instr
    body: list[Instr]
    result: Instr
    uniforms: list[Instr]

    def lambda_(self, names: list[str], usual: str = "false") -> list[str]:
        """`settle`, a C++ lambda that makes the state of x; its uniforms have these names.

        :param usual: a C++ constant: if it is true, so are the uniforms that are bools
        """
        known = {instr.id: f"l{number}" for number, instr in enumerate(self.uniforms)}
        known[self.x.id] = "x"
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
    readers = [node for node in function.body if state in node_reads(node)]
    if len(writers) != 2 or readers[:1] != writers[:1] or readers[-1:] != writers[1:]:
        return None
    first, last = writers
    if not isinstance(first, Loop) or not isinstance(last, Loop):
        return None
    if {i.op for i in [*first.body, *last.body] if state in i.vec} != {"load", "store"}:
        return None
    if node_writes(last) != {state} or node_reads(last) != {state} or last.results:
        return None
    x, *others = [instr for instr in last.body if instr.op == "load"]
    result = next(instr for instr in last.body if instr.op == "store").args[0]
    body = [instr for instr in last.body if instr.op not in ("load", "store")]
    uniforms = _uniforms(body, last)
    if others or uniforms is None or any(i.op in _BY_PLACE for i in body):
        return None
    return LazyPlan(
        state, program.states.index(state), first, last, x, body, result, uniforms
    )  # fmt: skip


def _uniforms(body: list[Instr], loop: Loop) -> list[Instr] | None:
    """Numbers from outside of the loop that a body needs, if they can be saved as floats."""
    inside = {instr.id for instr in loop.body}
    found: dict[int, Instr] = {}
    for instr in body:
        for arg in instr.args:
            if arg.id not in inside and arg.op != "const":
                found[arg.id] = arg
    known = list(found.values())
    if len(known) > MAX_LAZY or any(instr.type not in ("f32", "bool") for instr in known):
        return None
    return known
