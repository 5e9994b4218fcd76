"""The C++ backend: a program as one source file on the headers of src/operator/contrib/compll."""

from __future__ import annotations

from hipress.compression.compiler.backends.common import cosines
from hipress.compression.compiler.backends.common.expressions import known, literal
from hipress.compression.compiler.backends.common.source import (
    is_fixed,
    max_bytes,
    param_lines,
    scalar_lines,
    source_file,
)
from hipress.compression.compiler.backends.common.text import block, indent, quoted
from hipress.compression.compiler.backends.cpp import lazy
from hipress.compression.compiler.backends.cpp.dense import write_dense
from hipress.compression.compiler.backends.cpp.function import CppFunction
from hipress.compression.compiler.ir.ir import Block, Function, Instr, Param, Program
from hipress.compression.compiler.ir.slices import backward
from hipress.compression.compiler.passes.buckets import is_dense
from hipress.compression.compiler.passes.lazy import lazy_state
from hipress.compression.compiler.passes.vector_uses import operations

ENTRY = "hipress_compll_algorithm"


def generate(program: Program, entry: str = ENTRY) -> str:
    """Return the source file of an optimized program.

    :param entry: the name of its one exported function
    :raises CompileError: if a payload's size has no bound that follows from n and the parameters
    """
    return _ProgramWriter(program).text(entry)


