"""CUDA of one fused loop: a warp takes a unit of elements, in tiles of eight rows of 32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipress.compll.backends.cuda.expressions import (
    SCALAR,
    combiner,
    cuda_expression,
    literal,
    width,
)
from hipress.compll.ir.ir import Block, Instr, Loop

if TYPE_CHECKING:
    from hipress.compll.backends.cuda.function import FunctionWriter
    from hipress.compll.ir.merge import Levels

_ROWS = "for (int r = 0; r < kRows; ++r) {"
# Places are relative to the tile, in 32 bits: a GPU computes with 64 at half the speed.
_PLACE = "const int at = 32 * r + lane;"
# Loads have no branches, so that they are issued together: beyond the end they see the last one.
_FROM = f"{_PLACE} const int from = at < left ? at : left - 1; (void)from;"
_LEFT = "const int left = static_cast<int>(Least(end - first, kTile));"


class LoopWriter:
    """Writes a loop as the body of a step, and what joins its reductions.

    :param owner: the function's writer: names of values and vectors
    :param terms: the output is not stored: what is stored, or these levels, are terms of a sum
    """

    def __init__(
        self, owner: FunctionWriter, loop: Loop, terms: Levels | None = None, adds: bool = False
    ) -> None:
        self.owner, self.loop, self.terms, self.adds = owner, loop, terms, adds
        self.inside = {instr.id for instr in loop.body}
        self.stored: set[str] = set()
        self.unit: list[str] = []
        self.tile: list[str] = []
        self.loads: list[str] = []
        self.row: list[str] = []
        self.row_end: list[str] = []
        self.packs: list[str] = []
        self.folds: list[str] = []
        self.joins: list[str] = []
        self.written: list[tuple[Instr, str]] = []

    def lines(self) -> list[str]:
        """The step's parallel part; self.joins is for all threads of the last block."""
        owner = self.owner
        buckets = [instr for instr in self.loop.body if instr.op == "bucket_reduce"]
        size = "1024"
        if buckets:
            size = owner.value(buckets[0].args[0])
        elif self.loop.results:
            size = "kBlock"
        for instr in self.loop.body:
            self._instr(instr)
        loads = ["COMPLL_UNROLL", _ROWS, f"  {_FROM}", *_indent(self.loads), "}"]
        return [
            f"ForUnits(team, {owner.value(self.loop.domain)}, {size}, "
            "[&](int64_t unit, int64_t begin, int64_t end) {",
            "  const int lane = Lane();",
            *_indent(self.unit),
            "  for (int64_t first = begin; first < end; first += kTile) {",
            f"    {_LEFT}",
            *_indent(self.tile, 2),
            *(_indent(loads, 2) if self.loads else []),
            "COMPLL_UNROLL",
            f"    {_ROWS}",
            f"      {_PLACE}",
            "      const bool in = at < left;",
            *_indent(self.row, 3),
            *_indent(self.row_end, 3),
            "      (void)in;",
            "    }",
            *_indent(self.packs, 2),
            "  }",
            *_indent(self.folds),
            "  (void)unit;",
            "});",
        ]

    def sum_lines(self, prologue: list[str]) -> list[str]:
        """The sum of many payloads, each read by `prologue`, in one pass over the output."""
        for instr in self.loop.body:
            self._instr(instr)
        loads = ["COMPLL_UNROLL", _ROWS, f"  {_FROM}", *_indent(self.loads), "}"]
        c_type, levels = ("int32_t", True) if self.terms is not None else ("float", False)
        old = "static_cast<int32_t>(BitsU(sums[from]))" if levels else "sums[from]"
        result = "sum[r]"
        if levels:
            result = ("job.more ? FromBits(static_cast<uint32_t>(sum[r])) : "
                      "unit * static_cast<float>(sum[r])")  # fmt: skip
        return [
            "ForUnits(team, n, 1024, [&](int64_t, int64_t begin, int64_t end) {",
            "  const int lane = Lane();",
            "  for (int64_t first = begin; first < end; first += kTile) {",
            f"    {_LEFT}",
            "    float* const sums = out + first;",
            f"    {c_type} sum[kRows] = {{}};",
            *(["    float unit = 0;"] if levels else []),
            "    if (job.add) {",
            "COMPLL_UNROLL",
            f"      {_ROWS}",
            f"        {_FROM}",
            f"        sum[r] = {old};",
            "      }",
            "    }",
            "    for (int p = 0; p < job.count; ++p) {",
            "      const Call& call = job.calls[p];",
            "      Reader reader(call);",
            *_indent(prologue, 3),
            *_indent(self.tile, 3),
            *(_indent(loads, 3) if self.loads else []),
            "COMPLL_UNROLL",
            f"      {_ROWS}",
            f"        {_PLACE}",
            "        const bool in = at < left;",
            *_indent([*self.row, *self.row_end], 4),
            "        (void)in;",
            "      }",
            "    }",
            "COMPLL_UNROLL",
            f"    {_ROWS}",
            f"      {_PLACE}",
            f"      if (at < left) sums[at] = {result};",
            "    }",
            "  }",
            "});",
        ]

    def _value(self, instr: Instr) -> str:
        if instr.id in self.inside:
            return f"t{self.owner.number(instr)}"
        return self.owner.value(instr)

    def _instr(self, instr: Instr) -> None:
        op = instr.op
        if op == "store":
            self._store(instr)
            return
        if op in ("reduce", "bucket_reduce"):
            self._reduce(instr)
            return
        if op == "const":
            text = literal(instr.attrs["value"], instr.type)
        elif op == "index":
            text = "static_cast<int32_t>(first) + at"
        elif op in ("random", "random16"):
            text = self._random(instr)
        elif op == "load":
            text = self._load(instr)
        elif op == "load_at":
            text = self._load_at(instr)
        elif op == "bucket_load":
            text = self._bucket_load(instr)
        else:
            text = cuda_expression(instr, [self._value(arg) for arg in instr.args])
        unused = f" (void){self._value(instr)};" if self.adds else ""
        self.row.append(f"const {SCALAR[instr.type]} {self._value(instr)} = {text};{unused}")

    def _random(self, instr: Instr) -> str:
        site, half = instr.attrs["site"], instr.op == "random16"
        words = f"words{site}"
        c_type, draw = ("int32_t", "RandomRows16") if half else ("uint32_t", "RandomRows")
        self.owner.use_key()
        self.tile += [f"{c_type} {words}[kRows];", f"{draw}<kRows>(key, {site}, first, {words});"]
        return f"{words}[r]"

    def _load(self, instr: Instr) -> str:
        name = instr.vec[0]
        text = self._element(name, "at")
        zero = literal(0, instr.type)
        kept = self.owner.kept(name)
        if name in self.stored:  # what this thread has just written, rounded
            return f"in{kept and f' && {kept}'} ? {text} : {zero}"
        number = self.owner.number(instr)
        self.tile.append(f"{SCALAR[instr.type]} in{number}[kRows];")
        first = self._first(name, instr)
        first = f"{kept} ? {first} : {zero}" if kept else first
        self.loads.append(f"in{number}[r] = {first};")
        return f"in{number}[r]"

    def _first(self, name: str, instr: Instr) -> str:
        """A load before all computation: of codes relative to the tile."""
        vector = self.owner.function.vectors[name]
        if not vector.packed:
            return self._element(name, "from")
        bits, number = width(vector.bits), self.owner.number(instr)
        msb = "true" if vector.order == "msb" else "false"
        self.tile.append(
            f"const Codes codes{number}({self.owner.memory(name)}, {bits}, first, "
            f"{self.owner.bytes_of(name)});"
        )
        return f"codes{number}.Get<{msb}>({bits}, from)"

    def _element(self, name: str, at: str) -> str:
        """An element of the tile, to read or to write."""
        if not self.owner.aligned(name):
            return self.owner.get(name, f"first + {at}")
        pointer = f"tile_{self.owner.plain(name)}"
        line = f"auto* const {pointer} = {self.owner.memory(name)} + first;"
        if line not in self.tile:
            self.tile.append(line)
        return f"{pointer}[{at}]"

    def _load_at(self, instr: Instr) -> str:
        name, at = instr.vec[0], self._value(instr.args[0])
        size = self.owner.size(name)
        inner = self.owner.get(name, f"ClampIndex({at}, {size})")
        there = " && ".join(filter(None, (self.owner.kept(name), f"{size} > 0")))
        return f"{there} ? {inner} : {literal(0, instr.type)}"

    def _bucket_load(self, instr: Instr) -> str:
        bucket = self.owner.value(instr.args[0])
        at = f"bucket_{self.owner.number(instr.args[0])}"
        line = f"Bucket {at}(first, {bucket});"
        if line not in self.tile:
            self.tile.append(line)
            self.row_end.append(f"{at}.NextRow(32 * (r + 1) < left);")
        return self.owner.get(instr.vec[0], f"{at}.index")

    def _store(self, instr: Instr) -> None:
        name, value = instr.vec[0], self._value(instr.args[0])
        vector = self.owner.function.vectors[name]
        self.stored.add(name)
        if vector.packed:
            codes = f"out_{self.owner.plain(name)}"
            msb = "true" if vector.order == "msb" else "false"
            self.tile.append(f"int32_t {codes}[kRows];")
            self.row.append(f"{codes}[r] = in ? {value} : 0;")
            self.packs.append(
                f"PackRows<{msb}>(shared, {width(vector.bits)}, {codes}, "
                f"{self.owner.memory(name)}, first, {self.owner.bytes_of(name)});"
            )
            return
        if vector.kind == "output" and self.adds:
            if self.terms is not None:
                value = self._value(self.terms.level)
                self.row.append(f"unit = {self._value(self.terms.unit)};")
            zero = "WrapAdd(sum[r], " if self.terms is not None else "(sum[r] + "
            self.row.append(f"sum[r] = p == 0 && !job.add ? {value} : {zero}{value});")
            return
        if vector.kind == "output":
            old = f"    {_FROM} old[r] = {self._element(name, 'from')};"
            self.tile += ["float old[kRows] = {};", "if (add) {", "COMPLL_UNROLL", f"  {_ROWS}",
                          old, "  }", "}"]  # fmt: skip
            value = f"add ? old[r] + {value} : {value}"
        there = " && ".join(filter(None, ("in", self.owner.kept(name))))
        if self.owner.aligned(name):
            self.row.append(f"if ({there}) {self._element(name, 'at')} = {value};")
        else:
            self.row.append(f"if ({there}) {self.owner.put(name, 'first + at', value)};")

    # Reductions ----------------------------------------------------------------------

    def _reduce(self, instr: Instr) -> None:
        owner, function = self.owner, instr.attrs["fn"]
        number = owner.number(instr)
        element = instr.args[1] if instr.op == "bucket_reduce" else instr.args[0]
        counted = function == "sum" and instr.type == "i64"
        c_type = "int64_t" if counted else SCALAR[element.type]
        start, combine, sums = self._start(instr, c_type), f"combine{number}", f"acc{number}"
        define = combiner(function, c_type, combine)
        self.unit += [*define, f"{c_type} {sums} = {start};"]
        value = self._value(element)
        if counted:
            value = f"static_cast<int64_t>({value})"
        self.row.append(f"{sums} = in ? {combine}({sums}, {value}) : {sums};")
        self.folds.append(f"{sums} = FoldLanes({sums}, {combine});")
        if instr.op == "bucket_reduce":
            self.folds.append(f"if (lane == 0) {owner.put(instr.vec[0], 'unit', sums)};")
            return
        parts = owner.partials(self.loop, instr, c_type)
        self.folds.append(f"if (lane == 0) {parts}[unit] = {sums};")
        size = f"Blocks({owner.value(self.loop.domain)}, kBlock)"
        if counted:
            text = f"JoinCounts(shared, {parts}, {size})"
        elif function == "sum":
            text = f"JoinSum(shared, {parts}, {size})"
        elif isinstance(function, Block):
            self.joins += define
            text = f"JoinByWarp<{c_type}>(shared, {parts}, {size}, {start}, {combine})"
        else:
            self.joins += define
            text = f"JoinExtreme(shared, {parts}, {size}, {combine})"
        self.written.append((instr, text))

    def _start(self, instr: Instr, c_type: str) -> str:
        function = instr.attrs["fn"]
        if function == "sum":
            return "0"
        if not isinstance(function, Block):
            return f"{'Larger' if function == 'max' else 'Smaller'}::Start()"
        start = instr.args[1]
        if start.id in self.inside:
            return literal(start.attrs["value"], start.type)
        return f"{c_type}({self.owner.value(start)})"


def _indent(lines: list[str], levels: int = 1) -> list[str]:
    return [line if line.startswith("#") else "  " * levels + line for line in lines]
