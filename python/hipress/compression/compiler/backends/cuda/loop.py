"""CUDA of one fused loop: a warp takes a unit of elements, in tiles of eight rows of 32."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import CStyleLoop, block, code
from hipress.compression.compiler.backends.common.expressions import (
    SCALAR,
    cuda_scalars,
    literal,
)
from hipress.compression.compiler.backends.cuda.context import CudaContext
from hipress.compression.compiler.ir.ir import Block, Instr, Loop
from hipress.compression.compiler.passes.analyses import Levels

# Indices are relative to the tile, in 32 bits: a GPU computes with 64 at half the speed.
_AT = "const int at = 32 * r + lane;"
# Loads have no branches, so that they are issued at once: beyond the end they see the last one.
_FROM = f"{_AT} const int from = at < left ? at : left - 1; (void)from;"


def _rows(*lines: object) -> list[str]:
    """Return an unrolled loop over the rows of a tile."""
    return ["COMPLL_UNROLL", *block("for (int r = 0; r < kRows; ++r)", *lines)]


class CudaLoop(CStyleLoop):
    """Writer of a loop as the body of a step, with the code that joins its reductions.

    Attributes:
        unit: Lines at the start of a warp's unit. Then follow `tile` for each tile, `loads` for
            each of its rows, and `body` and `row_end` for each row again; `packs` ends a tile and
            `folds` a unit.
        joins: Lines for all threads of the last block.
        written: Results, and the CUDA of each.
    """

    owner: CudaContext
    dialect = cuda_scalars
    least = {"max": "Larger::Start()", "min": "Smaller::Start()"}

    def __init__(self, owner: CudaContext, loop: Loop) -> None:
        super().__init__(owner, loop)
        self.stored: set[str] = set()
        self.unit: list[str] = []
        self.tile: list[str] = []
        self.loads: list[str] = []
        self.row_end: list[str] = []
        self.packs: list[str] = []
        self.folds: list[str] = []
        self.joins: list[str] = []
        self.written: list[tuple[Instr, str]] = []

    def lines(self) -> list[str]:
        """Return the step's parallel part."""
        owner = self.owner
        buckets = self.loop.ops("bucket_reduce")
        size = "kBlock" if self.loop.results else "1024"
        size = owner.value(buckets[0].args[0]) if buckets else size
        self.write_body()
        return code(
            """
            ForUnits(team, $domain, $size, [&](int64_t unit, int64_t begin, int64_t end) {
              const int lane = Lane();
              $unit
              for (int64_t first = begin; first < end; first += kTile) {
                const int left = static_cast<int>(Least(end - first, kTile));
                $tile
                $rows
                $packs
              }
              $folds
              (void)unit;
            });
            """,
            self,
            domain=owner.value(self.loop.domain),
            size=size,
        )

    def rows(self) -> list[str]:
        """Return the loads of a tile, and the computations."""
        in_ = "const bool in = at < left;"
        loads = _rows(_FROM, self.loads) if self.loads else []
        return [*loads, *_rows(_AT, in_, self.body, self.row_end, "(void)in;")]

    def _index(self, instr: Instr) -> str:
        return "static_cast<int32_t>(first) + at"

    def _random(self, instr: Instr, c_type: str = "uint32_t", draw: str = "RandomRows") -> str:
        site = instr.attrs["site"]
        self.owner.current.key = True
        words = f"words{site}"
        self.tile += [f"{c_type} {words}[kRows];", f"{draw}<kRows>(key, {site}, first, {words});"]
        return f"{words}[r]"

    def _random16(self, instr: Instr) -> str:
        return self._random(instr, "int32_t", "RandomRows16")

    def _load(self, instr: Instr) -> str:
        name, zero, owner = instr.vec[0], literal(0, instr.type), self.owner
        if name in self.stored:  # the rounded value that this thread has just written
            text = self.element(name, "at")
            kept = owner.kept(name)
            return f"in{kept and f' && {kept}'} ? {text} : {zero}"
        text, kept, number = self.element(name, "at"), owner.kept(name), owner.number(instr)
        self.tile.append(f"{SCALAR[instr.type]} in{number}[kRows];")
        first = self.loaded(name, number)
        self.loads.append(f"in{number}[r] = {f'{kept} ? {first} : {zero}' if kept else first};")
        return f"in{number}[r]"

    def loaded(self, name: str, number: int) -> str:
        """Return a load before all computation: of codes relative to the tile."""
        owner = self.owner
        if not owner.function.vectors[name].packed:
            return self.element(name, "from")
        bits = owner.width(name)
        self.tile.append(
            f"const Codes codes{number}({owner.memory(name)}, {bits}, first, "
            f"{owner.bytes_of(name)});"
        )
        return f"codes{number}.Get<{owner.msb(name)}>({bits}, from)"

    def element(self, name: str, at: str) -> str:
        """Return an element of the tile, to read or to write."""
        if not self.owner.aligned(name):
            return self.owner.get(name, f"first + {at}")
        pointer = f"tile_{self.owner.plain(name)}"
        self.once_in_tile(f"auto* const {pointer} = {self.owner.memory(name)} + first;")
        return f"{pointer}[{at}]"

    def once_in_tile(self, line: str) -> bool:
        """Add a line for each tile, unless it is there; return whether it was added."""
        if line in self.tile:
            return False
        self.tile.append(line)
        return True

    def _load_at(self, instr: Instr) -> str:
        name, at = instr.vec[0], self.value(instr.args[0])
        size = self.owner.size(name)
        inner = self.owner.get(name, f"ClampIndex({at}, {size})")
        there = " && ".join(filter(None, (self.owner.kept(name), f"{size} > 0")))
        return f"{there} ? {inner} : {literal(0, instr.type)}"

    def _bucket_load(self, instr: Instr) -> str:
        bucket = self.owner.value(instr.args[0])
        at = f"bucket_{self.owner.number(instr.args[0])}"
        if self.once_in_tile(f"Bucket {at}(first, {bucket});"):
            self.row_end.append(f"{at}.NextRow(32 * (r + 1) < left);")
        return self.owner.get(instr.vec[0], f"{at}.index")

    def _store(self, instr: Instr) -> None:
        owner, name, value = self.owner, instr.vec[0], self.value(instr.args[0])
        vector = owner.function.vectors[name]
        self.stored.add(name)
        if vector.packed:
            codes = f"out_{owner.plain(name)}"
            self.tile.append(f"int32_t {codes}[kRows];")
            self.body.append(f"{codes}[r] = in ? {value} : 0;")
            self.packs.append(
                f"PackRows<{owner.msb(name)}>(shared, {owner.width(name)}, {codes}, "
                f"{owner.memory(name)}, first, {owner.bytes_of(name)});"
            )
            return
        if vector.kind == "output":
            old = f"{_FROM} old[r] = {self.element(name, 'from')};"
            self.tile += ["float old[kRows] = {};", *block("if (add)", _rows(old))]
            value = f"add ? old[r] + {value} : {value}"
        there = " && ".join(filter(None, ("in", owner.kept(name))))
        if owner.aligned(name):
            self.body.append(f"if ({there}) {self.element(name, 'at')} = {value};")
        else:
            self.body.append(f"if ({there}) {owner.put(name, 'first + at', value)};")

    # Reductions ----------------------------------------------------------------------

    def _reduce(self, instr: Instr) -> None:
        owner, function = self.owner, instr.attrs["fn"]
        number = owner.number(instr)
        element = instr.args[1] if instr.op == "bucket_reduce" else instr.args[0]
        counted = function == "sum" and instr.type == "i64"
        c_type = "int64_t" if counted else SCALAR[element.type]
        start, combine, sums = self.start(instr), f"combine{number}", f"acc{number}"
        define = _combiner(function, c_type, combine)
        self.unit += [define, f"{c_type} {sums} = {start};"]
        value = self.value(element)
        value = f"static_cast<int64_t>({value})" if counted else value
        self.body.append(f"{sums} = in ? {combine}({sums}, {value}) : {sums};")
        self.folds.append(f"{sums} = FoldLanes({sums}, {combine});")
        if instr.op == "bucket_reduce":
            self.folds.append(f"if (lane == 0) {owner.put(instr.vec[0], 'unit', sums)};")
            return
        blocks = f"Blocks({owner.bound(self.loop.domain)}, kBlock)"
        parts = owner.scratch(f"part{number}", c_type, f"{blocks} * int64_t(sizeof({c_type}))")
        self.folds.append(f"if (lane == 0) {parts}[unit] = {sums};")
        arguments = f"shared, {parts}, Blocks({owner.value(self.loop.domain)}, kBlock)"
        if function == "sum":
            text = f"Join{'Counts' if counted else 'Sum'}({arguments})"
        elif isinstance(function, Block):
            text = f"JoinByWarp<{c_type}>({arguments}, {start}, {combine})"
        else:
            text = f"JoinExtreme({arguments}, {combine})"
        if function != "sum":
            self.joins.append(define)
        self.written.append((instr, text))

    def start(self, instr: Instr) -> str:
        """Return the value that a reduction starts with, in its type."""
        text = super().start(instr)
        if isinstance(instr.attrs["fn"], Block) and instr.args[1].id not in self.inside:
            return f"{SCALAR[instr.args[1].type]}({text})"
        return text


