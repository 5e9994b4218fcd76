"""The CUDA backend: a program as one source file on the headers of contrib/compll/cuda.

nvcc compiles it. Tests also compile the same text with a C++ compiler and an emulation of CUDA's
execution model (tests/cuda_emulation), to run it without a GPU.
"""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import block, code, indent, quoted
from hipress.compression.compiler.backends.common.expressions import SCALAR
from hipress.compression.compiler.backends.common.source import (
    cosine_table,
    is_fixed,
    max_bytes,
    param_lines,
    philox_key,
    source_file,
    transforms,
)
from hipress.compression.compiler.backends.cuda.context import KernelStage
from hipress.compression.compiler.backends.cuda.loop import CudaLoop, SumLoop
from hipress.compression.compiler.backends.cuda.operations import CudaOperations
from hipress.compression.compiler.ir.ir import Function, Instr, Loop, Program
from hipress.compression.compiler.passes.analyses import integer_levels

ENTRY = "hipress_compll_cuda_algorithm"


_FIRST_THREAD = "team.Block() == 0 && threadIdx.x == 0"


class CudaFunction(CudaOperations):
    """One encode or decode: its steps, the workspace's struct, and the sum of many payloads.

    A step is one loop, or a part of one operation on whole vectors. Numbers that follow from n, the
    parameters and a payload's fields are computed by every thread that needs them; numbers that
    depend on data are computed once, by the last block of the step before, and lie in the
    workspace.

    Attributes:
        stateful: Whether the workspace must begin with zeros.
    """

    def __init__(self, program: Program, function: Function) -> None:
        super().__init__(program, function)
        self.params = param_lines(program, "job.params.of")
        self.write()
        if not self.steps:
            self.new_step()
        self.stateful = any(step.joins or step.serial for step in self.steps)

    def loop(self, loop: Loop) -> None:
        """Write a loop."""
        written = loop.writes
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

    def closure(self, step: KernelStage) -> list[Instr]:
        """Return the numbers that a step needs, and what they are computed from, in order."""
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

    def readable(self, step: KernelStage) -> list[Instr]:
        """Return the fields that a step can read: all up to the next mask not yet counted."""
        steps = self.steps[: self.steps.index(step) + 1] if step in self.steps else self.steps
        counted = {id_ for one in steps for id_ in one.defines}
        found = []
        for instr in self.instrs.values():
            if instr.op == "count_where" and instr.id not in counted:
                break
            if instr.op in ("field", "field_vector", "require", "end_of_payload"):
                found.append(instr)
        return found

    def prologue(self, step: KernelStage) -> tuple[list[str], list[str]]:
        """Return the numbers of a step, and for a decoder the reading of the payload.

        :returns: what all threads do first, and what the last block's first thread does once the
            bits of a mask are counted
        """
        first, late = [], []
        self.current = KernelStage()
        lines = first
        for instr in self.closure(step):
            if step.counts and instr.id in step.defines:
                lines = late
            name = f"s{self.number(instr)}"
            if instr.op in ("const", "n", "param") or instr.id in step.defines:
                continue
            in_workspace = instr.id in self.values
            text = f"control.values.{name}" if in_workspace else self.number_text(instr)
            if not text.endswith(";"):
                text = f"const {SCALAR[instr.type]} {name} = {text}; (void){name};"
            lines.append(text)
        if step.counts:
            late += ["reader.Report(call.status);", "control.bad = !reader.Good();"]
        return first, late

    # Text ----------------------------------------------------------------------

    def step_text(self, position: int) -> list[str]:
        """Return the function of a step."""
        step = self.steps[position]
        lines = [
            "const Call& call = job.call;",
            "const int64_t n = call.n;",
            "Control& control = *static_cast<Control*>(call.workspace);",
            "const Memory memory(job);",
            *self.params,
        ]
        if step.key:
            lines.append(f"const PhiloxKey key = {philox_key(self.program)};")
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
        """Return how payloads are merged, and the text of it if that is one pass."""
        loops = self.function.loops
        if len(self.steps) != 1 or len(loops) != 1 or self.stateful:
            return "kOneByOne", []
        loop = loops[0]
        if loop.writes != {self.function.output} or loop.guard or loop.domain.op != "n":
            return "kOneByOne", []
        levels = integer_levels(self.function)
        step = self.current = KernelStage()
        writer = SumLoop(self, loop, levels)
        writer.write_body()
        prologue, _ = self.prologue(step)
        return ("kLevels" if levels else "kFloats"), code(
            """
            template <class Team>
            static COMPLL_DEVICE void Sum(const Team& team, const SumJob& job) {
              const int64_t n = job.calls[0].n;
              float* const out = job.calls[0].out;
              $params
              bool good = true;
              for (int p = 0; p < job.count; ++p) {
                const Call& call = job.calls[p];
                Reader reader(call);
                $prologue
                if (team.Block() == 0 && threadIdx.x == 0) reader.Report(call.status);
                good = good && reader.Good();
              }
              if (!good) return;
              $lines
            }
            """,
            self,
            prologue=prologue,
            lines=writer.sum_lines(prologue),
        )

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
        return code(
            """
            struct Memory {
              $members
              int64_t bytes;
              int64_t blocks[$count];
              COMPLL_BOTH explicit Memory(const Job& job) {
                const int64_t n = job.call.n; (void)n;
                $params
                $numbers
                uint8_t* at = static_cast<uint8_t*>(job.call.workspace);
                const uint8_t* const begin = at;
                at += RoundUp(sizeof(Control));
                $parts
                bytes = at - begin;
                $blocks
              }
            };
            """,
            self,
            members=[f"{c_type}* {name};" for name, c_type, _ in self.workspace],
            count=len(blocks),
            numbers=numbers,
            parts=parts,
            blocks=[f"blocks[{k}] = {text};" for k, text in enumerate(blocks)],
        )


