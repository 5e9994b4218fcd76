"""The CUDA backend: a program as one source file on the headers of contrib/compll/cuda.

nvcc compiles it. Tests also compile the same text with a C++ compiler and an emulation of CUDA's
execution model (tests/cuda_emulation), to run it without a GPU.
"""

from __future__ import annotations

from hipress.compression.compiler.backends.common import cosines
from hipress.compression.compiler.backends.common.source import is_fixed, max_bytes, source_file
from hipress.compression.compiler.backends.common.text import block, indent, quoted
from hipress.compression.compiler.backends.cuda.function import CudaFunction
from hipress.compression.compiler.ir.ir import Function, Program
from hipress.compression.compiler.passes.vector_uses import operations

ENTRY = "hipress_compll_cuda_algorithm"


def generate(program: Program, entry: str = ENTRY, standalone: bool = True) -> str:
    """Return the source file of an optimized program.

    :param entry: the name of its one exported function (cuda/abi.h describes its result)
    :param standalone: with the functions that a library needs once (cuda/exports.cuh)
    :raises CompileError: if the program uses an operation that this backend does not support
    """
    includes = ["cuda/launch.cuh", *(["cuda/exports.cuh"] if standalone else [])]
    includes += ["cuda/cosines.cuh"] if cosines.transforms(program) else []
    parts = [
        f"using Values = Params<{max(len(program.params), 1)}>;",
        "",
        cosines.table(program, "__device__ const float"),
        max_bytes(program),
        *(_coder(program, function) for function in program.functions),
        _sentence(program),
        _table(program),
    ]
    return source_file(program, includes, parts, "CompllCudaAlgorithm", entry)


def _coder(program: Program, function: Function) -> list[str]:
    """Return a struct with the steps, the workspace and the numbers that lie in it; and its
    calls."""
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
    coder = block(
        f"struct {'Decoder' if decode else 'Encoder'}",
        f"using Call = CompllCuda{'Decode' if decode else 'Encode'};",
        f"static constexpr int kSteps = {len(writer.steps)};",
        f"static constexpr bool kControl = {'true' if writer.stateful else 'false'};",
        block("struct Job", "Call call;", "Values params;", "bool add;", end="};"),
        "/// What begins the workspace; zero at first.",
        block("struct Control", control, end="};"),
        writer.memory_text(),
        steps,
        "",
        sums,
        "template <int kStep, class Team>",
        block(
            "static COMPLL_DEVICE void Step(const Team& team, Shared& shared, const Job& job)",
            cases,
        ),
        end="};",
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
    requires = operations(program.decode, "require") if program.decode is not None else []
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
