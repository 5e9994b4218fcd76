"""C++ of a decoder that writes every element in one loop: any number of payloads in one pass.

The scalars of each payload are parsed first, its table of values is made if it is looked up, and of
masks are counted, for the position of each block. Then each tile is summed over all payloads in
registers, in their order, and written once. See passes/merge.py for what the sum is.
"""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import block, code, indent
from hipress.compression.compiler.backends.common.expressions import SCALAR, lanes
from hipress.compression.compiler.backends.cpp.context import CppContext
from hipress.compression.compiler.backends.cpp.loop import INLINE, CppLoop
from hipress.compression.compiler.ir.ir import Function, Instr, Program, backward
from hipress.compression.compiler.passes.analyses import integer_levels, spread_bits


class DenseContext(CppContext):
    """Names in the two parts of a dense decoder: the parsing of one payload, and the loop.

    Attributes:
        members: What the loop needs of each payload: C++ types by name, members of Fields.
        parsing: Which of the parts is written.
        table: Type of a payload's table of values, if they are looked up by the code.
    """

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.members: dict[str, str] = {}
        self.parsing = True
        self.spread = spread_bits(function)
        self.table = ""

    def _write_count_where(self, instr: Instr) -> None:
        (mask,) = instr.vec
        before, count = f"before{self.number(instr)}", self.size(mask)
        blocks = f"({count} + kBlock - 1) / kBlock"
        self.lines.append(f"int64_t* const {before} = arena.Get<int64_t>({blocks});")
        self.define(instr, f"CountBlocks({self.memory(mask)}, {count}, {before})")

    def _write_unpack_where(self, instr: Instr) -> None:
        """Do nothing: the loop itself unpacks the bits, because it has the mask's words."""

    def value(self, instr: Instr) -> str:
        """Return a number, which is a member of Fields in the loop."""
        name = super().value(instr)
        if self.parsing or instr.op in ("const", "n", "param"):
            return name
        return self.member(name, SCALAR[instr.type])

    def memory(self, name: str) -> str:
        """Return the memory of a vector, which is a member of Fields in the loop."""
        if self.parsing:
            return super().memory(name)
        return self.member(f"m_{name}", f"const {self.c_type(name)}*")

    def member(self, name: str, c_type: str) -> str:
        """Return a member of Fields, which it gets."""
        self.members[name] = c_type
        return f"fields.{name}"

    def before(self, name: str) -> str:
        """Return the array with each block's position in a vector of bits under a mask."""
        packed = self.function.vectors[self.spread[name].vec[1]]
        return self.member(f"before{self.number(packed.size)}", "int64_t*")


