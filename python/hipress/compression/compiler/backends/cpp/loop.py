"""The dialect of C++ loops: blocks of 4096 elements, tiles of 64, vectors of lanes."""

from __future__ import annotations

import math

from hipress.compression.compiler.backends.common.emitter import CStyleLoop, block, code, indent
from hipress.compression.compiler.backends.common.expressions import (
    SCALAR,
    joined,
    lanes,
    literal,
    scalars,
)
from hipress.compression.compiler.backends.cpp.context import CppContext
from hipress.compression.compiler.ir.ir import COMPARE, Instr, Loop
from hipress.compression.compiler.passes.analyses import LazyState, Ranking, bucket_of
from hipress.compression.compiler.passes.bounds import fits, upper, wanted_bits

UNROLL = "COMPLL_UNROLL"
INLINE = "__attribute__((always_inline))"


class CppLoop(CStyleLoop):
    """Writer of a loop into the function around it.

    Args:
        owner: The function around it.
        loop: The loop.
        number: A number that distinguishes the names of the function's loops.
        next_block: C++ of the distance, in elements, to the block that an earlier loop reads next
            of the same vectors. If given, this loop fetches that block into the cache.

    Attributes:
        setup: Lines before all blocks. In each block follow `shared`; for the block, or for each
            bucket in it, `prologue`; for each tile `before`, for each vector `body`, and `after`;
            `finish` ends a block or bucket, and `epilogue` follows all blocks.
        usual: C++ of conditions that are the same for a whole block or bucket, by their ids. Blocks
            where all of them hold have specialized tiles, kUsual.
    """

    owner: CppContext
    dialect = lanes
    special = (*CStyleLoop.special, "select")
    least = {"max": literal(-math.inf, "f32"), "min": literal(math.inf, "f32")}
    range = "begin, end"
    """C++ of the begin and the end of a section's tiles."""
    has_usual_tiles = True
    """Whether a section can have tiles of the kind kUsual."""

    def __init__(self, owner: CppContext, loop: Loop, number: int, next_block: str = "") -> None:
        super().__init__(owner, loop)
        self.number, self.next_block = number, next_block
        self.uniforms: dict[int, str] = {}
        self.domain = owner.value(loop.domain)
        self.setup: list[str] = []
        self.shared: list[str] = []
        self.prologue: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []
        self.finish: list[str] = []
        self.epilogue: list[str] = []
        self.bucket = bucket_of(loop)
        self.in_table = False
        self.usual: dict[int, str] = {}
        for instr in loop.results:
            self.declare_partials(instr)
        self.write_body()

    @property
    def guarded_domain(self) -> str:
        """Return the C++ of the number of elements, which is 0 if the loop's guard is false."""
        if self.loop.guard is None:
            return self.domain
        return f"({self.owner.value(self.loop.guard)} ? {self.domain} : 0)"

    def outside(self, instr: Instr) -> str:
        """Return the value in all lanes."""
        if instr.op == "const":
            return lanes(instr, [])
        if instr.id not in self.uniforms:
            name = self.uniforms[instr.id] = f"u{self.owner.number(instr)}"
            self.prologue.append(
                f"const {lanes.types[instr.type]} {name} = Set({self.owner.value(instr)});"
            )
        return self.uniforms[instr.id]

    def once_before(self, *lines: str) -> None:
        """Add lines before each tile, unless they exist."""
        if lines[-1] not in self.before:
            self.before += lines

    def is_bit(self, value: Instr) -> bool:
        """Return whether a value is a code of one bit that the loop loads."""
        if value.op != "load" or value.id not in self.inside or self.in_table:
            return False
        vector = self.owner.function.vectors[value.vec[0]]
        return vector.packed and vector.bits == 1

    def bit_word(self, name: str) -> str:
        """Return the 64 codes of one bit of a tile."""
        self.once_before(
            f"const uint64_t bits_{name} = LoadBits<kTail, {self.owner.msb(name)}>("
            f"{self.owner.memory(name)}, i, {self.owner.packed_size(name)});"
        )
        return f"bits_{name}"

    def code_tile(self, name: str) -> str:
        """Return the position of a tile's codes."""
        bits, size = self.owner.function.vectors[name].bits, self.owner.packed_size(name)
        self.once_before(
            f"alignas(64) uint8_t scratch_{name}[kTile];",
            f"const uint8_t* const codes_{name} = FindTile<kTail, {self.owner.msb(name)}>("
            f"{self.owner.memory(name)}, {bits}, i, {size}, scratch_{name});",
        )
        return f"codes_{name}"

    def vectors(self) -> list[str]:
        """Return `body` for each vector of a tile. Unrolled, arrays of vectors become registers."""
        tail = ["for (int v = 0; v * kLanes < rem; ++v) vector(v);"]
        if self.loop.ops("reduce", "bucket_reduce"):
            # The sums live on: an index that is not constant would keep them in memory.
            tail = [UNROLL, "for (int v = 0; v < kVectors; ++v) if (v * kLanes < rem) vector(v);"]
        return code(
            """
            auto vector = [&](int v) __attribute__((always_inline)) {
              const int left = rem - v * kLanes;
              const int64_t at = i + v * kLanes;
              (void)left, (void)at;
              $body
            };
            if constexpr (kTail) {
              $tail
            } else {
              COMPLL_UNROLL
              for (int v = 0; v < kVectors; ++v) vector(v);
            }
            """,
            self,
            tail=tail,
        )

    def write_body(self) -> None:
        """Find conditions of whole blocks, then write all instructions."""
        for instr in self.loop.body:
            if self.has_usual_tiles and instr.op == "select" and instr.args[0].op != "const":
                # The conditions are the same for all elements of a block or bucket.
                text = self.block_constant(instr.args[0])
                if text is not None:
                    self.usual[instr.args[0].id] = text
        super().write_body()

    def lines(self) -> list[str]:
        """Return the C++ of the loop, results declared in the function's scope."""
        return blocks([self], self.guarded_domain)

    def section(self) -> list[str]:
        """Return the code for one block, or one bucket."""
        tile, usual = f"tile{self.number}", " && ".join(dict.fromkeys(self.usual.values()))
        tiles = f"COMPLL_USUAL_TILES({tile}, {usual}, " if usual else f"COMPLL_TILES({tile}, "
        return code(
            """
            $prologue
            auto $tile = [&](auto tail, $kind) __attribute__((always_inline)) {
              constexpr bool kTail = decltype(tail)::value;
              $usual
              $before
              $vectors
              $after
            };
            $tiles$range);
            $finish
            """,
            self,
            tile=tile,
            kind="auto usual, int64_t i, int rem" if usual else "int64_t i, int rem",
            usual=["constexpr bool kUsual = decltype(usual)::value;"] if usual else [],
            tiles=tiles,
        )

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

    def _index(self, instr: Instr) -> str:
        return "Lanes(at)"

    def _select(self, instr: Instr) -> str:
        condition, *values = instr.args
        yes, no = (self.value(value) for value in values)
        if condition.id in self.usual:
            return f"kUsual ? {yes} : {lanes(instr, [self.value(condition), yes, no])}"
        if instr.type == "f32" and condition.op in ("lt", "gt") and condition.args == values:
            return f"{'Smaller' if condition.op == 'lt' else 'Larger'}({yes}, {no})"
        if condition.op == "isnan" and values[1] is condition.args[0] and instr.type == "f32":
            return f"NanTo({no}, {yes})"
        return lanes(instr, [self.value(condition), yes, no])

    def _random(self, instr: Instr) -> str:
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

    _random16 = _random

    def drawn_if(self, instr: Instr) -> str | None:
        """Return the condition of a number's only user if it is constant in a block, or None."""
        users = [other for other in self.loop.body if instr in other.args]
        if len(users) != 1 or users[0].op != "select" or users[0].args[2] is instr:
            return None
        return self.block_constant(users[0].args[0])

    # Values of a whole block or bucket ----------------------------------------------------

    def block_constant(self, instr: Instr) -> str | None:
        """Return the C++ of a bool, or of its operand, that is the same for a block or bucket."""
        if instr.op == "const":
            return literal(instr.attrs["value"], instr.type)
        if instr.id not in self.inside:
            return self.owner.value(instr)
        if instr.op == "bucket_load" and self.bucket is not None:
            return self.bucket_value(instr, "block")
        if instr.op not in COMPARE | {"and", "or", "not", "isfinite", "isnan"}:
            return None
        args = [self.block_constant(arg) for arg in instr.args]
        return None if None in args else scalars(instr, args)

    def bucket_value(self, load: Instr, number: str) -> str:
        """Return a bucket's number. Its vectors may be at any address, as a payload may be."""
        at = f"{self.owner.memory(load.vec[0])} + {number}"
        return f"ReadField<{SCALAR[load.type]}>(reinterpret_cast<const uint8_t*>({at}))"

    # Memory -----------------------------------------------------------------------------

    def _load(self, instr: Instr) -> str:
        name, owner = instr.vec[0], self.owner
        vector = owner.function.vectors[name]
        if vector.kind == "input":
            line = "const float* const gradient = GradientTile<kTail>(call, i, rem, converted);"
            if line not in self.before:
                self.before += ["alignas(64) float converted[kTile];", line]
                if self.next_block:
                    self.before.append(f"PrefetchGradient(call, i + {self.next_block});")
            return "Load<kTail>(gradient, v * kLanes, left)"
        if vector.packed and vector.bits == 1:
            return f"Ones(MaskOf({self.bit_word(name)}, v))"
        if vector.packed:
            return f"GetCodes<{owner.msb(name)}>({self.code_tile(name)}, {vector.bits}, v)"
        text = f"Load<kTail>({owner.memory(name)}, at, left)"
        if owner.lazy is not None and name == owner.lazy.state and self.loop is owner.lazy.first:
            if "auto settle" not in "".join(self.prologue):
                self.prologue += settle_lambda(owner.lazy, "kLazy == 2")
            return f"kLazy ? settle({text}) : {text}"
        has = owner.has(name)
        if self.next_block:
            prefetch = f"PrefetchTile({owner.memory(name)} + i + {self.next_block});"
            self.once_before(f"if ({has}) {prefetch}" if has else prefetch)
        return f"{has} ? {text} : F{{}}" if has else text

    def _load_at(self, instr: Instr) -> str:
        name, where, owner = instr.vec[0], instr.args[0], self.owner
        index = self.value(where)
        runs = where.op == "load" and where.vec[0] in owner.sampled
        if runs:
            index = f"{owner.memory(where.vec[0])} + at, {index}"
        if owner.function.vectors[name].kind == "input":
            return f"GatherGradient{'Runs<kTail>' if runs else ''}(call, {index})"
        memory, size, has = owner.memory(name), owner.size(name), owner.has(name)
        size = f"{has} ? {size} : 0" if has else size
        gather = "GatherRuns<kTail, " if runs else "Gather<"
        return f"{gather}{lanes.types[instr.type]}>({memory}, {size}, {index})"

    def _bucket_load(self, instr: Instr) -> str:
        if self.bucket is None:
            return f"Set({self.bucket_value(instr, f'i / {self.owner.value(instr.args[0])}')})"
        name = f"bucket{self.owner.number(instr)}"
        value = f"Set({self.bucket_value(instr, 'block')})"
        self.prologue.append(f"const {lanes.types[instr.type]} {name} = {value};")
        return name

    def _store(self, instr: Instr) -> None:
        name, owner = instr.vec[0], self.owner
        vector = owner.function.vectors[name]
        if name in owner.filters:
            self.fill_filter(instr)
            return
        memory = owner.target(name)
        if not vector.packed:
            value = self.value(instr.args[0])
            if vector.kind == "output":
                value = f"part.add ? Load<kTail>({memory}, at, left) + {value} : {value}"
            streamed = ""
            if name in owner.final:
                self.shared.append(f"const SeparateStores stores_{name} = {{separate_{name}}};")
                streamed = f", separate_{name}"
            has, line = owner.has(name), f"Store<kTail>({memory}, at, left, {value}{streamed});"
            self.body.append(f"if ({has}) {line}" if has else line)
            return
        size, codes, msb = owner.packed_size(name), f"out_{name}", owner.msb(name)
        if vector.bits == 1 and (masks := self.masks(instr, codes)):
            self.after.append(f"StoreMasks<kTail, {msb}>({masks}, {memory}, i, {size});")
            return
        code = instr.args[0]
        high = _upper_half(code, vector.bits)
        value = self.value(high or code)
        self.before += [f"I {codes}[kVectors];", cleared(codes, "I{}")]
        self.body.append(f"{codes}[v] = kTail ? Select(Valid(left), {value}, I{{}}) : {value};")
        self.after.append(
            f"StoreTile<kTail, {msb}{', true' if high else ''}>({codes}, {vector.bits}, "
            f"{memory}, i, {size});"
        )

    def masks(self, store: Instr, name: str) -> str | None:
        """Collect the masks of a bool that is stored as one bit."""
        value = store.args[0]
        if value.op != "cast" or value.args[0].type != "bool" or value.id not in self.inside:
            return None
        mask = self.value(value.args[0])
        self.before += [f"M {name}[kVectors];", cleared(name, "Set(false)")]
        self.body.append(f"{name}[v] = kTail ? And(Valid(left), {mask}) : {mask};")
        return name

    def fill_filter(self, store: Instr) -> None:
        """Find the indices of a mask that only a filter reads, in the same pass."""
        number = self.owner.number(store)  # a loop may fill several
        masks = self.masks(store, f"passed{number}")
        self.setup.append(f"Filter filter{number}(&arena, {self.domain});")
        self.prologue.append(f"int32_t* found{number} = filter{number}.Begin(worker, begin);")
        self.after += [
            f"const uint64_t hits{number} = JoinMasks({masks});",
            f"found{number} = AppendIndices(hits{number}, i, found{number});",
        ]
        self.finish.append(f"filter{number}.End(worker, found{number});")
        compact = self.owner.filters[store.vec[0]]
        pointer = self.owner.pointers[compact.vec[0]] = f"m_{compact.vec[0]}"
        self.owner.known.add(compact.id)
        self.epilogue += [
            f"const int64_t {self.owner.value(compact)} = filter{number}.Join();",
            f"int32_t* const {pointer} = filter{number}.data();",
        ]

    # Reductions: 32 lanes in each block, folded, joined in the blocks' order ------------------

    def declare_partials(self, instr: Instr) -> None:
        """Declare one value for each block."""
        c_type = SCALAR[instr.type]
        if instr.attrs["fn"] == "sum":
            c_type = "float" if instr.type == "f64" else "int64_t"
        count = f"({self.domain} + kBlock - 1) / kBlock"
        part = f"part{self.owner.number(instr)}"
        self.setup.append(f"{c_type}* {part} = arena.Get<{c_type}>({count});")

    def _reduce(self, instr: Instr) -> None:
        number, function = self.owner.number(instr), instr.attrs["fn"]
        element = instr.args[1] if instr.op == "bucket_reduce" else instr.args[0]
        if function == "sum" and (masks := self.counted(element)):
            # A sum of ones: the bits that are stored anyway are counted.
            self.prologue.append(f"int64_t count{number} = 0;")
            self.after.append(f"count{number} += __builtin_popcountll(JoinMasks({masks}));")
            self.finish.append(f"part{number}[block] = count{number};")
            self.join(instr, function)
            return
        value, sums = self.value(element), f"sums{number}"
        scalar, combine = SCALAR[element.type], f"combine{number}"
        start = self.start(instr)
        self.prologue += [
            _combiner(function, combine),
            f"{lanes.types[element.type]} {sums}[kSums];",
            f"for (int s = 0; s < kSums; ++s) {sums}[s] = Set({scalar}({start}));",
        ]
        at = f"{sums}[v % kSums]"
        update = f"{combine}({at}, {value})"
        self.body.append(f"{at} = kTail ? Select(Valid(left), {update}, {at}) : {update};")
        bucketed = instr.op == "bucket_reduce"
        part = self.owner.memory(instr.vec[0]) if bucketed else f"part{number}"
        self.finish.append(f"{part}[block] = FoldLanes<{scalar}>({sums}, {combine});")
        if not bucketed:
            self.join(instr, function)

    def counted(self, element: Instr) -> str | None:
        """Return the masks of a tile that are stored and that make `element` 1 or 0, or None."""
        if element.op != "cast" or element.args[0].type != "bool":
            return None
        for store in self.loop.ops("store"):
            vector = self.owner.function.vectors[store.vec[0]]
            is_bit = vector.packed and vector.bits == 1
            if store.args[0] is element and is_bit and store.vec[0] not in self.owner.filters:
                return f"out_{store.vec[0]}"
        return None

    def join(self, instr: Instr, function: object) -> None:
        """Join the blocks' results in order."""
        number, start = self.owner.number(instr), self.start(instr)
        result, c_type = self.owner.value(instr), SCALAR[instr.type]
        count = f"({self.guarded_domain} + kBlock - 1) / kBlock"
        each = f"for (int64_t b = 0; b < {count}; ++b) {result}"
        if function == "sum":
            self.epilogue += [
                f"{c_type} {result} = 0;",
                f"{each} += static_cast<{c_type}>(part{number}[b]);",
            ]
        else:
            self.epilogue += [
                _combiner(function, f"join{number}"),
                f"{c_type} {result} = {start};",
                f"{each} = join{number}({result}, part{number}[b]);",
            ]


