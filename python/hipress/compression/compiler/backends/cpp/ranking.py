"""C++ of `topk` in the pass that makes its values (passes/ranking.py)."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.text import block, indent
from hipress.compression.compiler.backends.cpp.context import CppContext
from hipress.compression.compiler.backends.cpp.loop import CppLoop
from hipress.compression.compiler.backends.cpp.memory import cleared
from hipress.compression.compiler.ir.ir import Instr, node_writes
from hipress.compression.compiler.passes.ranking import Ranking


class SampleLoop(CppLoop):
    """The keys of a sample of the loop's values."""

    asks = False

    def store(self, instr: Instr) -> None:
        value = self.value(instr.args[0])
        self.body.append(f"PutKeys(sample + line * kLine + v * kLanes, {value});")

    def lines(self) -> list[str]:
        return block(
            "for (int64_t line = 0; line < lines; ++line)",
            "constexpr bool kTail = false;",
            "constexpr int rem = kTile;",
            f"const int64_t i = LineStart(line, lines, {self.domain});",
            self.prologue,
            self.before,
            block(
                "for (int v = 0; v < kLine / kLanes; ++v)",
                "const int left = kLanes;",
                "const int64_t at = i + v * kLanes;",
                "(void)left, (void)at, (void)rem, (void)kTail;",
                self.body,
            ),
        )


class CandidatesLoop(CppLoop):
    """Loop that collects candidates instead of storing all values."""

    def store(self, instr: Instr) -> None:
        ranking = self.owner.ranked.get(instr.vec[0])
        if ranking is None or ranking.loop is not self.loop:
            super().store(instr)
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
        domain, count = owner.value(ranking.loop.domain), owner.value(topk)
        target = owner.memory(topk.vec[0])
        before = owner.pointers
        owner.pointers = {**owner.after(self.loop), topk.vec[1]: "values"}
        again = CppLoop(owner, ranking.again, self.number + 1).lines()
        owner.pointers = before
        return [
            *block(
                f"if (const int64_t found = {candidates}.Join(); found >= {count})",
                f"SelectTop({candidates}.index(), {candidates}.keys(), found, {count}, &arena, "
                f"{target});",
                end="} else {",
            ),
            *indent(
                [
                    f"float* const values = arena.Get<float>({domain});",
                    *again,
                    f"TopK(values, {domain}, {count}, &arena, {target});",
                ]
            ),
            "}",
        ]


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
    if ranking.loop.results or len(node_writes(ranking.loop)) > 1:
        return lines
    count, domain = context.value(ranking.topk), context.value(ranking.loop.domain)
    target = context.memory(ranking.topk.vec[0])
    all_ = f"std::iota({target}, {target} + {count}, 0);"
    return block(f"if ({count} == {domain}) {{ {all_} }} else", lines)
