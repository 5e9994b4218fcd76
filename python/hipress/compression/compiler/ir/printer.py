"""Text of the IR, for people, golden files and digests. Values are numbered in order.

Programs of the same text mean the same, so it contains all inputs of an instruction's result.
"""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import OPS, Block, Function, Instr, Loop, Program

_STATEMENTS = {
    "store": "{v[0]}[i] = {a[0]}",
    "require": 'require {a[0]} else "{message}"',
    "end_of_payload": "end of payload",
    "bucket_reduce": "{v[0]}[i / {a[0]}] = {fn} {a[1]}",
}
_VALUES = {
    "select": "{a[0]} ? {a[1]} : {a[2]}",
    "load": "{v[0]}[i]",
    "load_at": "{v[0]}[{a[0]}]",
    "bucket_load": "{v[0]}[i / {a[0]}]",
    "saturate": "saturate<{bits}> {a[0]}",
    "wrap": "wrap<{bits}> {a[0]}",
    "random": "random site {site}",
    "random16": "random16 site {site}",
    "field": "field {elem}",
}


class _Names:
    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}

    def __call__(self, instr: Instr) -> str:
        if instr.op == "const":
            return _number(instr.attrs["value"])
        if instr.op == "param":
            return instr.attrs["name"]
        if instr.op in ("n", "step", "index"):
            return {"index": "i"}.get(instr.op, instr.op)
        return f"%{self.numbers.setdefault(instr.id, len(self.numbers))}"


def _number(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def print_program(program: Program) -> str:
    """Return the whole program as text."""
    lines = [f'algorithm {program.name} "{program.summary}"']
    for param in program.params:
        default = "" if param.default is None else f" = {_number(param.default)}"
        static = "static " if param.static else ""
        summed = f", sum {_inline(param.for_sum)}" if isinstance(param.for_sum, Block) else ""
        lines.append(f"param {static}{param.type} {param.name}{default}: {param.allowed()}{summed}")
    lines += [f"state f32 {name}[n]" for name in program.states]
    for function in program.functions:
        lines += ["", print_function(function)]
    return "\n".join(lines) + "\n"


def print_function(function: Function) -> str:
    """Return one function as text."""
    names = _Names()
    lines = [f"{function.kind} {function.name}({function.input}) -> {function.output} {{"]
    for vector in function.vectors.values():
        if vector.needs is not None:
            lines.append(f"  {vector.name} only if {names(vector.needs)}")
        if vector.kind in ("temp", "field"):
            packed = f" {vector.order}" if vector.packed else ""
            pad = f" multiple {vector.multiple}" if vector.multiple > 1 else ""
            size = names(vector.size)
            lines.append(f"  {vector.kind} {vector.elem} {vector.name}[{size}]{packed}{pad}")
    for node in function.body:
        if isinstance(node, Loop):
            guard = "" if node.guard is None else f" if {names(node.guard)}"
            lines.append(f"  for i < {names(node.domain)}{guard} {{")
            lines += ["    " + line for line in _body(node.body, names)]
            lines.append("  }")
        else:
            lines += ["  " + line for line in _body([node], names)]
    return "\n".join([*lines, "}"])


def _body(body: list[Instr], names: _Names) -> list[str]:
    hidden = ("const", "param", "n", "step", "index")
    return [_line(instr, names) for instr in body if instr.op not in hidden]


def _line(instr: Instr, names: _Names) -> str:
    args = [names(arg) for arg in instr.args]
    vec, op = instr.vec, instr.op
    if op in _STATEMENTS:
        return _STATEMENTS[op].format(a=args, v=vec, **instr.attrs)
    if op == "scatter":
        return f"{vec[0]}[{vec[1]}] = {vec[2] if len(vec) > 2 else args[0]}"
    if op == "field_vector":
        return f"field {vec[0]}{', then zeros' if instr.attrs.get('zeros') else ''}"
    if op == "emit":
        fields = instr.attrs["fields"]
        parts = [what if kind == "vector" else f"{kind} {args[what]}" for kind, what in fields]
        return "emit " + ", ".join(parts)
    if OPS[op].symbol:
        right = f"{args[0]} {OPS[op].symbol} {args[1]}"
    elif op in _VALUES:
        right = _VALUES[op].format(a=args, v=vec, **instr.attrs)
    elif op == "reduce":
        function = instr.attrs["fn"]
        named = function if isinstance(function, str) else _inline(function)
        right = f"reduce {named} {' from '.join(args)}"
    else:
        more = [f"{name} {value}" for name, value in sorted(instr.attrs.items())]
        right = " ".join([op, *vec, *args, *more])
    return f"{names(instr)}: {instr.type} = {right}"


def _inline(block: Block) -> str:
    names = _Names()
    params = [names(param) for param in block.params]
    body = "; ".join(_body(block.body, names))
    return f"({', '.join(params)} -> {body}; {names(block.result)})"
