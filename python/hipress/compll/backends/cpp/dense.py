"""C++ of a decoder that writes every element in one loop: any number of payloads in one pass.

The scalars of each payload are parsed first, its table of values is made if it is looked up, and of
masks is counted what comes before each block. Then each tile is summed over all payloads in
registers, in their order, and written once. See ir/merge.py for what the sum is.
"""

from __future__ import annotations

from hipress.compll.backends.common.expressions import LANE, SCALAR
from hipress.compll.backends.cpp.blocks import bucket_of
from hipress.compll.backends.cpp.function import FunctionWriter
from hipress.compll.backends.cpp.loop import UNROLL, LoopWriter
from hipress.compll.backends.cpp.payload import indent
from hipress.compll.ir.ir import Function, Instr, Loop, Program
from hipress.compll.ir.merge import integer_levels
from hipress.compll.ir.slices import backward


def is_dense(function: Function) -> bool:
    """True if a decoder is one loop that writes the output, from fields and bits under masks."""
    loops = [node for node in function.body if isinstance(node, Loop)]
    if len(loops) != 1 or loops[0].results or loops[0].domain.op != "n":
        return False
    if any(isinstance(node, Instr) and node.op == "scatter" for node in function.body):
        return False
    stores = [instr for instr in loops[0].body if instr.op in ("store", "bucket_reduce")]
    loads = {name for instr in loops[0].body if instr.op != "store" for name in instr.vec}
    spread = _spread(function)
    if spread and bucket_of(loops[0]) is not None:
        return False  # what is counted are blocks of the usual size
    return len(stores) == 1 and all(
        function.vectors[name].kind == "field" or name in spread for name in loads
    )


def _spread(function: Function) -> dict[str, Instr]:
    """Vectors of bits under masks, by name: the instructions that spread them."""
    return {
        node.vec[0]: node for node in function.body
        if isinstance(node, Instr) and node.op == "unpack_where"
    }  # fmt: skip


class DenseDecoder(FunctionWriter):
    """Writes the parts of a dense decoder; read `members` after loop_lines().

    :ivar table: the type of a payload's table of values, if they are looked up by the code
    """

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.members: dict[str, str] = {}
        self.parsing = True
        self.spread = _spread(function)
        self.table = ""

    def loop_lines(self) -> list[str]:
        """The pass over all tiles; what it needs of a payload becomes a member of Fields."""
        self.parsing = False
        loop = next(node for node in self.function.body if isinstance(node, Loop))
        lines = DecodeLoopWriter(self, loop, 0).lines()
        self.parsing = True
        return lines

    def parse_lines(self) -> list[str]:
        """Reads and checks one payload into Fields."""
        for node in self.function.body:
            if isinstance(node, Instr):
                self.instr(node)
                self.known.add(node.id)
        return [*self.lines, *(f"fields->{name} = {name};" for name in self.members)]

    def do_count_where(self, instr: Instr) -> None:
        (mask,) = instr.vec
        before, count = f"before{self.number(instr)}", self.size(mask)
        self.lines.append(
            f"int64_t* const {before} = arena.Get<int64_t>(({count} + kBlock - 1) / kBlock);"
        )
        self.define(instr, f"CountBlocks({self.memory(mask)}, {count}, {before})")

    def do_unpack_where(self, instr: Instr) -> None:
        """Left to the loop, which has the mask's words anyway."""

    def before(self, name: str) -> str:
        """Where it is counted, for each block, how far a vector of bits under a mask is read."""
        packed = self.function.vectors[self.spread[name].vec[1]]
        member = f"before{self.number(packed.size)}"
        self.members[member] = "int64_t*"
        return f"fields.{member}"

    def struct(self) -> list[str]:
        members = [f"{c_type} {name};" for name, c_type in self.members.items()]
        members += [f"{self.table} table;"] if self.table else []
        return ["/// What is needed of one payload.", "struct Fields {", *indent(members), "};", ""]

    def value(self, instr: Instr) -> str:
        name = super().value(instr)
        if self.parsing or instr.op in ("const", "n", "param"):
            return name
        self.members[name] = SCALAR[instr.type]
        return f"fields.{name}"

    def memory(self, name: str) -> str:
        if self.parsing:
            return super().memory(name)
        self.members[f"m_{name}"] = f"const {self.c_type(name)}*"
        return f"fields.m_{name}"


