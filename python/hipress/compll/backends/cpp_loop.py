"""C++ of one fused loop: blocks of 4096 elements, tiles of 64, vectors of lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipress.compll.backends.bounds import upper
from hipress.compll.backends.cpp_expr import LANE, SCALAR, expression
from hipress.compll.backends.cpp_reduce import ReductionWriter
from hipress.compll.ir.ir import Instr, Loop

if TYPE_CHECKING:
    from hipress.compll.backends.cpp_function import FunctionWriter

UNROLL = "COMPLL_UNROLL"


class LoopWriter(ReductionWriter):
    """Writes a loop into the function around it.

    :param owner: the function's writer: names of values and vectors
    :ivar setup: lines before all blocks; then, in each block, `prologue`, for each tile `before`,
        for each vector `tile`, `after`; `finish` ends a block, `epilogue` follows all blocks
    """

    def __init__(self, owner: FunctionWriter, loop: Loop, number: int) -> None:
        self.owner, self.loop, self.number = owner, loop, number
        self.inside = {instr.id for instr in loop.body}
        self.uniforms: dict[int, str] = {}
        self.domain = owner.value(loop.domain)
        self.setup: list[str] = []
        self.prologue: list[str] = []
        self.before: list[str] = []
        self.tile: list[str] = []
        self.after: list[str] = []
        self.finish: list[str] = []
        self.epilogue: list[str] = []
        self.bucket = bucket_of(loop)
        self.in_table = False
        for instr in loop.body:
            if instr.op == "reduce":
                self.partials(instr)
        self.write_body()

    def write_body(self) -> None:
        for instr in self.loop.body:
            self.instr(instr)

    def lines(self) -> list[str]:
        """The C++ of the loop, results declared in the function's scope."""
        domain = self.domain
        if self.loop.guard is not None:
            domain = f"({self.owner.value(self.loop.guard)} ? {domain} : 0)"
        return blocks([self], domain)

    def section(self) -> list[str]:
        """What is done for one block."""
        return [
            *self.prologue,
            *self.tile_function(),
            f"COMPLL_TILES(tile{self.number}, begin, end);",
            *self.finish,
        ]

    def tile_function(self) -> list[str]:
        return [
            f"auto tile{self.number} = [&](auto tail, int64_t i, int rem) "
            "__attribute__((always_inline)) {",
            "  constexpr bool kTail = decltype(tail)::value;",
            *_indent([*self.before, *self.vectors(), *self.after]),
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
            *_indent([*head, *self.tile]),
            "};",
            "if constexpr (kTail) {",
            *_indent(tail),
            "} else {",
            *_indent(each),
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
            lazy = self.owner.lazy
            if lazy is not None and instr is lazy.x and self.loop is lazy.first:
                memory = self.owner.memory(lazy.state)
                self.tile.append(f"Store<kTail>({memory}, at, left, {name});")

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
        if op == "select" and (call := extreme(instr)) is not None:
            return f"{call}({self.value(instr.args[1])}, {self.value(instr.args[2])})"
        if op == "cast" and (instr.args[0].type, instr.type) == ("f32", "i32"):
            params = {param.name: param for param in self.owner.program.params}
            if upper(instr.args[0], params) < 2**31:
                return f"ToI32Below({self.value(instr.args[0])})"
        return expression(instr, [self.value(arg) for arg in instr.args], lane=True)

    def random(self, instr: Instr) -> str:
        site, half = instr.attrs["site"], instr.op == "random16"
        self.prologue.append(f"RandomSource<{16 if half else 'kTile'}> random{site};")
        words = f"random{site}.Tile(key, {site}, i / kTile, end - i)"
        if (condition := self.condition(instr)) is not None:
            self.prologue.append(f"const bool drawn{site} = {condition};")
            words = f"drawn{site} ? {words} : random{site}.Any()"
        self.before.append(f"const uint32_t* const words{site} = {words};")
        return f"{'RandomHalves' if half else 'RandomWords'}(words{site}, v)"

    def condition(self, instr: Instr) -> str | None:
        """C++ of a number's only user's condition, the same for all elements, or None."""
        users = [other for other in self.loop.body if instr in other.args]
        if len(users) != 1 or users[0].op != "select" or users[0].args[2] is instr:
            return None
        condition = users[0].args[0]
        if condition.id not in self.inside:
            return self.owner.value(condition)
        if condition.vec or any(a.id in self.inside and a.op != "const" for a in condition.args):
            return None
        return expression(condition, [self.owner.value(arg) for arg in condition.args], lane=False)

    # Memory ----------------------------------------------------------------------

    def load(self, instr: Instr) -> str:
        name = instr.vec[0]
        vector = self.owner.function.vectors[name]
        if vector.kind == "input":
            line = "const float* const gradient = GradientTile<kTail>(call, i, rem, converted);"
            if line not in self.before:
                self.before += ["alignas(64) float converted[kTile];", line]
            return "Load<kTail>(gradient, v * kLanes, left)"
        memory = self.owner.memory(name)
        lazy = self.owner.lazy
        if lazy is not None and name == lazy.state and self.loop is lazy.first:
            if "auto settle" not in "".join(self.prologue):
                self.prologue += lazy.lambda_(lazy.saved(), "kLazy == 2")
            text = f"Load<kTail>({memory}, at, left)"
            return f"kLazy ? settle({text}) : {text}"
        if not vector.packed:
            return f"Load<kTail>({memory}, at, left)"
        if vector.bits == 1:
            return f"Ones(MaskOf({self.bit_word(name)}, v))"
        return f"GetCodes<{self.msb(name)}>({self.code_tile(name)}, {vector.bits}, v)"

    def is_bit(self, value: Instr) -> bool:
        if value.op != "load" or value.id not in self.inside or self.in_table:
            return False
        vector = self.owner.function.vectors[value.vec[0]]
        return vector.packed and vector.bits == 1

    def msb(self, name: str) -> str:
        return "true" if self.owner.function.vectors[name].order == "msb" else "false"

    def bit_word(self, name: str) -> str:
        """The 64 codes of one bit of a tile."""
        line = (
            f"const uint64_t bits_{name} = LoadBits<kTail, {self.msb(name)}>("
            f"{self.owner.memory(name)}, i, {self.owner.packed_size(name)});"
        )
        if line not in self.before:
            self.before.append(line)
        return f"bits_{name}"

    def code_tile(self, name: str) -> str:
        """Where the codes of a tile lie."""
        bits, size = self.owner.function.vectors[name].bits, self.owner.packed_size(name)
        lines = [
            f"alignas(64) uint8_t scratch_{name}[kTile];",
            f"const uint8_t* const codes_{name} = FindTile<kTail, {self.msb(name)}>("
            f"{self.owner.memory(name)}, {bits}, i, {size}, scratch_{name});",
        ]
        if lines[0] not in self.before:
            self.before += lines
        return f"codes_{name}"

    def load_at(self, instr: Instr) -> str:
        name = instr.vec[0]
        index = self.value(instr.args[0])
        if self.owner.function.vectors[name].kind == "input":
            return f"GatherGradient(call, {index})"
        memory, size = self.owner.memory(name), self.owner.size(name)
        return f"Gather<{LANE[instr.type]}>({memory}, {size}, {index})"

    def bucket_load(self, instr: Instr) -> str:
        memory = self.owner.memory(instr.vec[0])
        block = "block" if self.bucket is not None else f"i / {self.owner.value(instr.args[0])}"
        # A payload may begin at any address, and so may the vectors in it.
        at = f"reinterpret_cast<const uint8_t*>({memory} + {block})"
        value = f"Set(ReadField<{SCALAR[instr.type]}>({at}))"
        if self.bucket is None:
            return value
        name = f"bucket{self.owner.number(instr)}"
        self.prologue.append(f"const {LANE[instr.type]} {name} = {value};")
        return name

    def store(self, instr: Instr) -> None:
        name = instr.vec[0]
        vector = self.owner.function.vectors[name]
        if name in self.owner.filters:
            self.filter(instr)
            return
        if name in self.owner.ranked and self.loop is self.owner.ranked[name].loop:
            self.rank(instr)
            return
        memory = self.owner.memory(name)
        if not vector.packed:
            value = self.value(instr.args[0])
            if vector.kind == "output":
                value = f"part.add ? Load<kTail>({memory}, at, left) + {value} : {value}"
            self.tile.append(f"Store<kTail>({memory}, at, left, {value});")
            return
        size, codes = self.owner.packed_size(name), f"out_{name}"
        if vector.bits == 1 and (masks := self.masks(instr, codes)):
            self.after.append(
                f"StoreMasks<kTail, {self.msb(name)}>({masks}, {memory}, i, {size});"
            )
            return
        value = self.value(instr.args[0])
        self.before += [f"I {codes}[kVectors];", *_cleared(codes, "I{}")]
        masked = f"kTail ? Select(Valid(left), {value}, I{{}}) : {value}"
        self.tile.append(f"{codes}[v] = {masked};")
        self.after.append(
            f"StoreTile<kTail, {self.msb(name)}>({codes}, {vector.bits}, {memory}, i, {size});"
        )

    def masks(self, store: Instr, name: str) -> str | None:
        """Collects the masks of a bool that is stored as one bit."""
        value = store.args[0]
        if value.op != "cast" or value.args[0].type != "bool" or value.id not in self.inside:
            return None
        mask = self.value(value.args[0])
        self.before += [f"M {name}[kVectors];", *_cleared(name, "Set(false)")]
        self.tile.append(f"{name}[v] = kTail ? And(Valid(left), {mask}) : {mask};")
        return name

    def filter(self, store: Instr) -> None:
        """A mask that only a filter reads: indices are found here, in the same pass."""
        number = self.number
        masks = self.masks(store, f"passed{number}")
        self.setup.append(f"Filter filter{number}(&arena, {self.domain});")
        self.prologue.append(f"int32_t* found{number} = filter{number}.Begin(worker, begin);")
        self.after += [
            f"const uint64_t bits{number} = JoinMasks({masks});",
            f"found{number} = AppendIndices(bits{number}, i, found{number});",
        ]
        self.finish.append(f"filter{number}.End(worker, found{number});")
        compact = self.owner.filters[store.vec[0]]
        self.epilogue += self.owner.filtered(compact, f"filter{number}")


    def rank(self, store: Instr) -> None:
        """Values that only topk reads: candidates are found here, in the same pass."""
        number, value = self.number, self.value(store.args[0])
        ranking = self.owner.ranked[store.vec[0]]
        self.setup.append(f"Candidates candidates{number}(&arena, {self.domain});")
        self.prologue += [
            f"Candidate candidate{number} = candidates{number}.Begin(worker, begin);",
            f"const U least{number} = Set(floor{self.owner.number(ranking.topk)});",
        ]
        self.before += [
            f"U keys{number}[kVectors];", f"M large{number}[kVectors];",
            *_cleared(f"large{number}", "Set(false)"),
        ]  # fmt: skip
        large = f"Ge(keys{number}[v], least{number})"
        self.tile += [
            f"keys{number}[v] = Ordered({value});",
            f"large{number}[v] = kTail ? And(Valid(left), {large}) : {large};",
        ]
        self.after += [
            f"const uint64_t bits{number} = JoinMasks(large{number});",
            f"if (bits{number} != 0) candidate{number} = AppendCandidates(bits{number}, i, "
            f"keys{number}, candidate{number});",
        ]
        self.finish.append(f"candidates{number}.End(worker, candidate{number});")
        self.epilogue += self.owner.after_ranking(ranking, f"candidates{number}")


def bucket_of(loop: Loop) -> Instr | None:
    """The parameter that says the loop's blocks, if all its buckets are the same and allow it."""
    sizes = {
        instr.args[0].id: instr.args[0]
        for instr in loop.body
        if instr.op in ("bucket_reduce", "bucket_load")
    }
    reduces = any(instr.op == "reduce" for instr in loop.body)
    return next(iter(sizes.values())) if len(sizes) == 1 and not reduces else None


def blocks(writers: list[LoopWriter], domain: str) -> list[str]:
    """One pass over blocks that does all sections in each."""
    first = writers[0]
    size = "kBlock" if first.bucket is None else first.owner.value(first.bucket)
    lines = [line for writer in writers for line in writer.setup]
    lines.append(
        f"ForBlocks(call, {domain}, {size}, "
        "[&](int64_t block, int64_t begin, int64_t end, int worker) {"
    )
    for writer in writers:
        section = _indent(writer.section())
        lines += section if len(writers) == 1 else ["  {", *_indent(section), "  }"]
    return [
        *lines,
        "  (void)block, (void)worker;",
        "});",
        *(line for writer in writers for line in writer.epilogue),
    ]


class BucketWriter(LoopWriter):
    """A loop over buckets that is done between two passes over one bucket: its element `block`."""

    def section(self) -> list[str]:
        tile = f"tile{self.number}(std::true_type(), block, 1);"
        return [*self.prologue, *self.tile_function(), tile, *self.finish]


def extreme(select: Instr) -> str | None:
    """The call that is one instruction if a select takes the smaller, or larger, of two floats."""
    condition, *values = select.args
    if select.type != "f32" or condition.op not in ("lt", "gt") or condition.args != values:
        return None
    return "Smaller" if condition.op == "lt" else "Larger"


def _is_zero(value: Instr) -> bool:
    return value.op == "const" and value.attrs["value"] == 0


def _cleared(name: str, value: str) -> list[str]:
    """A tail leaves vectors out."""
    return [f"if (kTail) for (int v = 0; v < kVectors; ++v) {name}[v] = {value};"]


def _indent(lines: list[str], levels: int = 1) -> list[str]:
    return ["  " * levels + line for line in lines]