def _upper_half(code: Instr, bits: int | str) -> Instr | None:
    """Return the value of which a code is the upper half, if any.

    Where codes are packed, such a code needs no shift.
    """
    if code.op != "wrap" or code.attrs["bits"] != bits or code.args[0].op != "shr":
        return None
    whole, amount = code.args[0].args
    return whole if amount.op == "const" and amount.attrs["value"] == 16 else None


def cleared(name: str, value: str) -> str:
    """Return an assignment that clears a value, because a tail leaves vectors out."""
    return f"if (kTail) for (int v = 0; v < kVectors; ++v) {name}[v] = {value};"


def _combiner(function: object, name: str) -> str:
    """Return a C++ lambda of two values, which may be lanes or scalars."""
    return f"auto {name} = [](auto a, auto b) {{ {joined.join_body(function, 'auto')} }};"


class BucketLoop(CppLoop):
    """A loop over buckets that is done between two passes over them."""

    range = "block_begin, block_end"
    has_usual_tiles = False


def _is_zero(value: Instr) -> bool:
    return value.op == "const" and value.attrs["value"] == 0


def blocks(loops: list[CppLoop], domain: str) -> list[str]:
    """Return one pass over blocks that does all sections in each."""
    first = loops[0]
    setup = [line for loop in loops for line in loop.setup]
    shared = [line for loop in loops for line in loop.shared]
    epilogue = [line for loop in loops for line in loop.epilogue]
    if first.bucket is None:
        size, unit, arguments = "", "kBlock", "block, int64_t begin, int64_t end"
        head, unused = ["const int64_t last = end;"], "(void)last, (void)block, (void)worker;"
    else:
        size, number = first.owner.value(first.bucket), first.number
        arrays = max(1, len(first.loop.reads))
        setup += [
            "// What one block reads, and what the next will read, is to stay in the first cache.",
            f"const int64_t group{number} = std::max<int64_t>(1, kBlock / {arrays} / {size});",
        ]
        unit, arguments = f"group{number} * {size}", "part, int64_t first, int64_t last"
        unused = "(void)last, (void)worker;"
        head = [
            f"const int64_t block_begin = part * group{number};",
            f"const int64_t block_end = block_begin + (last - first + {size} - 1) / {size};",
            "(void)block_begin, (void)block_end;",
        ]
    sections = []
    for loop in loops:
        if loop.bucket is not None:
            sections += block(
                "for (int64_t block = block_begin, begin = first; begin < last; ++block, "
                f"begin += {size})",
                f"const int64_t end = std::min(begin + {size}, last);",
                "(void)block;",
                loop.section(),
            )
        else:
            sections += block("", loop.section()) if len(loops) > 1 else loop.section()
    return [
        *setup,
        f"ForBlocks(call, {domain}, {unit}, [&](int64_t {arguments}, int worker) {{",
        *indent([*head, *shared, *sections, unused]),
        "});",
        *epilogue,
    ]