class DecodeLoopWriter(LoopWriter):
    """The loop of a dense decoder, with sums in registers."""

    def write_body(self) -> None:
        store = next(instr for instr in self.loop.body if instr.op == "store")
        self.levels = integer_levels(self.owner.function)
        self.result = store.args[0] if self.levels is None else self.levels.level
        self.lane = LANE[self.result.type]
        part = backward(self.result, self.loop.body)
        loads = self.code_loads(part)
        self.bytes: tuple[str, int] | None = None
        if loads:
            value = self.by_table(loads, part)
        else:
            for instr in part:
                self.instr(instr)
            value = self.value(self.result)
        self.tile.append(f"total[v] = kFirst ? {value} : total[v] + {value};")

    def code_loads(self, part: list[Instr]) -> list[Instr]:
        """The load of the codes that alone decide an element's value, if they are of few bits; or
        the two loads, of one bit each."""
        elements = ("load", "load_at", "bucket_load", "index", "random", "random16")
        found = [instr for instr in part if instr.op in elements]
        if any(instr.op != "load" or instr is part[-1] for instr in found):
            return []
        vectors = [self.owner.function.vectors[instr.vec[0]] for instr in found]
        few = all(vector.packed and vector.bits not in (5, 6, 7, 8) for vector in vectors)
        pair = len(found) == 2 and all(vector.bits == 1 for vector in vectors)
        alone = len(found) == 1 and found[0].vec[0] not in self.owner.spread
        return found if few and (pair or alone) else []

    def bit_word(self, name: str) -> str:
        if name not in self.owner.spread:
            return super().bit_word(name)
        _, packed, mask = self.owner.spread[name].vec
        line = (
            f"const uint64_t bits_{name} = NextBits({self.owner.memory(packed)}, "
            f"{self.owner.size(packed)}, {self.bit_word(mask)}, "
            f"{self.owner.before(name)} + block);"
        )
        if line not in self.before:
            self.before.append(line)
        return f"bits_{name}"

    def by_table(self, loads: list[Instr], part: list[Instr]) -> str:
        """A value that is looked up by the code: all values are computed at once."""
        name = loads[0].vec[0]
        bits = self.owner.function.vectors[name].bits if len(loads) == 1 else 2
        outer, self.tile, self.in_table = self.tile, [], True
        code = self.value(loads[0])
        if len(loads) == 2:
            self.tile += [
                f"const I {code} = code & 1, {self.value(loads[1])} = code >> 1 & 1;",
                f"(void){code}, (void){self.value(loads[1])};",
            ]
            code = "code"
        for instr in part:
            if instr not in loads:
                self.instr(instr)
        body, self.tile, self.in_table = self.tile, outer, False
        value_of = [
            f"auto value_of = [&](I {code}) __attribute__((always_inline)) {{",
            *indent(body),
            f"  return {self.value(self.result)};",
            "};",
        ]
        self.owner.table = self.lane
        self.setup += [
            "for (int64_t k = 0; k < call.count; ++k) {",
            "  const Fields& fields = all[k];",
            *indent([*self.prologue, *value_of]),
            "  all[k].table = value_of(Lanes(0));",
            "}",
        ]
        self.before += [
            *value_of,
            f"constexpr int kBits = {bits};",
            f"const {self.lane} table = fields.table, zero = Set(table[0]), one = Set(table[1]);",
            "(void)zero, (void)one, (void)table, (void)value_of;",
        ]
        if len(loads) == 2:
            return self.looked_up(self.pair_tile(*loads), "0", "false")
        if self.levels is not None and bits in (1, 2) and not self.uniforms:
            self.bytes = name, bits
            self.value_of = value_of
        self.before += [
            f"const uint64_t word = kBits == 1 ? LoadBits<kTail, {self.msb(name)}>("
            f"{self.owner.memory(name)}, i, {self.owner.packed_size(name)}) : 0;",
            "(void)word;",
        ]
        return self.looked_up(self.code_tile(name), "word", self.msb(name))

    def pair_tile(self, lower: Instr, upper: Instr) -> str:
        """Where the codes of a tile lie that are of one bit of each of two vectors."""
        words = f"{self.bit_word(lower.vec[0])}, {self.bit_word(upper.vec[0])}"
        self.before += [
            "alignas(64) uint8_t scratch_pairs[kTile];",
            f"const PairTile pairs({words});",
            "const uint8_t* const codes_pairs = pairs.Find(scratch_pairs);",
        ]
        return "codes_pairs"

    def looked_up(self, tile: str, word: str, msb: str) -> str:
        """The value of a vector of lanes, by the codes of a tile."""
        self.tile += [
            f"{self.lane} value;",
            "if constexpr (kBits == 1) {",
            f"  value = Select(MaskOf({word}, v), one, zero);",
            "} else if constexpr (kBits <= kTableBits) {",
            f"  value = Lookup(table, GetCodes<{msb}>({tile}, kBits, v));",
            "} else {",
            f"  value = value_of(GetCodes<{msb}>({tile}, kBits, v));",
            "}",
        ]
        return "value"

    def section(self) -> list[str]:
        """One payload into float32 is by far the most frequent call: it gets code of its own."""
        lane, sum_ = self.lane, "total" if self.levels is None else "sum"
        each = [UNROLL, "for (int v = 0; v < kVectors; ++v)"]
        load = "Load<kTail>(out, i + v * kLanes, rem - v * kLanes)"
        if self.levels is None:
            start = [
                "if (!kAlone && add) {",
                *indent([each[0], f"{each[1]} total[v] = {load};"]),
                "  add_part(tail, std::false_type(), all[0], i, rem, total);",
                "} else {",
                "  add_part(tail, std::true_type(), all[0], i, rem, total);",
                "}",
            ]
            finish = []
        else:
            unit = self.owner.value(self.levels.unit).replace("fields.", "all[0].")
            start = ["add_part(tail, std::true_type(), all[0], i, rem, total);"]
            finish = [
                "F sum[kVectors];",
                each[0], f"{each[1]} sum[v] = Set({unit}) * ToF32(total[v]);",
                "if (!kAlone && add) {",
                *indent([each[0], f"{each[1]} sum[v] = {load} + sum[v];"]),
                "}",
            ]  # fmt: skip
        each_part = [
            *start,
            "for (int64_t k = 1; k < count; ++k) {",
            "  add_part(tail, std::false_type(), parts[k], i, rem, total);",
            "}",
        ]
        return [
            *self.byte_table(),
            "auto add_part = [&](auto tail, auto first, const Fields& fields, int64_t i, int rem, "
            f"{lane}* total) __attribute__((always_inline)) {{",
            "  constexpr bool kTail = decltype(tail)::value, kFirst = decltype(first)::value;",
            *indent([*self.prologue, *self.before]),
            *indent(self.vectors()),
            "  (void)fields;",
            "};",
            "auto tiles = [&](auto alone) __attribute__((always_inline)) {",
            "  constexpr bool kAlone = decltype(alone)::value;",
            "  // Copies: stores might change what lies in memory.",
            "  float* const out = static_cast<float*>(call.out);",
            "  const bool add = call.add != 0;",
            "  const int64_t count = kAlone ? 1 : call.count;",
            "  const Fields one = all[0];",
            "  const Fields* const parts = kAlone ? &one : all;",
            "  (void)add;",
            "  auto tile = [&](auto tail, int64_t i, int rem) __attribute__((always_inline)) {",
            "    constexpr bool kTail = decltype(tail)::value;",
            f"    {lane} total[kVectors] = {{}};",
            *indent(self.by_bytes([line.replace("all[0]", "parts[0]") for line in each_part]), 2),
            *indent([line.replace("all[0]", "parts[0]") for line in finish], 2),
            "    if constexpr (kAlone) {",
            f"      StoreFloats<kTail>(out, i, rem, {sum_});",
            "    } else {",
            f"      StoreOut<kTail>(call, i, rem, {sum_});",
            "    }",
            "  };",
            "  COMPLL_TILES(tile, begin, end);",
            "};",
            "if (call.count == 1 && call.add == 0 && call.out_type == COMPLL_FLOAT32) {",
            "  tiles(std::true_type());",
            "} else {",
            "  tiles(std::false_type());",
            "}",
        ]

    def byte_table(self) -> list[str]:
        """What summing levels as bytes needs to know, if it is possible."""
        if self.bytes is None:
            return []
        return [
            "const I levels = [&] {",
            *indent(self.value_of),
            "  return value_of(Lanes(0));",
            "}();",
            f"const bool bytes = call.count > 1 && FitBytes(levels, {self.bytes[1]}, call.count);",
            "const Levels byte_table = LevelTable(levels);",
            "(void)bytes, (void)byte_table;",
        ]

    def by_bytes(self, otherwise: list[str]) -> list[str]:
        """The sum of the levels of a whole tile, in bytes where they fit."""
        if self.bytes is None:
            return otherwise
        name, bits = self.bytes
        memory = self.owner.memory(name).replace("fields.", "parts[k].")
        load = f"ByteLevels<{bits}, {self.msb(name)}>({memory} + i / 8 * {bits}, byte_table)"
        return [
            "if (kByteLevels && !kAlone && !kTail && bytes) {",
            f"  Levels sum_of_levels = {load.replace('parts[k]', 'parts[0]')};",
            f"  for (int64_t k = 1; k < count; ++k) sum_of_levels = Add(sum_of_levels, {load});",
            "  Widen(sum_of_levels, total);",
            "} else {",
            *indent(otherwise),
            "}",
        ]
