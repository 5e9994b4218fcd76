"""C++ of `topk` in the pass that makes its values: a sample first, then only candidates are kept.

The values are not stored. A sample of lines says a key that somewhat more than k elements reach,
and the pass collects those that do. If they are fewer than k, the values are made once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipress.compll.backends.cpp.loop import LoopWriter
from hipress.compll.backends.cpp.payload import indent
from hipress.compll.ir.ir import Function, Instr, Loop, node_writes, reads
from hipress.compll.ir.slices import backward

if TYPE_CHECKING:
    from hipress.compll.backends.cpp.lazy import LazyPlan

_ELSEWHERE = ("random", "random16", "bucket_load", "bucket_reduce", "reduce")


@dataclass(eq=False)
class Ranking:
    """`topk` of what `loop` stores.

    :ivar first: scalars that the number of elements, k, follows from, in order
    :ivar sample: a loop that makes the values before `loop` has run
    :ivar again: one that makes them after it
    """

    topk: Instr
    loop: Loop
    first: list[Instr]
    sample: Loop
    again: Loop


def rankings(function: Function, lazy: LazyPlan | None) -> dict[str, Ranking]:
    """By the names of the vectors that need not be stored."""
    found = {}
    for position, node in enumerate(function.body):
        if not isinstance(node, Instr) or node.op != "topk":
            continue
        source = node.vec[1]
        if sum(source in reads(instr) for instr in function.instrs()) != 1:
            continue
        if function.vectors[source].elem != "f32" or function.vectors[source].kind != "temp":
            continue
        writers = [
            (place, loop) for place, loop in enumerate(function.body)
            if isinstance(loop, Loop) and any(source in i.vec for i in loop.body)
        ]  # fmt: skip
        if len(writers) != 1 or writers[0][0] > position:
            continue
        place, loop = writers[0]
        if loop.guard is not None or any(i.op.startswith("bucket_") for i in loop.body):
            continue
        if lazy is not None and loop in (lazy.first, lazy.last):
            continue
        first = _scalars(node.args[0], function.body[place + 1 : position])
        again = _again(function, loop, source)
        if first is not None and again is not None:
            store = next(i for i in loop.body if i.op == "store" and i.vec[0] == source)
            sample = Loop(loop.domain, [*backward(store.args[0], loop.body), store])
            found[source] = Ranking(node, loop, first, sample, again)
    return found


def _scalars(value: Instr, between: list) -> list[Instr] | None:
    """What a number needs of the nodes between; None if not all of it can be done before them."""
    made = {instr.id: instr for node in between if isinstance(node, Loop) for instr in node.results}
    scalars = {node.id: node for node in between if isinstance(node, Instr)}
    made.update({node.id: node for node in scalars.values() if node.vec or node.op == "field"})
    wanted: set[int] = set()
    todo = [value]
    while todo:
        instr = todo.pop()
        if instr.id in made:
            return None
        if instr.id in scalars and instr.id not in wanted:
            wanted.add(instr.id)
            todo += instr.args
    return [instr for instr in scalars.values() if instr.id in wanted]


def _again(function: Function, loop: Loop, source: str) -> Loop | None:
    """A loop that makes the values from what `loop` leaves behind, if it leaves enough."""
    store = next(i for i in loop.body if i.op == "store" and i.vec[0] == source)
    written = {name for i in loop.body for name in i.vec[:1] if i.op in ("store", "bucket_reduce")}
    kept = {
        i.args[0].id: i.vec[0] for i in loop.body
        if i.op == "store" and i is not store and function.vectors[i.vec[0]].elem == "f32"
        and function.vectors[i.vec[0]].needs is None
    }  # fmt: skip
    inside = {instr.id for instr in loop.body}
    copies: dict[int, Instr] = {}
    body: list[Instr] = []

    def copy(instr: Instr) -> Instr | None:
        if instr.id not in inside:
            return instr
        if instr.id in copies:
            return copies[instr.id]
        if instr.id in kept:
            made = Instr("load", [], "f32", [kept[instr.id]])
        else:
            if instr.op in _ELSEWHERE or written & set(instr.vec):
                return None
            args = [copy(arg) for arg in instr.args]
            if any(arg is None for arg in args):
                return None
            made = Instr(instr.op, args, instr.type, list(instr.vec), dict(instr.attrs))
        copies[instr.id] = made
        body.append(made)
        return made

    value = copy(store.args[0])
    if value is None:
        return None
    return Loop(loop.domain, [*body, Instr("store", [value], "none", [source])])


class SampleWriter(LoopWriter):
    """The keys of a sample of the loop's values."""

    def conditions(self) -> dict[int, str]:
        return {}

    def store(self, instr: Instr) -> None:
        value = self.value(instr.args[0])
        self.tile.append(f"PutKeys(sample + line * kLine + v * kLanes, {value});")

    def lines(self) -> list[str]:
        return [
            "for (int64_t line = 0; line < lines; ++line) {",
            "  constexpr bool kTail = false;",
            "  constexpr int rem = kTile;",
            f"  const int64_t i = LineStart(line, lines, {self.domain});",
            *indent([*self.prologue, *self.before]),
            "  for (int v = 0; v < kLine / kLanes; ++v) {",
            "    const int left = kLanes;",
            "    const int64_t at = i + v * kLanes;",
            "    (void)left, (void)at, (void)rem, (void)kTail;",
            *indent(self.tile, 2),
            "  }",
            "}",
        ]