def generate(program: Program, entry: str = ENTRY, standalone: bool = True) -> str:
    """Return the source file of an optimized program.

    Args:
        program: The program.
        entry: Name of its one exported function (cuda/abi.h describes its result).
        standalone: Whether it has the functions that a library needs once (cuda/exports.cuh).

    Raises:
        CompileError: If the program uses an operation that this backend does not support.
    """
    includes = ["cuda/launch.cuh", *(["cuda/exports.cuh"] if standalone else [])]
    includes += ["cuda/cosines.cuh"] if transforms(program) else []
    parts = [
        f"using Values = Params<{max(len(program.params), 1)}>;",
        "",
        cosine_table(program, "__device__ const float"),
        max_bytes(program),
        *(_coder(program, function) for function in program.functions),
        _sentence(program),
        _table(program),
    ]
    return source_file(program, includes, parts, "CompllCudaAlgorithm", entry)


def _coder(program: Program, function: Function) -> list[str]:
    """Return a struct with the steps, the workspace and its numbers, and its calls."""
    writer = CudaFunction(program, function)
    decode = writer.is_decode
    steps = [line for k in range(len(writer.steps)) for line in ["", *writer.step_text(k)]]
    numbers = [f"{c_type} s{writer.numbers[id_]};" for id_, c_type in writer.values.items()]
    control = [
        f"uint32_t tickets[{len(writer.steps)}];",
        "uint32_t bad, disorder;",
        *(f"Selection selection{k};" for k in range(writer.selections)),
        *block("struct", numbers or ["int nothing;"], end="} values;"),
    ]
    sums = []
    if decode:
        kind, lines = writer.sums()
        sums = [
            f"static constexpr Merge kMerge = {kind};",
            "using SumJob = ManyJob<Values>;",
            *lines,
        ]
    cases = [
        f"if constexpr (kStep == {k}) return Step{k}(team, shared, job);"
        for k in range(len(writer.steps))
    ]
    coder = code(
        """
        struct $coder {
          using Call = CompllCuda$kind;
          static constexpr int kSteps = $count;
          static constexpr bool kControl = $stateful;
          struct Job {
            Call call;
            Values params;
            bool add;
          };
          /// What begins the workspace; zero at first.
          struct Control {
            $control
          };
          $memory_text
          $steps

          $sums
          template <int kStep, class Team>
          static COMPLL_DEVICE void Step(const Team& team, Shared& shared, const Job& job) {
            $cases
          }
        };
        """,
        writer,
        coder="Decoder" if decode else "Encoder",
        kind="Decode" if decode else "Encode",
        count=len(writer.steps),
        stateful="true" if writer.stateful else "false",
        control=control,
        steps=steps,
        sums=sums,
        cases=cases,
    )
    return [*coder, "", *_calls(program, decode)]


