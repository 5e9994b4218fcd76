"""C++ of the reductions in a loop: 32 lanes in each block, folded, joined in the blocks' order."""

from __future__ import annotations

from hipress.compll.backends.common.expressions import LANE, SCALAR, expression, join_body, literal
from hipress.compll.ir.ir import Block, Instr


class ReductionWriter:
    """Part of LoopWriter."""

    def partials(self, instr: Instr) -> None:
        number, c_type = self.owner.number(instr), _partial_type(instr)
        self.setup.append(
            f"{c_type}* part{number} = arena.Get<{c_type}>(({self.domain} + kBlock - 1) / kBlock);"
        )

    def reduce(self, instr: Instr) -> None:
        number, function = self.owner.number(instr), instr.attrs["fn"]
        element = instr.args[1] if instr.op == "bucket_reduce" else instr.args[0]
        if function == "sum" and (masks := self.counted(element)):
            self.count(instr, masks)
            return
        value, sums = self.value(element), f"sums{number}"
        lane_type, scalar = LANE[element.type], SCALAR[element.type]
        start = self.start(instr, function)
        self.prologue += [
            *combiner(function, f"combine{number}"),
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
        self.join(instr, function)

    def counted(self, element: Instr) -> str | None:
        """The masks of a tile if they are collected for a store and `element` is 1 or 0 by them."""
        if element.op != "cast" or element.args[0].type != "bool":
            return None
        stores = [i for i in self.loop.body if i.op == "store" and i.args[0] is element]
        for store in stores:
            vector = self.owner.function.vectors[store.vec[0]]
            if vector.packed and vector.bits == 1 and store.vec[0] not in self.owner.filters:
                return f"out_{store.vec[0]}"
        return None

    def count(self, instr: Instr, masks: str) -> None:
        """A sum of ones: the bits that are stored anyway are counted."""
        number = self.owner.number(instr)
        self.prologue.append(f"int64_t count{number} = 0;")
        self.after.append(f"count{number} += __builtin_popcountll(JoinMasks({masks}));")
        self.finish.append(f"part{number}[block] = count{number};")
        self.join(instr, "sum")

    def join(self, instr: Instr, function: object) -> None:
        """The blocks' results in order."""
        number, start = self.owner.number(instr), self.start(instr, function)
        result, c_type = self.owner.value(instr), SCALAR[instr.type]
        domain = self.domain
        if self.loop.guard is not None:
            domain = f"({self.owner.value(self.loop.guard)} ? {domain} : 0)"
        loop = f"for (int64_t b = 0; b < ({domain} + kBlock - 1) / kBlock; ++b) "
        if function == "sum":
            self.epilogue += [
                f"{c_type} {result} = 0;",
                f"{loop}{result} += static_cast<{c_type}>(part{number}[b]);",
            ]
        else:
            self.epilogue += [
                *combiner(function, f"join{number}"),
                f"{c_type} {result} = {start};",
                f"{loop}{result} = join{number}({result}, part{number}[b]);",
            ]

    def start(self, instr: Instr, function: object) -> str:
        if function == "sum":
            return "0"
        if isinstance(function, Block):
            start = instr.args[1]
            if start.id in self.inside:
                return literal(start.attrs["value"], start.type)
            return self.owner.value(start)
        return literal(float("-inf") if function == "max" else float("inf"), "f32")


def _partial_type(instr: Instr) -> str:
    if instr.attrs["fn"] == "sum":
        return "float" if instr.type == "f64" else "int64_t"
    return SCALAR[instr.type]


def combiner(function: object, name: str) -> list[str]:
    """A C++ lambda of two values, which may be lanes or scalars."""

    def text(instr: Instr, args: list[str]) -> str:
        if instr.op == "const":
            return f"Like(a, {literal(instr.attrs['value'], instr.type)})"
        return expression(instr, args, lane=True)

    body = join_body(function, lambda _: "auto", text)
    return [f"auto {name} = [](auto a, auto b) {{ {body} }};"]
