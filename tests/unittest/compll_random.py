"""Random encoders: states, maps, filters, rankings, draws, buckets and conditions, mixed."""

from __future__ import annotations

import random

_STATES = ["residual", "velocity"]
_KINDS = [
    "elements",
    "map",
    "map",
    "own",
    "state",
    "state",
    "copy",
    "copy",
    "scatter",
    "scatter",
    "number",
    "topk",
    "filter",
    "draw",
    "choice",
    "bucket",
    "codes",
]


class _Text:
    """Program text under construction."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.vectors, self.numbers = ["gradient"], ["1.5", "p"]
        self.indices: list[str] = []
        self.lines: list[str] = []

    def one(self, *of: str) -> str:
        return self.random.choice(of)

    def vector(self) -> str:
        return self.one(*self.vectors, *_STATES)

    def number(self) -> str:
        return self.one(*self.numbers)

    def name(self) -> str:
        return f"x{len(self.lines)}"

    def value(self, of: list[str]) -> str:
        a, b, number = self.one(*of), self.one(*of), self.number()
        return self.one(
            f"{a} * {number}",
            f"{a} + {b}",
            f"{a} - {number}",
            f"abs({a})",
            f"max({a}, {b})",
            f"({a} > {number} ? {b} : {number})",
            f"({a} * {b})",
        )

    def add(self, kind: str) -> None:
        name, a, b = self.name(), self.vector(), self.vector()
        size, state = "gradient.size", self.one(*_STATES)
        each = f"map(range({size}), [&](int i) -> float {{{{ return {{}}; }}}})".format
        line, made = "", self.vectors
        if kind == "elements":
            line = f"float* {name} = {self.value([a, b])};"
        elif kind == "map":
            body = self.value(["v", "w"])
            line = (
                f"float* {name} = map({a}, {b}, [&](float v, float w) -> float "
                f"{{ return {body}; }});"
            )
        elif kind == "own":
            line = f"float* {name} = {each(f'{a}[i] + {b}[max(i - 1, 0)]')};"
        elif kind == "draw":
            body = "return v + random<float>(0, 1);"
            line = f"float* {name} = map({a}, [&](float v) -> float {{ {body} }});"
        elif kind == "codes":
            body = "return v * 2 + 1;"
            line = f"uint<2>* {name} = map({a}, [&](float v) -> uint<2> {{ {body} }});"
        elif kind == "bucket":
            what = self.one("bucket_max", "bucket_min")
            self.lines.append(f"float* of_{name} = {what}({a}, q);")
            line = f"float* {name} = {each(f'{b}[i] - of_{name}[i / q]')};"
        elif kind == "number":
            made = self.numbers
            line = f"float {name} = {self.one('sum', 'max', 'min')}({a});"
        elif kind == "topk":
            made = self.indices
            of, k = self.one(f"abs({a})", a, f"-{a}"), self.one("5", f"{size} / 4")
            line = f"int* {name} = topk({of}, {k});"
        elif kind == "filter":
            made, body = self.indices, f"return {a}[i] > {self.number()};"
            line = f"int* {name} = filter(range({size}), [&](int i) -> bool {{ {body} }});"
        if line:
            self.lines.append(line)
            made.append(name)
        elif kind == "scatter" and self.indices:
            at = self.one(*self.indices)
            value = self.one("0", self.number(), f"gather({a}, {at})")
            self.lines.append(f"{state} = scatter({self.one(state, b)}, {at}, {value});")
        elif kind == "choice":
            condition, other = f"{self.number()} > {self.number()}", self.one(f"{state} = {b};", "")
            yes = f"{state} = {self.value([a, state])};"
            self.lines.append(f"if ({condition}) {{ {yes} }} else {{ {other} }}")
        else:
            value = a if kind == "copy" else self.value([a, b, state])
            self.lines.append(f"{state} = {value};")


def random_encoder(seed: int) -> str:
    """Return the text of a random encoder; some texts are ones that no compiler would accept."""
    text = _Text(seed)
    for _ in range(text.random.randint(4, 12)):
        text.add(text.one(*_KINDS))
    made = text.vectors[1:]
    text.random.shuffle(made)
    fields = [*made[:2], *text.numbers[2:4], text.one(*_STATES)]
    if text.indices:
        fields += [f"uint32({text.indices[0]}.size)", f"pack_ascending({text.indices[0]})"]
    lines = "\n  ".join([*text.lines, f"compressed = concat({', '.join(fields)});"])
    return f"""
param float p = {text.one("0.5", "2")};
param int q = 64 in [64, 128] multiple 64;
state float* residual;
state float* velocity{text.one("", " if p > 1")};
void Encode(float* gradient, uint8* compressed) {{
  {lines}
}}
"""