# Lazy states: saving their numbers, and making them plain again ------------------------


def settle_lambda(lazy: LazyState, usual: str = "false") -> list[str]:
    """Return `settle`, a lambda of the state; in `usual` code the saved bools are true."""
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


def lazy_variants(lazy: LazyState) -> list[tuple[str, str]]:
    """Return conditions on a call with their argument kLazy. The first that holds counts."""
    bools = [
        f"call->lazy_values[{number}] != 0"
        for number, instr in enumerate(lazy.uniforms)
        if instr.type == "bool"
    ]
    usual = [(" && ".join(bools), "2")] if bools else []
    return [("!call->lazy", "0"), *usual, ("", "1")]


def settle_function(lazy: LazyState) -> list[str]:
    """Return the function that makes a lazy state plain."""
    return code(
        """
        void Settle(const CompllSettleCall* given) {
          const CompllSettleCall& call = *given;
          float* const state = call.states[$position];
          ForBlocks(call, call.n, kBlock, [&](int64_t, int64_t begin, int64_t end, int) {
            $settle
            for (int64_t i = begin; i < end; i += kLanes) {
              const int left = static_cast<int>(std::min<int64_t>(end - i, kLanes));
              Store<true>(state, i, left, settle(Load<true>(state, i, left)));
            }
          });
        }

        """,
        position=lazy.position,
        settle=settle_lambda(lazy),
    )


