"""The dialect of C++ loops: their sections, and the names in them."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import CStyleLoop
from hipress.compression.compiler.backends.common.expressions import lanes
from hipress.compression.compiler.backends.common.text import block, indent
from hipress.compression.compiler.backends.cpp.context import CppContext
from hipress.compression.compiler.ir.ir import Instr, Loop
from hipress.compression.compiler.passes.buckets import bucket_of

UNROLL = "COMPLL_UNROLL"
INLINE = "__attribute__((always_inline))"


class CppLoopContext(CStyleLoop):
    """A loop while it is written.

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
    """

    owner: CppContext
    dialect = lanes

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
        head = [
            "const int left = rem - v * kLanes;",
            "const int64_t at = i + v * kLanes;",
            "(void)left, (void)at;",
        ]
        if any(instr.op in ("reduce", "bucket_reduce") for instr in self.loop.body):
            # The sums live on: an index that is not constant would keep them in memory.
            tail = [UNROLL, "for (int v = 0; v < kVectors; ++v) if (v * kLanes < rem) vector(v);"]
        else:
            tail = ["for (int v = 0; v * kLanes < rem; ++v) vector(v);"]
        return [
            *block(f"auto vector = [&](int v) {INLINE}", head, self.body, end="};"),
            *block("if constexpr (kTail)", tail, end="} else {"),
            *indent([UNROLL, "for (int v = 0; v < kVectors; ++v) vector(v);"]),
            "}",
        ]

    def section(self) -> list[str]:
        """Return the code for one block, or one bucket."""
        raise NotImplementedError
