"""CUDA of one encoder or decoder: a sequence of steps for a team of blocks (team.cuh).

A step is one loop, or a part of one operation on whole vectors. Numbers that follow from n, the
parameters and a payload's fields are computed by every thread that needs them; numbers that depend
on data are computed once, by the last block of the step before, and lie in the workspace.
"""

from __future__ import annotations

from hipress.compression.compiler.backends.common.expressions import SCALAR
from hipress.compression.compiler.backends.common.source import param_lines
from hipress.compression.compiler.backends.common.text import block, indent
from hipress.compression.compiler.backends.cuda.context import CudaContext, Step
from hipress.compression.compiler.backends.cuda.loop import CudaLoop, SumLoop
from hipress.compression.compiler.backends.cuda.vectors import OPERATIONS, number_text
from hipress.compression.compiler.ir.ir import Function, Instr, Loop, Program, node_writes
from hipress.compression.compiler.passes.merge import integer_levels

_FIRST_THREAD = "team.Block() == 0 && threadIdx.x == 0"


class CudaFunction(CudaContext):
    """One encode or decode: its steps, the workspace's struct, and the sum of many payloads.

    Attributes:
        stateful: Whether the workspace must begin with zeros.
    """

    operations = OPERATIONS

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.params = param_lines(program, "job.params.of")
        self.write()
        if not self.steps:
            self.new_step()
        self.stateful = any(step.joins or step.serial for step in self.steps)

    def loop(self, loop: Loop) -> None:
        written = node_writes(loop)
        step = self.new_step(loop.domain)
        for name in sorted(written):
            self.allocate(name)
        writer = CudaLoop(self, loop)
        lines, conditions = writer.lines(), []
        if loop.guard is not None:
            conditions.append(self.value(loop.guard))
        if self.function.output in written and self.sparse_output:
            conditions.append("!add")
        step.body += block(f"if ({' && '.join(conditions)})", lines) if conditions else lines
        step.joins += writer.joins
        for instr, text in writer.written:
            if loop.guard is not None:
                text = f"{self.value(loop.guard)} ? {text} : {SCALAR[instr.type]}(0)"
            self.define(instr, text, joined=True)

    # Numbers of a step ----------------------------------------------------------------

    def closure(self, step: Step) -> list[Instr]:
        """Return the numbers that a step needs, in order, with the values they are computed
        from."""
        wanted: set[int] = set()
        todo = [self.instrs[id_] for id_ in step.needs if id_ in self.instrs]
        if self.is_decode:
            todo += self.readable(step)
        while todo:
            instr = todo.pop()
            if instr.id in wanted:
                continue
            wanted.add(instr.id)
            if instr.id not in self.values:
                todo += instr.args
                if instr.op in ("field_vector", "topk", "pack_ascending"):
                    todo.append(self.function.vectors[instr.vec[-1]].size)
        return [instr for instr in self.instrs.values() if instr.id in wanted]

    def readable(self, step: Step) -> list[Instr]:
        """Return the fields of the payload that a step can read: all up to the next uncounted
        mask."""
        steps = self.steps[: self.steps.index(step) + 1] if step in self.steps else self.steps
        counted = {id_ for one in steps for id_ in one.defines}
        found = []
        for instr in self.instrs.values():
            if instr.op == "count_where" and instr.id not in counted:
                break
            if instr.op in ("field", "field_vector", "require", "end_of_payload"):
                found.append(instr)
        return found

    def prologue(self, step: Step) -> tuple[list[str], list[str]]:
        """Return the numbers of a step, and for a decoder the reading of the payload.

        :returns: what all threads do first, and what the last block's first thread does once the
            bits of a mask are counted
        """
        first, late = [], []
        self.current = Step()
        lines = first
        for instr in self.closure(step):
            if step.counts and instr.id in step.defines:
                lines = late
            name = f"s{self.number(instr)}"
            if instr.op in ("const", "n", "param") or instr.id in step.defines:
                continue
            in_workspace = instr.id in self.values
            text = f"control.values.{name}" if in_workspace else number_text(self, instr)
            if not text.endswith(";"):
                text = f"const {SCALAR[instr.type]} {name} = {text}; (void){name};"
            lines.append(text)
        if step.counts:
            late += ["reader.Report(call.status);", "control.bad = !reader.Good();"]
        return first, late

    # Text ----------------------------------------------------------------------

    def step_text(self, position: int) -> list[str]:
        step = self.steps[position]
        lines = [
            "const Call& call = job.call;",
            "const int64_t n = call.n;",
            "Control& control = *static_cast<Control*>(call.workspace);",
            "const Memory memory(job);",
            *self.params,
        ]
        if step.key:
            seeded = any(param.name == "seed" for param in self.program.params)
            seed = f"static_cast<uint32_t>({'p_seed' if seeded else '0'})"
            rest = "static_cast<uint32_t>(call.step), call.stream"
            lines.append(f"const PhiloxKey key = {{{seed}, {rest}}};")
        if self.is_decode:
            lines += ["const bool add = job.add; (void)add;", "Reader reader(call);"]
        prologue, late = self.prologue(step)
        lines += prologue
        if self.is_decode:
            if position == 0:
                refused = "!reader.Good() && " if self.checks else ""
                lines.append(f"if ({refused}{_FIRST_THREAD}) reader.Report(call.status);")
            bad = " || control.bad != 0" if self.checks and position > 0 else ""
            lines.append(f"if (!reader.Good(){bad}) return;")
        lines += step.body
        if step.first:
            lines += block(f"if ({_FIRST_THREAD})", step.first)
        if step.joins or step.serial:
            serial = block("if (threadIdx.x == 0)", step.serial, late) if step.serial else []
            last = f"if (team.Last(shared, &control.tickets[{position}]))"
            lines += block(last, step.joins, serial)
        lines.append("(void)n, (void)control, (void)memory;")
        return [
            "template <class Team>",
            *block(
                f"static COMPLL_DEVICE void Step{position}(const Team& team, Shared& shared, "
                "const Job& job)",
                lines,
            ),
        ]

    def sums(self) -> tuple[str, list[str]]:
        """Return (how payloads are merged, the text of it if that is one pass); see
        passes/merge.py."""
        loops = [node for node in self.function.body if isinstance(node, Loop)]
        if len(self.steps) != 1 or len(loops) != 1 or self.stateful:
            return "kOneByOne", []
        loop = loops[0]
        if node_writes(loop) != {self.function.output} or loop.guard or loop.domain.op != "n":
            return "kOneByOne", []
        levels = integer_levels(self.function)
        step = self.current = Step()
        lines = SumLoop(self, loop, levels).sum_lines("%prologue%")
        prologue, _ = self.prologue(step)
        at = next(k for k, line in enumerate(lines) if "%prologue%" in line)
        lines[at : at + 1] = indent(prologue, 3)
        return ("kLevels" if levels else "kFloats"), [
            "template <class Team>",
            *block(
                "static COMPLL_DEVICE void Sum(const Team& team, const SumJob& job)",
                "const int64_t n = job.calls[0].n;",
                "float* const out = job.calls[0].out;",
                self.params,
                "bool good = true;",
                block(
                    "for (int p = 0; p < job.count; ++p)",
                    "const Call& call = job.calls[p];",
                    "Reader reader(call);",
                    prologue,
                    f"if ({_FIRST_THREAD}) reader.Report(call.status);",
                    "good = good && reader.Good();",
                ),
                "if (!good) return;",
                lines,
            ),
        ]

    def memory_text(self) -> list[str]:
        """Return the struct of the workspace's parts; it is the same on host and device."""
        blocks, parts, numbers = [], [], []
        for step in self.steps:
            text = "1"
            if step.domain is not None:
                text = f"Blocks({self.bound(step.domain)}, {step.each})"
                text = f"Least({step.most_blocks}, {text})" if step.most_blocks else text
            blocks.append(text)
        for name, c_type, bytes_ in self.workspace:
            parts += [f"{name} = reinterpret_cast<{c_type}*>(at);", f"at += RoundUp({bytes_});"]
        for instr in self.sizes.body:
            if instr.op not in ("const", "n", "param"):
                text = self.dialect(instr, [self.bound_name(arg) for arg in instr.args])
                name = f"b{self.number(instr)}"
                numbers.append(f"const {SCALAR[instr.type]} {name} = {text};")
        return block(
            "struct Memory",
            [f"{c_type}* {name};" for name, c_type, _ in self.workspace],
            "int64_t bytes;",
            f"int64_t blocks[{len(self.steps)}];",
            block(
                "COMPLL_BOTH explicit Memory(const Job& job)",
                "const int64_t n = job.call.n; (void)n;",
                self.params,
                numbers,
                "uint8_t* at = static_cast<uint8_t*>(job.call.workspace);",
                "const uint8_t* const begin = at;",
                "at += RoundUp(sizeof(Control));",
                parts,
                "bytes = at - begin;",
                [f"blocks[{k}] = {text};" for k, text in enumerate(blocks)],
            ),
            end="};",
        )