class RankingWriter:
    """Part of FunctionWriter."""

    def before_ranking(self, ranking: Ranking) -> None:
        """k, room for the indices, and the key that candidates reach."""
        for instr in ranking.first:
            self.instr(instr)
            self.known.add(instr.id)
        topk, domain = ranking.topk, self.value(ranking.loop.domain)
        self.allocate_counted(topk, f"Clip({self.value(topk.args[0])}, {domain})")
        count = self.value(topk)
        sample = SampleWriter(self, ranking.sample, self.loops)
        self.lines += [
            f"const uint32_t floor{self.number(topk)} = [&] {{",
            f"  const int64_t lines = SampleLines({domain}, {count});",
            "  uint32_t* const sample = arena.Get<uint32_t>(lines * kLine);",
            *indent(sample.lines()),
            f"  return FloorOf(sample, lines, {domain}, {count});",
            "}();",
        ]

    def unless_all(self, ranking: Ranking, lines: list[str]) -> list[str]:
        """A loop that makes nothing but the values: if all of them are wanted, none is made."""
        if ranking.loop.results or len(node_writes(ranking.loop)) > 1:
            return lines
        topk = ranking.topk
        count, domain = self.value(topk), self.value(ranking.loop.domain)
        target = self.memory(topk.vec[0])
        all_ = f"if ({count} == {domain}) {{ std::iota({target}, {target} + {count}, 0); }} else {{"
        return [all_, *indent(lines), "}"]

    def after_ranking(self, ranking: Ranking, candidates: str) -> list[str]:
        """The k largest of the candidates, or of all values if the sample misled."""
        topk, domain = ranking.topk, self.value(ranking.loop.domain)
        count, source = self.value(topk), topk.vec[1]
        target = self.memory(topk.vec[0])
        self.pointers[source] = "values"
        again = LoopWriter(self, ranking.again, self.loops + 1).lines()
        self.loops += 1
        return [
            f"if (const int64_t found = {candidates}.Join(); found >= {count}) {{",
            f"  SelectTop({candidates}.index(), {candidates}.keys(), found, {count}, &arena, "
            f"{target});",
            "} else {",
            f"  float* const values = arena.Get<float>({domain});",
            *indent(again),
            f"  TopK(values, {domain}, {count}, &arena, {target});",
            "}",
        ]
