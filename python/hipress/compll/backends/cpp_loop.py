"""C++ of one fused loop: blocks of 4096 elements, tiles of 64, vectors of lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipress.compll.backends.cpp_expr import LANE, SCALAR, expression, literal
from hipress.compll.ir.ir import Block, Instr, Loop

if TYPE_CHECKING:
    from hipress.compll.backends.cpp_function import FunctionWriter


class LoopWriter:
    """Writes a loop into the function around it.

    :param owner: the function's writer: names of values and vectors
    """

    def __init__(self, owner: FunctionWriter, loop: Loop, number: int) -> None:
        self.owner, self.loop, self.number = owner, loop, number
        self.inside = {instr.id for instr in loop.body}
        self.uniforms: dict[int, str] = {}
        self.prologue: list[str] = []
        self.before: list[str] = []
        self.tile: list[str] = []
        self.after: list[str] = []
        self.finish: list[str] = []
        self.epilogue: list[str] = []

    def lines(self) -> list[str]:
        """The C++ of the loop, results declared in the function's scope."""
        domain = self.owner.value(self.loop.domain)
        buckets = [instr for instr in self.loop.body if instr.op == "bucket_reduce"]
        block = self.owner.value(buckets[0].args[0]) if buckets else "kBlock"
        setup: list[str] = []
        for instr in self.loop.body:
            if instr.op == "reduce":
                self._partials(instr, domain, setup)
        for instr in self.loop.body:
            self._instr(instr)
        unroll = "#pragma GCC unroll 16"
        return [
            *setup,
            f"ForBlocks(threads, {domain}, {block}, "
            "[&](int64_t block, int64_t begin, int64_t end) {",
            *_indent(self.prologue),
            "  auto tile = [&](auto tail, int64_t i, int rem) __attribute__((always_inline)) {",
            "    constexpr bool kTail = decltype(tail)::value;",
            *_indent(self.before, 2),
            unroll,
            "    for (int v = 0; v < kVectors; ++v) {",
            "      const int left = rem - v * kLanes;",
            "      if (kTail && left <= 0) break;",
            "      const int64_t at = i + v * kLanes;",
            *_indent(self.tile, 3),
            "      (void)at;",
            "    }",
            *_indent(self.after, 2),
            "  };",
            "  int64_t i = begin;",
            "  for (; i + kTile <= end; i += kTile) tile(std::false_type(), i, kTile);",
            "  if (i < end) tile(std::true_type(), i, static_cast<int>(end - i));",
            *_indent(self.finish),
            "  (void)block;",
            "});",
            *self.epilogue,
        ]

    def _value(self, instr: Instr) -> str:
        if instr.id in self.inside:
            return f"t{self.owner.number(instr)}"
        if instr.op == "const":
            return expression(instr, [], lane=True)
        name = self.uniforms.get(instr.id)
        if name is None:
            name = f"u{self.owner.number(instr)}"
            self.uniforms[instr.id] = name
            self.prologue.append(
                f"const {LANE[instr.type]} {name} = Set({self.owner.value(instr)});"
            )
        return name

    def _instr(self, instr: Instr) -> None:
        name = f"t{self.owner.number(instr)}"
        op = instr.op
        if op == "store":
            self._store(instr)
            return
        if op in ("reduce", "bucket_reduce"):
            self._reduce(instr)
            return
        if op == "index":
            text = "Lanes(at)"
        elif op in ("random", "random16"):
            words = f"words{instr.attrs['site']}"
            c_type, draw = (
                ("uint32_t", "RandomTile") if op == "random" else ("uint16_t", "RandomTile16")
            )
            self.before += [
                f"alignas(64) {c_type} {words}[kTile];",
                f"{draw}(key, {instr.attrs['site']}, i / kTile, {words});",
            ]
            text = f"Load<false>({words}, v * kLanes, kLanes)"
        elif op == "load":
            text = self._load(instr)
        elif op == "load_at":
            memory = self.owner.memory(instr.vec[0])
            text = f"Gather<{LANE[instr.type]}>({memory}, {self.owner.size(instr.vec[0])}, " + (
                f"{self._value(instr.args[0])})"
            )
        elif op == "bucket_load":
            memory = self.owner.memory(instr.vec[0])
            text = f"Set({memory}[i / {self.owner.value(instr.args[0])}])"
        else:
            text = expression(instr, [self._value(arg) for arg in instr.args], lane=True)
        self.tile.append(f"const {LANE[instr.type]} {name} = {text};")

    def _load(self, instr: Instr) -> str:
        name = instr.vec[0]
        vector = self.owner.function.vectors[name]
        memory = self.owner.memory(name)
        if not vector.packed:
            return f"Load<kTail>({memory}, at, left)"
        codes = f"in_{name}"
        line = f"alignas(64) uint8_t {codes}[kTile];"
        if line not in self.before:
            msb = "true" if vector.order == "msb" else "false"
            size = self.owner.packed_size(name)
            self.before += [
                line,
                f"LoadTile<kTail, {msb}>({memory}, {vector.bits}, i, {size}, {codes});",
            ]
        return f"GetCodes({codes}, v)"

    def _store(self, instr: Instr) -> None:
        name = instr.vec[0]
        vector = self.owner.function.vectors[name]
        memory, value = self.owner.memory(name), self._value(instr.args[0])
        if vector.packed:
            codes = f"out_{name}"
            msb = "true" if vector.order == "msb" else "false"
            self.before += [
                f"alignas(64) uint8_t {codes}[kTile];",
                f"if (kTail) std::memset({codes}, 0, kTile);",
            ]
            masked = f"kTail ? {value} & Valid(left) : {value}"
            self.tile.append(f"PutCodes({codes}, v, {masked});")
            self.after.append(
                f"StoreTile<kTail, {msb}>({codes}, {vector.bits}, {memory}, i, "
                f"{self.owner.packed_size(name)});"
            )
            return
        if vector.kind == "output":
            value = f"kAdd ? Load<kTail>({memory}, at, left) + {value} : {value}"
        self.tile.append(f"Store<kTail>({memory}, at, left, {value});")

    # Reductions ----------------------------------------------------------------------

    def _partials(self, instr: Instr, domain: str, setup: list[str]) -> None:
        number = self.owner.number(instr)
        c_type = self._partial_type(instr)
        setup.append(
            f"{c_type}* part{number} = arena.Get<{c_type}>(({domain} + kBlock - 1) / kBlock);"
        )

    def _partial_type(self, instr: Instr) -> str:
        if instr.attrs["fn"] == "sum":
            return "float" if instr.type == "f64" else "int64_t"
        return SCALAR[instr.type]

    def _reduce(self, instr: Instr) -> None:
        number, function = self.owner.number(instr), instr.attrs["fn"]
        element = instr.args[1] if instr.op == "bucket_reduce" else instr.args[0]
        value, sums = self._value(element), f"sums{number}"
        lane_type = LANE[element.type]
        scalar = SCALAR[element.type]
        start = self._start(instr, function, scalar)
        combine = self._combine(function, f"combine{number}")
        self.prologue += [
            *combine,
            f"{lane_type} {sums}[kSums];",
            f"for (int s = 0; s < kSums; ++s) {sums}[s] = Set({scalar}({start}));",
        ]
        at = f"{sums}[v % kSums]"
        update = f"combine{number}({at}, {value})"
        self.tile.append(f"{at} = kTail ? Select(Valid(left), {update}, {at}) : {update};")
        folded = f"FoldLanes<{scalar}>({sums}, combine{number})"
        if instr.op == "bucket_reduce":
            self.finish.append(f"{self.owner.memory(instr.vec[0])}[block] = {folded};")
            return
        self.finish.append(f"part{number}[block] = {folded};")
        result = self.owner.value(instr)
        domain = self.owner.value(self.loop.domain)
        c_type = SCALAR[instr.type]
        loop = f"for (int64_t b = 0; b < ({domain} + kBlock - 1) / kBlock; ++b) "
        if function == "sum":
            self.epilogue += [
                f"{c_type} {result} = 0;",
                f"{loop}{result} += static_cast<{c_type}>(part{number}[b]);",
            ]
        else:
            outer = self._combine(function, f"join{number}")
            self.epilogue += [
                *outer,
                f"{c_type} {result} = {start};",
                f"{loop}{result} = join{number}({result}, part{number}[b]);",
            ]

    def _start(self, instr: Instr, function: object, scalar: str) -> str:
        if function == "sum":
            return "0"
        if isinstance(function, Block):
            start = instr.args[1]
            if start.id in self.inside:
                return literal(start.attrs["value"], start.type)
            return self.owner.value(start)
        return literal(float("-inf") if function == "max" else float("inf"), "f32")

    def _combine(self, function: object, name: str) -> list[str]:
        if function == "sum":
            body = ["return a + b;"]
        elif not isinstance(function, Block):
            symbol = ">" if function == "max" else "<"
            body = [f"return Select(a {symbol} b, a, b);"]
        else:
            names = {param.id: "ab"[k] for k, param in enumerate(function.params)}
            body = []
            for instr in function.body:
                args = [names[arg.id] for arg in instr.args]
                names[instr.id] = f"c{len(names)}"
                if instr.op == "const":
                    text = f"Like(a, {literal(instr.attrs['value'], instr.type)})"
                else:
                    text = expression(instr, args, lane=True)
                body.append(f"const auto {names[instr.id]} = {text};")
            body.append(f"return {names[function.result.id]};")
        return [f"auto {name} = [](auto a, auto b) {{ {' '.join(body)} }};"]


def _indent(lines: list[str], levels: int = 1) -> list[str]:
    return ["  " * levels + line for line in lines]