# `topk` in the pass that makes its values ---------------------------------------------


class SampleLoop(CppLoop):
    """The keys of a sample of the loop's values."""

    has_usual_tiles = False

    def _store(self, instr: Instr) -> None:
        value = self.value(instr.args[0])
        self.body.append(f"PutKeys(sample + line * kLine + v * kLanes, {value});")

    def lines(self) -> list[str]:
        """Return the loop over the lines of the sample."""
        return code(
            """
            for (int64_t line = 0; line < lines; ++line) {
              constexpr bool kTail = false;
              constexpr int rem = kTile;
              const int64_t i = LineStart(line, lines, $domain);
              $prologue
              $before
              for (int v = 0; v < kLine / kLanes; ++v) {
                const int left = kLanes;
                const int64_t at = i + v * kLanes;
                (void)left, (void)at, (void)rem, (void)kTail;
                $body
              }
            }
            """,
            self,
        )


class CandidatesLoop(CppLoop):
    """Loop that collects candidates instead of storing all values."""

    def _store(self, instr: Instr) -> None:
        ranking = self.owner.ranked.get(instr.vec[0])
        if ranking is None or ranking.loop is not self.loop:
            super()._store(instr)
            return
        number, value = self.number, self.value(instr.args[0])
        candidates, keys, large = f"candidates{number}", f"keys{number}", f"large{number}"
        self.setup.append(f"Candidates {candidates}(&arena, {self.domain});")
        self.prologue += [
            f"Candidate candidate{number} = {candidates}.Begin(worker, begin);",
            f"const U least{number} = Set(floor{self.owner.number(ranking.topk)});",
        ]
        self.before += [
            f"U {keys}[kVectors];",
            f"M {large}[kVectors];",
            cleared(large, "Set(false)"),
        ]
        reaches = f"Ge({keys}[v], least{number})"
        self.body += [
            f"{keys}[v] = Ordered({value});",
            f"{large}[v] = kTail ? And(Valid(left), {reaches}) : {reaches};",
        ]
        self.after += [
            f"const uint64_t bits{number} = JoinMasks({large});",
            f"if (bits{number} != 0) candidate{number} = AppendCandidates(bits{number}, i, "
            f"{keys}, candidate{number});",
        ]
        self.finish.append(f"{candidates}.End(worker, candidate{number});")
        self.epilogue += self.choose(ranking, candidates)

    def choose(self, ranking: Ranking, candidates: str) -> list[str]:
        """Return the k largest of the candidates, or of all values if the sample misled."""
        owner, topk = self.owner, ranking.topk
        count, target = owner.value(topk), owner.memory(topk.vec[0])
        before = owner.pointers
        owner.pointers = {**owner.after(self.loop), topk.vec[1]: "values"}
        again = CppLoop(owner, ranking.again, self.number + 1).lines()
        owner.pointers = before
        return code(
            """
            if (const int64_t found = $all.Join(); found >= $count) {
              SelectTop($all.index(), $all.keys(), found, $count, &arena, $target);
            } else {
              float* const values = arena.Get<float>($domain);
              $again
              TopK(values, $domain, $count, &arena, $target);
            }
            """,
            self,
            all=candidates,
            count=count,
            target=target,
            again=again,
        )