class _ProgramWriter:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.statics = [param for param in program.params if param.static]
        self.lazy = lazy_state(program)
        self.exact = program.exact
        self.dense = program.decode is not None and is_dense(program.decode)
        vectors = program.encode.vectors if program.encode is not None else {}
        self.optional = {
            name: vectors[name].needs
            for name in program.states
            if name in vectors and vectors[name].needs is not None
        }

    def text(self, entry: str) -> str:
        program = self.program
        parts = [
            cosines.table(program, "const float"),
            max_bytes(program),
            self.granularity(),
            self.used_states(),
        ]
        if program.encode is not None:
            parts.append(self.encode(program.encode))
        if self.lazy is not None:
            parts.append(lazy.settle_function(self.lazy))
        if program.decode is not None:
            decode = self.dense_decode if self.dense else self.decode
            parts += [decode(program.decode), self.decode_entry()]
        parts += [self.for_sum(), self.table()]
        includes = ["indices.h", *(["floats.h"] if self.exact else [])]
        includes += ["cosines.h"] if cosines.transforms(program) else []
        return source_file(program, includes, parts, "CompllAlgorithm", entry)

    # Functions ----------------------------------------------------------------------

    def function(self, head: str, *body: object, more: tuple[str, ...] = ()) -> list[str]:
        """Return a function, and if there are static parameters or `more` arguments a template of
        it."""
        arguments = [f"int {param.name}" for param in self.statics] + list(more)
        template = [f"template <{', '.join(arguments)}>"] if arguments else []
        return [*template, *block(head, *body), ""]

    def of_params(self, head: str, *body: object) -> list[str]:
        """Return a function of the parameters alone, as they are given."""
        return [*block(head, "(void)params;", param_lines(self.program), *body), ""]

    def chosen(self) -> str:
        """Return the template arguments inside of a template."""
        names = ", ".join(param.name for param in self.statics)
        return f"<{names}>" if names else ""

    def start(self) -> list[str]:
        return [
            "const int64_t n = call.n;",
            "const double* const params = call.params;",
            "(void)n, (void)params;",
            *param_lines(self.program, static=True),
        ]

    def encode(self, function: Function) -> list[str]:
        seed = "p_seed" if any(param.name == "seed" for param in self.program.params) else "0"
        lines = [
            "Arena arena;",
            *self.start(),
            f"const PhiloxKey key = {{static_cast<uint32_t>({seed}), "
            "static_cast<uint32_t>(call.step), call.stream};",
            "(void)key;",
            *CppFunction(self.program, function, self.lazy).text(),
            "return offset;",
        ]
        more = [f"bool kHas_{name}" for name in self.optional]
        more += ["int kLazy"] if self.lazy is not None else []
        used = "const int64_t used = UsedStates(call->params);"
        return [
            *self.function("int64_t EncodeImpl(CompllEncodeCall& call)", lines, more=tuple(more)),
            *block(
                "int64_t Encode(CompllEncodeCall* call)",
                [used] if self.optional else [],
                self.dispatch("EncodeImpl", "return -1;", self.variants()),
            ),
            "",
        ]

    def variants(self) -> list[tuple[str, str]] | None:
        """Return conditions on an encode, with template arguments. The first that holds counts."""
        found = lazy.variants(self.lazy) if self.lazy is not None else [("", "")]
        for name in reversed(self.optional):
            used = f"(used >> {self.program.states.index(name)} & 1) != 0"
            found = [
                (" && ".join(filter(None, (here, there))), ", ".join(filter(None, (has, which))))
                for here, has in ((used, "true"), ("", "false"))
                for there, which in found
            ]
        return None if found == [("", "")] else found

    def used_states(self) -> list[str]:
        """Return a C++ function for the states that parameters need, as bits. Others are not
        allocated."""
        lines = [f"int64_t used = {(1 << len(self.program.states)) - 1};"]
        for name, needs in self.optional.items():
            scalars = [n for n in self.program.encode.body if isinstance(n, Instr)]
            bit = 1 << self.program.states.index(name)
            result = scalar_lines(backward(needs, scalars), needs)
            lines += block("if (![&]", result, end=f"}}()) used &= ~int64_t({bit});")
        return self.of_params("int64_t UsedStates(const double* params)", lines, "return used;")

    def decode(self, function: Function) -> list[str]:
        """Return a decoder that adds one payload after the other."""
        return [
            *self.function(
                "int DecodeOne(const CompllDecodeCall& call, const DecodePart& part)",
                "Arena arena;",
                self.start(),
                "int64_t offset = 0;",
                CppFunction(self.program, function).text(),
                "return 0;",
            ),
            *self.function(
                "int DecodeImpl(const CompllDecodeCall& call)",
                block(
                    "for (int64_t k = 0; k < call.count; ++k)",
                    f"if (DecodeOne{self.chosen()}(call, PartOf(call, k)) != 0) return -1;",
                ),
                "return 0;",
            ),
        ]

    def dense_decode(self, function: Function) -> list[str]:
        """Return a decoder that adds all payloads in one pass."""
        if self.exact:
            head = "int DecodeImpl(const CompllDecodeCall& call)"
            return self.function(head, "return UnpackFloats(call);")
        struct, parse, loop = write_dense(self.program, function)
        parsed = f"Parse{self.chosen()}(call, PartOf(call, k), arena, all + k)"
        return [
            *struct,
            *self.function(
                "int Parse(const CompllDecodeCall& call, const DecodePart& part, Arena& arena, "
                "Fields* fields)",
                self.start(),
                "int64_t offset = 0;",
                parse,
                "(void)arena, (void)fields;",
                "return 0;",
            ),
            *self.function(
                "int DecodeImpl(const CompllDecodeCall& call)",
                "Arena arena;",
                self.start(),
                "Fields few[8];",
                "Fields* const all = call.count <= 8 ? few : arena.Get<Fields>(call.count);",
                block(
                    "for (int64_t k = 0; k < call.count; ++k)",
                    f"if ({parsed} != 0) return -1;",
                ),
                "if (call.check_only) return 0;",
                loop,
                "return 0;",
            ),
        ]

    def decode_entry(self) -> list[str]:
        bad = 'return Fail(*call, "has a parameter that is not allowed");'
        head = "int Decode(const CompllDecodeCall* call)"
        return [*block(head, self.dispatch("DecodeImpl", bad)), ""]

    def dispatch(
        self,
        name: str,
        bad: str,
        variants: list[tuple[str, str]] | None = None,
        left: list[Param] | None = None,
        chosen: tuple[str, ...] = (),
    ) -> list[str]:
        """Call the instantiation for the static parameters' values, and for a variant."""
        left = self.statics if left is None else left
        if left:
            position = self.program.params.index(left[0])
            cases = [
                block(
                    f"case {choice}:",
                    self.dispatch(name, bad, variants, left[1:], (*chosen, str(choice))),
                )
                for choice in left[0].choices
            ]
            return [*block(f"switch (static_cast<int>(call->params[{position}]))", cases), bad]
        lines = []
        for condition, which in variants or [("", "")]:
            arguments = ", ".join(filter(None, (*chosen, which)))
            call = f"return {name}{f'<{arguments}>' if arguments else ''}(*call);"
            lines.append(f"if ({condition}) {call}" if condition else call)
        return lines

    def granularity(self) -> list[str]:
        grains = [
            str(max(vector.multiple, 8))
            for function in self.program.functions
            for vector in function.vectors.values()
            if vector.packed and vector.kind in ("temp", "field")
        ]
        grains += [
            f"p_{param.name}"
            for param in self.program.params
            if param.multiple % 64 == 0 and param.multiple > 1
        ]
        grains += [
            known(instr.args[0])
            for function in self.program.functions
            for instr in operations(function, "dct", "idct")
        ]
        lines = [f"grain = std::max<int64_t>(grain, {grain});" for grain in grains]
        head = "int64_t Granularity(const double* params)"
        return self.of_params(head, "int64_t grain = 1;", lines, "return grain;")

    def for_sum(self) -> list[str]:
        lines = []
        for position, param in enumerate(self.program.params):
            if isinstance(param.for_sum, Block):
                body = scalar_lines(param.for_sum.body, param.for_sum.result)
                lines += block(f"out[{position}] = [&]", body, end="}();")
            else:
                lines.append(f"out[{position}] = params[{position}];")
        return [
            *block(
                "void ForSum(const double* params, int64_t p_count, double* out)",
                "(void)params, (void)p_count, (void)out;",
                param_lines(self.program),
                lines,
            ),
            "",
        ]

    # The table ----------------------------------------------------------------------

    def param_row(self, param: Param) -> str:
        """Return a parameter's row of the table."""
        low = float("-inf") if param.low is None else float(param.low)
        high = float("inf") if param.high is None else float(param.high)
        default = 0.0 if param.default is None else float(param.default)
        fields = [
            *map(quoted, (param.name, param.type, param.doc, param.allowed())),
            int(param.default is not None),
            literal(default, "f64"),
            len(param.choices or ()),
            f"kChoices_{param.name}" if param.choices else "nullptr",
            literal(low, "f64"),
            literal(high, "f64"),
            int(param.low_open),
            int(param.high_open),
            param.multiple,
        ]
        return "{" + ", ".join(map(str, fields)) + "},"

    def table(self) -> list[str]:
        program, lines = self.program, []
        for param in program.params:
            if param.choices:
                values = ", ".join(literal(float(c), "f64") for c in param.choices)
                lines.append(f"const double kChoices_{param.name}[] = {{{values}}};")
        if program.params:
            rows = map(self.param_row, program.params)
            lines += block("const CompllParam kParams[] =", list(rows), end="};")
        if program.states:
            listed = ", ".join(map(quoted, program.states))
            lines.append(f"const char* const kStates[] = {{{listed}}};")
        residual = program.states.index("residual") if "residual" in program.states else -1

        def pointer(name: str, there: object) -> str:
            return name if there else "nullptr"

        params, states = pointer("kParams", program.params), pointer("kStates", program.states)
        encode, decode = pointer("Encode", program.encode), pointer("Decode", program.decode)
        fields = [
            f"COMPLL_ABI_VERSION, {quoted(program.name)}, {quoted(program.digest)},",
            f"{quoted(program.summary)},",
            f"{len(program.params)}, {params}, {len(program.states)},",
            f"{states}, {residual}, {is_fixed(program)}, {int(program.uses_step)},",
            f"Granularity, MaxBytes, UsedStates, {encode},",
            f"{decode},",
            f"{pointer('Settle', self.lazy)},",
            f"{int(self.dense)}, ForSum, {int(self.exact)},",
        ]
        return [*lines, "const CompllAlgorithm kAlgorithm = {", *indent(fields), "};", ""]