class SumLoop(CudaLoop):
    """Loop of a decoder over many payloads, which stores their sum, or that of `levels`."""

    def __init__(self, owner: CudaContext, loop: Loop, levels: Levels | None) -> None:
        super().__init__(owner, loop)
        self.levels = levels

    def instr(self, instr: Instr) -> None:
        """Write an instruction, whose value may be unused."""
        super().instr(instr)
        if instr.op != "store":
            self.body[-1] += f" (void){self.value(instr)};"

    def _store(self, instr: Instr) -> None:
        """Store an element of the output, which is all that the loop writes."""
        value = self.value(instr.args[0])
        if self.levels is None:
            total = f"(sum[r] + {value})"
        else:
            value = self.value(self.levels.level)
            self.body.append(f"unit = {self.value(self.levels.unit)};")
            total = f"WrapAdd(sum[r], {value})"
        self.body.append(f"sum[r] = p == 0 && !job.add ? {value} : {total};")

    def sum_lines(self, prologue: list[str]) -> list[str]:
        """Return one pass over the output, after write_body(); `prologue` reads each payload."""
        c_type, unit, old, result = "float", [], "sums[from]", "sum[r]"
        if self.levels is not None:
            c_type, unit = "int32_t", ["float unit = 0;"]
            old = f"static_cast<int32_t>(BitsU({old}))"
            result = (
                "job.more ? FromBits(static_cast<uint32_t>(sum[r])) : "
                "unit * static_cast<float>(sum[r])"
            )
        return code(
            """
            ForUnits(team, n, 1024, [&](int64_t, int64_t begin, int64_t end) {
              const int lane = Lane();
              for (int64_t first = begin; first < end; first += kTile) {
                const int left = static_cast<int>(Least(end - first, kTile));
                float* const sums = out + first;
                $c_type sum[kRows] = {};
                $unit
                if (job.add) {
                  $begin
                }
                for (int p = 0; p < job.count; ++p) {
                  const Call& call = job.calls[p];
                  Reader reader(call);
                  $prologue
                  $tile
                  $rows
                }
                $end
              }
            });
            """,
            self,
            c_type=c_type,
            unit=unit,
            begin=_rows(_FROM, f"sum[r] = {old};"),
            prologue=prologue,
            end=_rows(_AT, f"if (at < left) sums[at] = {result};"),
        )


def _combiner(function: object, c_type: str, name: str) -> str:
    """Return the definition of `name`, a function object that joins two values of a reduction."""
    if function in ("max", "min"):
        return f"const {'Larger' if function == 'max' else 'Smaller'} {name};"
    body = cuda_scalars.join_body(function)
    return f"const auto {name} = []({c_type} a, {c_type} b) -> {c_type} {{ {body} }};"