def _calls(program: Program, decode: bool) -> list[str]:
    """Return the functions of the table."""
    name, kind = ("Decoder", "Decode") if decode else ("Encoder", "Encode")
    call = f"CompllCuda{kind}"
    add, step = ("int add, ", "") if decode else ("", "uint64_t step, ")
    flag, batch = ("add != 0", "0") if decode else ("false", "step")
    most = "" if decode else ", MaxBytes(call->n, params)"
    checked = []
    for position, param in enumerate(program.params):
        if param.static:  # it is the width of codes
            equal = " || ".join(f"params[{position}] == {choice}" for choice in param.choices)
            checked.append(f"if (!({equal})) return COMPLL_CUDA_BAD_PARAM;")

    def function(name: str, arguments: str, result: str) -> list[str]:
        head = f"int {name}(const {call}* {arguments}, void* stream)"
        return [*block(head, checked, f"return {result};"), ""]

    many = "calls, int count, const double* params, "
    return [
        *function(
            kind,
            f"call, const double* params, {add}int shape",
            f"Run<{name}>(*call, params, {flag}, shape, stream{most})",
        ),
        *function(
            f"{kind}Batch",
            f"{many}{add}{step}".removesuffix(", "),
            f"RunBatch<{name}>(calls, count, params, {flag}, {batch}, stream)",
        ),
        *(
            function(
                "DecodeSum",
                f"{many}int shape",
                f"RunSum<{name}>(calls, count, params, shape, stream)",
            )
            if decode
            else []
        ),
        *block(
            f"int64_t {kind}Workspace(int64_t n, const double* params)",
            f"return WorkspaceBytes<{name}>(n, params);",
        ),
        "",
    ]


def _sentence(program: Program) -> list[str]:
    """Return the function that describes why a payload is refused."""
    requires = program.decode.operations("require") if program.decode is not None else []
    cases = [
        f"case kRequire + {k}: return {quoted(instr.attrs['message'].replace('%', '%%'))};"
        for k, instr in enumerate(requires)
    ]
    switch = block("switch (status)", cases, "default: return CommonSentence(status);")
    return [*block("const char* Sentence(int64_t status)", switch), ""]


def _table(program: Program) -> list[str]:
    encode, decode = (
        [name, f"{name}Batch", f"{name}Workspace"] if function else ["nullptr"] * 3
        for name, function in (("Encode", program.encode), ("Decode", program.decode))
    )
    merge = "DecodeSum" if program.decode else "nullptr"
    fields = [
        f"COMPLL_CUDA_ABI_VERSION, {quoted(program.name)}, {quoted(program.digest)},",
        f"{len(program.params)}, {len(program.states)}, {is_fixed(program)},",
        f"MaxBytes, {encode[2]}, {decode[2]}, {encode[0]}, {decode[0]},",
        f"{encode[1]}, {decode[1]}, {merge}, Sentence,",
    ]
    return ["const CompllCudaAlgorithm kAlgorithm = {", *indent(fields), "};", ""]
