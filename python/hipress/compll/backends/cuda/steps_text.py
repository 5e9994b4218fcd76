"""Text of the steps that FunctionWriter collects: device functions, and the workspace's struct."""

from __future__ import annotations

from hipress.compll.backends.cuda.expressions import SCALAR, cuda_expression, literal
from hipress.compll.backends.cuda.function import FunctionWriter
from hipress.compll.backends.cuda.loop import LoopWriter
from hipress.compll.backends.cuda.steps import Step, indent
from hipress.compll.ir.ir import Instr, Loop, node_writes
from hipress.compll.ir.merge import integer_levels


class FunctionText(FunctionWriter):
    """One encode or decode, written."""

    def closure(self, step: Step) -> list[Instr]:
        """The numbers that a step needs, in order, with what they are computed from."""
        wanted: set[int] = set()
        todo = [self.instrs[id_] for id_ in step.needs if id_ in self.instrs]
        if self.function.kind == "decode":
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
        """What a step reads of the payload: all, but for what follows the next mask to count."""
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
        """Numbers of a step, and for a decoder the reading of the payload.

        :returns: what all threads do first, and what the last block's first thread does once the
            bits of a mask are counted
        """
        first, late, self.current = [], [], Step()
        lines = first
        for instr in self.closure(step):
            if step.counts and instr.id in step.defines:
                lines = late
            name = f"s{self.number(instr)}"
            if instr.op in ("const", "n", "param") or instr.id in step.defines:
                continue
            if instr.id in self.values:
                lines.append(
                    f"const {SCALAR[instr.type]} {name} = control.values.{name}; (void){name};"
                )
                continue
            text = self.vectors.everywhere(instr)
            if text is None:
                text = cuda_expression(instr, [self.value(arg) for arg in instr.args])
            if not text.endswith(";"):
                text = f"const {SCALAR[instr.type]} {name} = {text}; (void){name};"
            lines.append(text)
        if step.counts:
            late += ["reader.Report(call.status);", "control.bad = !reader.Good();"]
        return first, late

    def step_text(self, position: int) -> list[str]:
        step = self.steps[position]
        decode = self.function.kind == "decode"
        lines = [
            "const Call& call = job.call;",
            "const int64_t n = call.n;",
            "Control& control = *static_cast<Control*>(call.workspace);",
            "const Memory memory(job);",
            *self.param_lines(),
        ]
        if step.key:
            lines.append("const PhiloxKey key = {static_cast<uint32_t>(" + (
                "p_seed" if any(p.name == "seed" for p in self.program.params) else "0"
            ) + "), static_cast<uint32_t>(call.step), call.stream};")  # fmt: skip
        if decode:
            lines += ["const bool add = job.add; (void)add;", "Reader reader(call);"]
        prologue, late = self.prologue(step)
        lines += prologue
        if decode:
            if position == 0:
                checked = "!reader.Good() && " if self.vectors.checks else ""
                first = "team.Block() == 0 && threadIdx.x == 0"
                lines.append(f"if ({checked}{first}) reader.Report(call.status);")
            bad = " || control.bad != 0" if self.vectors.checks and position > 0 else ""
            lines.append(f"if (!reader.Good(){bad}) return;")
        lines += step.body
        if step.first:
            lines += ["if (team.Block() == 0 && threadIdx.x == 0) {", *indent(step.first), "}"]
        if step.joins or step.serial:
            lines += [f"if (team.Last(shared, &control.tickets[{position}])) {{"]
            lines += indent(step.joins)
            if step.serial:
                serial = indent([*step.serial, *late], 2)
                lines += ["  if (threadIdx.x == 0) {", *serial, "  }"]
            lines.append("}")
        lines.append("(void)n, (void)control, (void)memory;")
        return [
            "template <class Team>",
            f"static COMPLL_DEVICE void Step{position}(const Team& team, Shared& shared, "
            "const Job& job) {",
            *indent(lines),
            "}",
        ]

    def sums(self) -> tuple[str, list[str]]:
        """(How payloads are merged, the text of it if that is one pass): see ir/merge.py."""
        loops = [node for node in self.function.body if isinstance(node, Loop)]
        if len(self.steps) != 1 or len(loops) != 1 or self.stateful():
            return "kOneByOne", []
        loop = loops[0]
        if node_writes(loop) != {self.function.output} or loop.guard or loop.domain.op != "n":
            return "kOneByOne", []
        levels = integer_levels(self.function)
        step = self.current = Step()
        writer = LoopWriter(self, loop, levels, adds=True)
        lines = writer.sum_lines(["%prologue%"])
        prologue, _ = self.prologue(step)
        place = next(k for k, line in enumerate(lines) if "%prologue%" in line)
        lines[place : place + 1] = indent(prologue, 3)
        return ("kLevels" if levels else "kFloats"), [
            "template <class Team>",
            "static COMPLL_DEVICE void Sum(const Team& team, const SumJob& job) {",
            "  const int64_t n = job.calls[0].n;",
            "  float* const out = job.calls[0].out;",
            *indent(self.param_lines()),
            "  bool good = true;",
            "  for (int p = 0; p < job.count; ++p) {",
            "    const Call& call = job.calls[p];",
            "    Reader reader(call);",
            *indent(prologue, 2),
            "    if (team.Block() == 0 && threadIdx.x == 0) reader.Report(call.status);",
            "    good = good && reader.Good();",
            "  }",
            "  if (!good) return;",
            *indent(lines),
            "}",
        ]

    def param_lines(self) -> list[str]:
        lines = []
        for position, param in enumerate(self.program.params):
            c_type = "int64_t" if param.integer else "float"
            read = f"static_cast<{c_type}>(job.params.of[{position}])"
            lines.append(f"const {c_type} p_{param.name} = {read}; (void)p_{param.name};")
        return lines

    def memory_text(self) -> list[str]:
        """The struct of the workspace's parts; it is the same on host and device."""
        domains = []
        for step in self.steps:
            most = f"Least({step.most_blocks}, " if step.most_blocks else ""
            text = "1" if step.domain is None else (
                f"{most}Blocks({self.bound(step.domain)}, {step.each}){')' if most else ''}"
            )
            domains.append(text)
        parts = ["uint8_t* at = static_cast<uint8_t*>(job.call.workspace);",
                 "const uint8_t* const begin = at;",
                 "at += RoundUp(sizeof(Control));"]  # fmt: skip
        for name, c_type, bytes_ in self.memory_lines:
            parts += [f"{name} = reinterpret_cast<{c_type}*>(at);", f"at += RoundUp({bytes_});"]
        parts.append("bytes = at - begin;")
        parts += [f"blocks[{k}] = {text};" for k, text in enumerate(domains)]
        numbers = []
        for instr in self.sizes.body:
            if instr.op in ("const", "n", "param"):
                continue
            args = [self.bound_value(arg) for arg in instr.args]
            text = cuda_expression(instr, args)
            numbers.append(f"const {SCALAR[instr.type]} b{self.number(instr)} = {text};")
        return [
            "struct Memory {",
            *(f"  {c_type}* {name};" for name, c_type, _ in self.memory_lines),
            "  int64_t bytes;",
            f"  int64_t blocks[{len(self.steps)}];",
            "  COMPLL_BOTH explicit Memory(const Job& job) {",
            "    const int64_t n = job.call.n; (void)n;",
            *indent(self.param_lines(), 2),
            *indent([*numbers, *parts], 2),
            "  }",
            "};",
        ]

    def bound_value(self, instr: Instr) -> str:
        if instr.op == "const":
            return literal(instr.attrs["value"], instr.type)
        if instr.op in ("n", "param"):
            return "n" if instr.op == "n" else f"p_{instr.attrs['name']}"
        return f"b{self.number(instr)}"

    def stateful(self) -> bool:
        """True if the workspace must begin with zeros."""
        return any(s.joins or s.serial for s in self.steps)
