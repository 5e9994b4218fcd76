"""C++ of one fused loop: blocks of 4096 elements, tiles of 64, vectors of lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipress.compll.backends.common.expressions import LANE, expression
from hipress.compll.backends.cpp.blocks import block_constant, blocks, bucket_of
from hipress.compll.backends.cpp.memory import MemoryWriter
from hipress.compll.backends.cpp.payload import indent
from hipress.compll.backends.cpp.reduction import ReductionWriter
from hipress.compll.ir.ir import Instr, Loop
from hipress.compll.passes.bounds import fits, upper, wanted_bits

if TYPE_CHECKING:
    from hipress.compll.backends.cpp.function import FunctionWriter

UNROLL = "COMPLL_UNROLL"


class LoopWriter(ReductionWriter, MemoryWriter):
    """Writes a loop into the function around it.

    :param owner: the function's writer: names of values and vectors
    :param next_block: if given, C++ of how many elements away lie those of which an earlier loop
        reads the same vectors next: they are fetched into the cache while this one computes
    :ivar setup: lines before all blocks; then, in each block, `shared`, for it or each bucket in it
        `prologue`, for each tile `before`, for each vector `tile`, `after`; `finish` ends a block
        or bucket, `epilogue` follows all blocks
    :ivar usual: C++ of conditions that hold or do not for a block or bucket as a whole, by their
        ids: where all hold, its tiles are of a kind of their own, kUsual
    """

    def __init__(
        self, owner: FunctionWriter, loop: Loop, number: int, next_block: str = ""
    ) -> None:
        self.owner, self.loop, self.number, self.next_block = owner, loop, number, next_block
        self.inside = {instr.id for instr in loop.body}
        self.uniforms: dict[int, str] = {}
        self.domain = owner.value(loop.domain)
        self.setup: list[str] = []
        self.shared: list[str] = []
        self.prologue: list[str] = []
        self.before: list[str] = []
        self.tile: list[str] = []
        self.after: list[str] = []
        self.finish: list[str] = []
        self.epilogue: list[str] = []
        self.bucket = bucket_of(loop)
        self.in_table = False
        self.usual: dict[int, str] = {}
        for instr in loop.body:
            if instr.op == "reduce":
                self.partials(instr)
        self.write_body()

    def write_body(self) -> None:
        self.usual = self.conditions()
        for instr in self.loop.body:
            self.instr(instr)

    def conditions(self) -> dict[int, str]:
        """What selects look at that is the same for all elements of a block or bucket."""
        found = {}
        for instr in self.loop.body:
            if instr.op == "select" and instr.args[0].op != "const":
                text = block_constant(self, instr.args[0])
                if text is not None:
                    found[instr.args[0].id] = text
        return found

    def lines(self) -> list[str]:
        """The C++ of the loop, results declared in the function's scope."""
        domain = self.domain
        if self.loop.guard is not None:
            domain = f"({self.owner.value(self.loop.guard)} ? {domain} : 0)"
        return blocks([self], domain)

    def section(self) -> list[str]:
        """What is done for one block, or one bucket."""
        tile = f"tile{self.number}"
        tiles = f"COMPLL_TILES({tile}, begin, end);"
        if self.usual:
            usual = " && ".join(dict.fromkeys(self.usual.values()))
            tiles = f"COMPLL_USUAL_TILES({tile}, {usual}, begin, end);"
        return [*self.prologue, *self.tile_function(), tiles, *self.finish]

    def tile_function(self) -> list[str]:
        kind = "auto usual, " if self.usual else ""
        known = ["constexpr bool kUsual = decltype(usual)::value;"] if self.usual else []
        return [
            f"auto tile{self.number} = [&](auto tail, {kind}int64_t i, int rem) "
            "__attribute__((always_inline)) {",
            "  constexpr bool kTail = decltype(tail)::value;",
            *indent([*known, *self.before, *self.vectors(), *self.after]),
            "};",
        ]

    def vectors(self) -> list[str]:
        """`tile` for each vector of a tile; unrolled, so that arrays of vectors are registers."""
        head = [
            "const int left = rem - v * kLanes;",
            "const int64_t at = i + v * kLanes;",
            "(void)left, (void)at;",
        ]
        each = [UNROLL, "for (int v = 0; v < kVectors; ++v) vector(v);"]
        if any(instr.op in ("reduce", "bucket_reduce") for instr in self.loop.body):
            # The sums live on: an index that is not constant would keep them in memory.
            tail = [UNROLL, "for (int v = 0; v < kVectors; ++v) if (v * kLanes < rem) vector(v);"]
        else:
            tail = ["for (int v = 0; v * kLanes < rem; ++v) vector(v);"]
        return [
            "auto vector = [&](int v) __attribute__((always_inline)) {",
            *indent([*head, *self.tile]),
            "};",
            "if constexpr (kTail) {",
            *indent(tail),
            "} else {",
            *indent(each),
            "}",
        ]

    # Values ----------------------------------------------------------------------

    def value(self, instr: Instr) -> str:
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

    def instr(self, instr: Instr) -> None:
        op = instr.op
        if op == "store":
            self.store(instr)
        elif op in ("reduce", "bucket_reduce"):
            self.reduce(instr)
        else:
            name = f"t{self.owner.number(instr)}"
            self.tile.append(f"const {LANE[instr.type]} {name} = {self.text(instr)};")

    def text(self, instr: Instr) -> str:
        """The C++ of a value for one vector of lanes."""
        op = instr.op
        if op == "index":
            return "Lanes(at)"
        if op in ("random", "random16"):
            return self.random(instr)
        if op == "load":
            return self.load(instr)
        if op == "load_at":
            return self.load_at(instr)
        if op == "bucket_load":
            return self.bucket_load(instr)
        if op == "ne" and self.is_bit(instr.args[0]) and _is_zero(instr.args[1]):
            return f"MaskOf({self.bit_word(instr.args[0].vec[0])}, v)"
        if op == "select":
            return self.select(instr)
        values = [self.value(arg) for arg in instr.args]
        params = self.owner.params
        if op == "saturate" and fits(instr.args[0], instr.attrs["bits"], params):
            return f"SaturateBelow({values[0]})"
        if op == "cast" and (instr.args[0].type, instr.type) == ("f32", "i32"):
            if upper(instr.args[0], params) < 2**31:
                low = wanted_bits(instr, self.loop.body, params) < 2**31
                return f"{'ToI32Low' if low else 'ToI32Below'}({values[0]})"
        return expression(instr, values, lane=True)

    def select(self, instr: Instr) -> str:
        condition = instr.args[0]
        yes, no = (self.value(arg) for arg in instr.args[1:])
        if condition.id in self.usual:
            return f"kUsual ? {yes} : {expression(instr, [self.value(condition), yes, no], True)}"
        if (call := extreme(instr)) is not None:
            return f"{call}({yes}, {no})"
        if condition.op == "isnan" and instr.args[2] is condition.args[0] and instr.type == "f32":
            return f"NanTo({no}, {yes})"
        return expression(instr, [self.value(condition), yes, no], lane=True)

    def random(self, instr: Instr) -> str:
        site, half = instr.attrs["site"], instr.op == "random16"
        self.shared.append(f"RandomSource<{16 if half else 'kTile'}> random{site};")
        words = f"random{site}.Tile(key, {site}, i / kTile, last - i)"
        if (condition := self.condition(instr)) is not None:
            self.prologue.append(f"const bool drawn{site} = {condition};")
            words = f"drawn{site} ? {words} : random{site}.Any()"
        self.before.append(f"const uint32_t* const words{site} = {words};")
        return f"{'RandomHalves' if half else 'RandomWords'}(words{site}, v)"

    def condition(self, instr: Instr) -> str | None:
        """C++ of a number's only user's condition, the same for all of a block, or None."""
        users = [other for other in self.loop.body if instr in other.args]
        if len(users) != 1 or users[0].op != "select" or users[0].args[2] is instr:
            return None
        return block_constant(self, users[0].args[0])


class BucketWriter(LoopWriter):
    """A loop over buckets that is done between two passes over them."""

    def conditions(self) -> dict[int, str]:
        return {}

    def section(self) -> list[str]:
        tiles = f"COMPLL_TILES(tile{self.number}, block_begin, block_end);"
        return [*self.prologue, *self.tile_function(), tiles, *self.finish]


def extreme(select: Instr) -> str | None:
    """The call that is one instruction if a select takes the smaller, or larger, of two floats."""
    condition, *values = select.args
    if select.type != "f32" or condition.op not in ("lt", "gt") or condition.args != values:
        return None
    return "Smaller" if condition.op == "lt" else "Larger"


def _is_zero(value: Instr) -> bool:
    return value.op == "const" and value.attrs["value"] == 0
