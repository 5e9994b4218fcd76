"""C++ of one fused loop: blocks of 4096 elements, tiles of 64, vectors of lanes."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.expressions import lanes
from hipress.compression.compiler.backends.common.text import block
from hipress.compression.compiler.backends.cpp import memory, reduction
from hipress.compression.compiler.backends.cpp.blocks import block_constant, blocks
from hipress.compression.compiler.backends.cpp.context import CppContext
from hipress.compression.compiler.backends.cpp.loop_context import INLINE, CppLoopContext
from hipress.compression.compiler.ir.ir import Instr, Loop
from hipress.compression.compiler.passes.bounds import fits, upper, wanted_bits


class CppLoop(CppLoopContext):
    """Writer of a loop into the function around it.

    Attributes:
        usual: C++ of conditions that are the same for a whole block or bucket, by their ids. Blocks
            where all of them hold have specialized tiles, kUsual.
    """

    range = "begin, end"
    """C++ of the begin and the end of a section's tiles."""
    asks = True
    """Whether a section can have tiles of the kind kUsual."""
    special = (*CppLoopContext.special, "select")

    load, load_at, bucket_load = memory.load, memory.load_at, memory.bucket_load
    store, reduce = memory.store, reduction.reduce

    def __init__(self, owner: CppContext, loop: Loop, number: int, next_block: str = "") -> None:
        super().__init__(owner, loop, number, next_block)
        self.usual: dict[int, str] = {}
        for instr in loop.results:
            reduction.declare_partials(self, instr)
        self.write_body()

    def write_body(self) -> None:
        for instr in self.loop.body:
            if self.asks and instr.op == "select" and instr.args[0].op != "const":
                # The conditions are the same for all elements of a block or bucket.
                text = block_constant(self, instr.args[0])
                if text is not None:
                    self.usual[instr.args[0].id] = text
        for instr in self.loop.body:
            self.instr(instr)

    def lines(self) -> list[str]:
        """Return the C++ of the loop, results declared in the function's scope."""
        return blocks([self], self.guarded_domain)

    def section(self) -> list[str]:
        tile, usual = f"tile{self.number}", " && ".join(dict.fromkeys(self.usual.values()))
        kind = "auto usual, " if usual else ""
        tiles = f"COMPLL_USUAL_TILES({tile}, {usual}, " if usual else f"COMPLL_TILES({tile}, "
        return [
            *self.prologue,
            *block(
                f"auto {tile} = [&](auto tail, {kind}int64_t i, int rem) {INLINE}",
                "constexpr bool kTail = decltype(tail)::value;",
                ["constexpr bool kUsual = decltype(usual)::value;"] if usual else [],
                self.before,
                self.vectors(),
                self.after,
                end="};",
            ),
            f"{tiles}{self.range});",
            *self.finish,
        ]

    def text(self, instr: Instr) -> str:
        """Return the C++ of a value for one vector of lanes."""
        op, params = instr.op, self.owner.params
        if op == "ne" and self.is_bit(instr.args[0]) and _is_zero(instr.args[1]):
            return f"MaskOf({self.bit_word(instr.args[0].vec[0])}, v)"
        if op == "saturate" and fits(instr.args[0], instr.attrs["bits"], params):
            return f"SaturateBelow({self.value(instr.args[0])})"
        if op == "cast" and (instr.args[0].type, instr.type) == ("f32", "i32"):
            if upper(instr.args[0], params) < 2**31:
                low = wanted_bits(instr, self.loop.body, params) < 2**31
                return f"{'ToI32Low' if low else 'ToI32Below'}({self.value(instr.args[0])})"
        return super().text(instr)

    def index(self, instr: Instr) -> str:
        return "Lanes(at)"

    def select(self, instr: Instr) -> str:
        condition, *values = instr.args
        yes, no = (self.value(value) for value in values)
        if condition.id in self.usual:
            return f"kUsual ? {yes} : {lanes(instr, [self.value(condition), yes, no])}"
        if instr.type == "f32" and condition.op in ("lt", "gt") and condition.args == values:
            return f"{'Smaller' if condition.op == 'lt' else 'Larger'}({yes}, {no})"
        if condition.op == "isnan" and values[1] is condition.args[0] and instr.type == "f32":
            return f"NanTo({no}, {yes})"
        return lanes(instr, [self.value(condition), yes, no])

    def random(self, instr: Instr) -> str:
        site, half = instr.attrs["site"], instr.op == "random16"
        # Each loop of a pass has its own source, which goes through the tiles in order.
        first = self.owner.drawn_in.setdefault(site, self.number)
        source = f"random{site}" if first == self.number else f"random{site}_{self.number}"
        self.shared.append(f"RandomSource<{16 if half else 'kTile'}> {source};")
        words = f"{source}.Tile(key, {site}, i / kTile, last - i)"
        if (condition := self.drawn_if(instr)) is not None:
            self.prologue.append(f"const bool drawn{site} = {condition};")
            words = f"drawn{site} ? {words} : {source}.Any()"
        self.before.append(f"const uint32_t* const words{site} = {words};")
        return f"{'RandomHalves' if half else 'RandomWords'}(words{site}, v)"

    random16 = random

    def drawn_if(self, instr: Instr) -> str | None:
        """Return the C++ of the condition of a number's only user if it is constant in a block, or
        None."""
        users = [other for other in self.loop.body if instr in other.args]
        if len(users) != 1 or users[0].op != "select" or users[0].args[2] is instr:
            return None
        return block_constant(self, users[0].args[0])


class BucketLoop(CppLoop):
    """A loop over buckets that is done between two passes over them."""

    range = "block_begin, block_end"
    asks = False


def _is_zero(value: Instr) -> bool:
    return value.op == "const" and value.attrs["value"] == 0
