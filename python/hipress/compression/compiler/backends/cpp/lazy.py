"""C++ of a lazy state (passes/lazy.py): saving its numbers, and making it plain again."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.expressions import lanes
from hipress.compression.compiler.backends.common.text import block
from hipress.compression.compiler.passes.lazy import LazyState


def settle_lambda(lazy: LazyState, usual: str = "false") -> list[str]:
    """Return `settle`, a C++ lambda that computes the state from its content and saved numbers.

    :param usual: a C++ constant: if it is true, so are the numbers that are bools
    """
    known = {instr.id: f"l{number}" for number, instr in enumerate(lazy.uniforms)}
    known[lazy.x.id] = "x"
    saved = []
    for number, instr in enumerate(lazy.uniforms):
        value = f"call.lazy_values[{number}]"
        value = f"({value} != 0)" if instr.type == "bool" else value
        saved.append(f"const {lanes.types[instr.type]} l{number} = Set({value});")
    body = []
    for instr in lazy.body:
        args = [known[arg.id] if arg.id in known else lanes(arg, []) for arg in instr.args]
        known[instr.id] = f"y{len(known)}"
        text = lanes(instr, args)
        if instr.op == "select" and any(instr.args[0] is one for one in lazy.uniforms):
            text = f"{usual} ? {args[1]} : {text}"
        body.append(f"const {lanes.types[instr.type]} {known[instr.id]} = {text};")
    head = "auto settle = [&](F x) __attribute__((always_inline))"
    return [*saved, *block(head, body, f"return {known[lazy.result.id]};", end="};")]


def variants(lazy: LazyState) -> list[tuple[str, str]]:
    """Return conditions on a call, each with its template argument kLazy. The first that holds
    counts."""
    bools = [
        f"call->lazy_values[{number}] != 0"
        for number, instr in enumerate(lazy.uniforms)
        if instr.type == "bool"
    ]
    usual = [(" && ".join(bools), "2")] if bools else []
    return [("!call->lazy", "0"), *usual, ("", "1")]


def save(values: list[str]) -> list[str]:
    """Return the code that replaces the encoder's last pass."""
    lines = [f"call.lazy_values[{number}] = {value};" for number, value in enumerate(values)]
    return [*lines, "call.lazy = 1;"]


def settle_function(lazy: LazyState) -> list[str]:
    """Return the function that makes a lazy state plain."""
    return [
        *block(
            "void Settle(const CompllSettleCall* given)",
            "const CompllSettleCall& call = *given;",
            f"float* const state = call.states[{lazy.position}];",
            block(
                "ForBlocks(call, call.n, kBlock, [&](int64_t, int64_t begin, int64_t end, int)",
                settle_lambda(lazy),
                block(
                    "for (int64_t i = begin; i < end; i += kLanes)",
                    "const int left = static_cast<int>(std::min<int64_t>(end - i, kLanes));",
                    "Store<true>(state, i, left, settle(Load<true>(state, i, left)));",
                ),
                end="});",
            ),
        ),
        "",
    ]