class DenseLoop(CppLoop):
    """The loop of a dense decoder, with sums in registers."""

    owner: DenseContext

    def write_body(self) -> None:
        """Write the sum over payloads of what the loop stores."""
        (store,) = self.loop.ops("store")
        self.levels = integer_levels(self.owner.function)
        self.result = store.args[0] if self.levels is None else self.levels.level
        self.lane = lanes.types[self.result.type]
        part = backward(self.result, self.loop.body)
        loads = self.code_loads(part)
        self.bytes: tuple[str, int] | None = None
        if loads:
            value = self.by_table(loads, part)
        else:
            for instr in part:
                self.instr(instr)
            value = self.value(self.result)
        self.body.append(f"total[v] = kFirst ? {value} : total[v] + {value};")

    def code_loads(self, part: list[Instr]) -> list[Instr]:
        """Return the loads of few bits that alone decide an element: one, or two of one bit."""
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
        """Return the 64 bits of a tile, which may be bits under a mask."""
        owner = self.owner
        if name not in owner.spread:
            return super().bit_word(name)
        _, packed, mask = owner.spread[name].vec
        self.once_before(
            f"const uint64_t bits_{name} = NextBits({owner.memory(packed)}, {owner.size(packed)}, "
            f"{self.bit_word(mask)}, {owner.before(name)} + block);"
        )
        return f"bits_{name}"

    def by_table(self, loads: list[Instr], part: list[Instr]) -> str:
        """Return a value that is looked up by the code: all values are computed at once."""
        name, pair = loads[0].vec[0], len(loads) == 2
        bits = 2 if pair else self.owner.function.vectors[name].bits
        outer, self.body, self.in_table = self.body, [], True
        code = self.value(loads[0])
        if pair:
            both = f"{code} = code & 1, {self.value(loads[1])} = code >> 1 & 1"
            self.body += [f"const I {both};", f"(void){code}, (void){self.value(loads[1])};"]
            code = "code"
        for instr in part:
            if instr not in loads:
                self.instr(instr)
        body, self.body, self.in_table = self.body, outer, False
        value_of = block(
            f"auto value_of = [&](I {code}) {INLINE}",
            body,
            f"return {self.value(self.result)};",
            end="};",
        )
        self.owner.table = self.lane
        self.setup += block(
            "for (int64_t k = 0; k < call.count; ++k)",
            "const Fields& fields = all[k];",
            self.prologue,
            value_of,
            "all[k].table = value_of(Lanes(0));",
        )
        self.before += [
            *value_of,
            f"constexpr int kBits = {bits};",
            f"const {self.lane} table = fields.table, zero = Set(table[0]), one = Set(table[1]);",
            "(void)zero, (void)one, (void)table, (void)value_of;",
        ]
        if pair:
            words = ", ".join(self.bit_word(load.vec[0]) for load in loads)
            self.before += [
                "alignas(64) uint8_t scratch_pairs[kTile];",
                f"const PairTile pairs({words});",
                "const uint8_t* const codes_pairs = pairs.Find(scratch_pairs);",
            ]
            return self.looked_up("codes_pairs", "0", "false")
        if self.levels is not None and bits in (1, 2) and not self.uniforms:
            self.bytes = name, bits
            self.value_of = value_of
        msb = self.owner.msb(name)
        self.before += [
            f"const uint64_t word = kBits == 1 ? LoadBits<kTail, {msb}>("
            f"{self.owner.memory(name)}, i, {self.owner.packed_size(name)}) : 0;",
            "(void)word;",
        ]
        return self.looked_up(self.code_tile(name), "word", msb)

    def looked_up(self, tile: str, word: str, msb: str) -> str:
        """Return the value of a vector of lanes, by the codes of a tile."""
        codes = f"GetCodes<{msb}>({tile}, kBits, v)"
        self.body += [
            f"{self.lane} value;",
            "if constexpr (kBits == 1) {",
            f"  value = SelectByBits({word}, v, one, zero);",
            "} else if constexpr (kBits <= kTableBits) {",
            f"  value = Lookup(table, {codes});",
            "} else {",
            f"  value = value_of({codes});",
            "}",
        ]
        return "value"

    def section(self) -> list[str]:
        """Return the section, with separate code for one payload into float32, the usual case."""
        start, finish = ["add_part(tail, std::true_type(), parts[0], i, rem, total);"], []
        load = "Load<kTail>(out, i + v * kLanes, rem - v * kLanes)"
        if self.levels is None:
            start = code(
                """
                if (!kAlone && add) {
                  COMPLL_UNROLL
                  for (int v = 0; v < kVectors; ++v) total[v] = $load;
                  add_part(tail, std::false_type(), parts[0], i, rem, total);
                } else {
                  $start
                }
                """,
                load=load,
                start=start,
            )
        else:
            unit = self.owner.value(self.levels.unit).replace("fields.", "parts[0].")
            finish = code(
                """
                F sum[kVectors];
                COMPLL_UNROLL
                for (int v = 0; v < kVectors; ++v) sum[v] = Set($unit) * ToF32(total[v]);
                if (!kAlone && add) {
                  COMPLL_UNROLL
                  for (int v = 0; v < kVectors; ++v) sum[v] = $load + sum[v];
                }
                """,
                unit=unit,
                load=load,
            )
        rest = block(
            "for (int64_t k = 1; k < count; ++k)",
            "add_part(tail, std::false_type(), parts[k], i, rem, total);",
        )
        return code(
            """
            $byte_table
            auto add_part = [&](auto tail, auto first, $part, $lane* total) $inline {
              constexpr bool kTail = decltype(tail)::value, kFirst = decltype(first)::value;
              $prologue
              $before
              $vectors
              (void)fields;
            };
            auto tiles = [&](auto alone) $inline {
              constexpr bool kAlone = decltype(alone)::value;
              // Copies: stores might change what lies in memory.
              float* const out = static_cast<float*>(call.out);
              const bool add = call.add != 0;
              const int64_t count = kAlone ? 1 : call.count;
              const Fields one = all[0];
              const Fields* const parts = kAlone ? &one : all;
              (void)add;
              auto tile = [&](auto tail, int64_t i, int rem) $inline {
                constexpr bool kTail = decltype(tail)::value;
                $lane total[kVectors] = {};
                $total
                $finish
                if constexpr (kAlone) {
                  StoreFloats<kTail>(out, i, rem, $sum);
                } else {
                  StoreOut<kTail>(call, i, rem, $sum);
                }
              };
              COMPLL_TILES(tile, begin, end);
            };
            if (call.count == 1 && call.add == 0 && call.out_type == COMPLL_FLOAT32) {
              tiles(std::true_type());
            } else {
              tiles(std::false_type());
            }
            """,
            self,
            inline=INLINE,
            part="const Fields& fields, int64_t i, int rem",
            total=self.by_bytes([*start, *rest]),
            finish=finish,
            sum="total" if self.levels is None else "sum",
        )

    def byte_table(self) -> list[str]:
        """Return the lines that prepare summing levels as bytes, if that is possible."""
        if self.bytes is None:
            return []
        fit = f"call.count > 1 && FitBytes(levels, {self.bytes[1]}, call.count)"
        return [
            *block("const I levels = [&]", self.value_of, "return value_of(Lanes(0));", end="}();"),
            f"const bool bytes = {fit};",
            "const Levels byte_table = LevelTable(levels);",
            "(void)bytes, (void)byte_table;",
        ]

    def by_bytes(self, otherwise: list[str]) -> list[str]:
        """Return the sum of the levels of a whole tile, in bytes where they fit."""
        if self.bytes is None:
            return otherwise
        name, bits = self.bytes
        memory = self.owner.memory(name).replace("fields.", "parts[k].")
        load = f"ByteLevels<{bits}, {self.owner.msb(name)}>({memory} + i / 8 * {bits}, byte_table)"
        return [
            "if (kByteLevels && !kAlone && !kTail && bytes) {",
            f"  Levels sum_of_levels = {load.replace('parts[k]', 'parts[0]')};",
            f"  for (int64_t k = 1; k < count; ++k) sum_of_levels = Add(sum_of_levels, {load});",
            "  Widen(sum_of_levels, total);",
            "} else {",
            *indent(otherwise),
            "}",
        ]


def write_dense(program: Program, function: Function) -> tuple[list[str], list[str], list[str]]:
    """Return (the struct Fields, the parsing of a payload into it, the pass over all tiles)."""
    context = DenseContext(program, function)
    context.parsing = False
    lines = DenseLoop(context, function.loops[0], 0).lines()
    context.parsing = True
    for instr in function.scalars:
        context.instr(instr)
    parse = [*context.lines, *(f"fields->{name} = {name};" for name in context.members)]
    members = [f"{c_type} {name};" for name, c_type in context.members.items()]
    members += [f"{context.table} table;"] if context.table else []
    struct = ["/// What is needed of one payload.", *block("struct Fields", members, end="};"), ""]
    return struct, parse, lines