def write_floor(context: CppContext, ranking: Ranking, number: int) -> None:
    """Write k, room for the indices, and the key that candidates reach."""
    for instr in ranking.first:
        context.instr(instr)
    topk, domain = ranking.topk, context.value(ranking.loop.domain)
    context.allocate_counted(topk, f"Clip({context.value(topk.args[0])}, {domain})")
    count = context.value(topk)
    sample = SampleLoop(context, ranking.sample, number)
    context.lines += block(
        f"const uint32_t floor{context.number(topk)} = [&]",
        f"const int64_t lines = SampleLines({domain}, {count});",
        "uint32_t* const sample = arena.Get<uint32_t>(lines * kLine);",
        sample.lines(),
        f"return FloorOf(sample, lines, {domain}, {count});",
        end="}();",
    )


def unless_all(context: CppContext, ranking: Ranking, lines: list[str]) -> list[str]:
    """Return a loop that makes nothing but the values: if all of them are wanted, none is made."""
    if ranking.loop.results or len(ranking.loop.writes) > 1:
        return lines
    count, domain = context.value(ranking.topk), context.value(ranking.loop.domain)
    target = context.memory(ranking.topk.vec[0])
    all_ = f"std::iota({target}, {target} + {count}, 0);"
    return block(f"if ({count} == {domain}) {{ {all_} }} else", lines)
