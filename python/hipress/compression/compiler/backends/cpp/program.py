"""The C++ backend: a program as one source file on the headers of src/operator/contrib/compll."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.emitter import block, code, indent, quoted
from hipress.compression.compiler.backends.common.expressions import known, literal
from hipress.compression.compiler.backends.common.source import (
    cosine_table,
    is_fixed,
    max_bytes,
    param_lines,
    philox_key,
    scalar_lines,
    source_file,
    transforms,
)
from hipress.compression.compiler.backends.cpp.context import CppContext
from hipress.compression.compiler.backends.cpp.dense import write_dense
from hipress.compression.compiler.backends.cpp.loop import (
    BucketLoop,
    CandidatesLoop,
    CppLoop,
    blocks,
    lazy_variants,
    settle_function,
    unless_all,
    write_floor,
)
from hipress.compression.compiler.ir.ir import (
    Block,
    Function,
    Instr,
    Loop,
    Program,
    ProgramParam,
    backward,
)
from hipress.compression.compiler.passes.analyses import (
    bucket_group,
    bucket_of,
    is_dense,
    lazy_state,
)

ENTRY = "hipress_compll_algorithm"


def generate(program: Program, entry: str = ENTRY) -> str:
    """Return the source file of an optimized program, whose one exported function is `entry`.

    Raises:
        CompileError: If a payload's size has no bound that follows from n and the parameters.
    """
    return _ProgramWriter(program).text(entry)


class CppFunction(CppContext):
    """Writer of the body of one encode or decode; see CppContext for the arguments."""

    loops = 0
    """Number of the loops so far."""

    def text(self) -> list[str]:
        """Return the lines of the function's body."""
        if self.is_decode:
            self.pointers[self.function.output] = "part.out"
        else:
            for position, name in enumerate(self.program.states):
                self.state(name, position)
        self.write()
        return self.lines

    def state(self, name: str, position: int) -> None:
        """Declare where a state is read and written."""
        target = f"state_{name}"
        self.lines.append(f"float* const {target} = call.states[{position}];")
        before = f"call.before[{position}]"
        if self.renewals[name] is None:
            self.pointers[name] = target
            copy = f"std::memcpy({target}, {before}, static_cast<size_t>(n) * sizeof(float));"
            self.lines.append(f"if ({target} != {before}) {copy}")
            return
        pointer = self.pointers[name] = f"before_{name}"
        self.lines.append(f"const float* const {pointer} = {before};")
        if name in self.final:
            self.lines.append(f"const bool separate_{name} = IsSeparate({pointer}, {target}, n);")
        if self.has(name):
            self.lines.append(f"(void){target}, (void){pointer};")

    def node(self, position: int) -> int:
        """Write the node at a position, or a group of passes over buckets."""
        node = self.function.body[position]
        group = bucket_group(self.function, position) if isinstance(node, Loop) else None
        if group is None:
            return super().node(position)
        self.buckets(group)
        return len(group)

    def allocate_written(self, loop: Loop) -> None:
        """Allocate the results of a loop, except those that only a filter or topk reads."""
        for name in sorted(loop.writes):
            if name in self.ranked:
                write_floor(self, self.ranked[name], self.loops)
            elif name not in self.pointers and name not in self.filters:
                self.allocate(name)

    def buckets(self, group: list) -> None:
        """Write a group of nodes as one pass over buckets."""
        loops = [node for node in group if isinstance(node, Loop)]
        for node in group:
            if isinstance(node, Instr):
                self.instr(node)
        for loop in loops:
            for name in sorted(loop.writes):
                if name not in self.pointers:
                    self.allocate(name)
        *others, final = loops
        writers = []
        for number, loop in enumerate(others):
            kind = CppLoop if loop.domain is final.domain else BucketLoop
            writers.append(kind(self, loop, self.loops + number))
            self.pointers = self.after(loop)
        next_block = f"group{self.loops} * {self.value(bucket_of(final))}"
        writers.append(CppLoop(self, final, self.loops + len(others), next_block))
        self.pointers = self.after(final)
        self.loops += len(loops)
        self.lines += blocks(writers, writers[0].domain)

    def loop(self, loop: Loop) -> None:
        """Write a loop."""
        deferred = self.lazy
        if deferred is not None and loop is deferred.last:
            for number, instr in enumerate(deferred.uniforms):
                self.lines.append(f"call.lazy_values[{number}] = {self.value(instr)};")
            self.lines.append("call.lazy = 1;")
            return
        self.allocate_written(loop)
        ranked = [self.ranked[name] for name in sorted(loop.writes & set(self.ranked))]
        writer = (CandidatesLoop if ranked else CppLoop)(self, loop, self.loops)
        lines = writer.lines()
        self.pointers = self.after(loop)
        self.loops += 2 if ranked else 1
        self.known |= {instr.id for instr in loop.results}
        for one in ranked:
            lines = unless_all(self, one, lines)
        if self.is_decode and self.function.output in loop.writes:
            skip = "call.check_only" + (" || part.add" if self.sparse_output else "")
            lines = block(f"if (!({skip}))", lines)
        self.lines += lines


class _ProgramWriter:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.static_params = [param for param in program.params if param.static]
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
            cosine_table(program, "const float"),
            max_bytes(program),
            self.granularity(),
            self.used_states(),
        ]
        if program.encode is not None:
            parts.append(self.encode(program.encode))
        if self.lazy is not None:
            parts.append(settle_function(self.lazy))
        if program.decode is not None:
            bad = 'return Fail(*call, "has a parameter that is not allowed");'
            entry_body = self.dispatch("DecodeImpl", bad)
            head = "int Decode(const CompllDecodeCall* call)"
            parts += [self.decode(program.decode), block(head, entry_body), ""]
        parts += [self.for_sum(), self.table()]
        includes = ["indices.h"]
        includes += ["floats.h"] if self.exact else []
        includes += ["cosines.h"] if transforms(program) else []
        return source_file(program, includes, parts, "CompllAlgorithm", entry)

    # Functions ----------------------------------------------------------------------

    def template(self, *more: str) -> list[str]:
        """Return the head of a template of the static parameters and `more`, if there are any."""
        arguments = [*(f"int {param.name}" for param in self.static_params), *more]
        return [f"template <{', '.join(arguments)}>"] if arguments else []

    def of_params(self, head: str, *body: object) -> list[str]:
        """Return a function of the parameters alone, as they are given."""
        return [*block(head, "(void)params;", param_lines(self.program), *body), ""]

    def chosen(self) -> str:
        """Return the template arguments inside of a template."""
        names = ", ".join(param.name for param in self.static_params)
        return f"<{names}>" if names else ""

    def start(self) -> list[str]:
        return [
            "const int64_t n = call.n;",
            "const double* const params = call.params;",
            "(void)n, (void)params;",
            *param_lines(self.program, static=True),
        ]

    def encode(self, function: Function) -> list[str]:
        has = [f"bool kHas_{name}" for name in self.optional]
        lazy = ["int kLazy"] if self.lazy is not None else []
        return code(
            """
            $template
            int64_t EncodeImpl(CompllEncodeCall& call) {
              Arena arena;
              $start
              const PhiloxKey key = $key;
              (void)key;
              $body
              return offset;
            }

            int64_t Encode(CompllEncodeCall* call) {
              $used
              $dispatch
            }

            """,
            self,
            template=self.template(*has, *lazy),
            key=philox_key(self.program),
            body=CppFunction(self.program, function, self.lazy).text(),
            used=["const int64_t used = UsedStates(call->params);"] if self.optional else [],
            dispatch=self.dispatch("EncodeImpl", "return -1;", self.variants()),
        )

    def variants(self) -> list[tuple[str, str]] | None:
        """Return conditions on an encode, with template arguments. The first that holds counts."""
        found = lazy_variants(self.lazy) if self.lazy is not None else [("", "")]
        for name in reversed(self.optional):
            used = f"(used >> {self.program.states.index(name)} & 1) != 0"
            found = [
                (" && ".join(filter(None, (here, there))), ", ".join(filter(None, (has, which))))
                for here, has in ((used, "true"), ("", "false"))
                for there, which in found
            ]
        return None if found == [("", "")] else found

    def used_states(self) -> list[str]:
        """Return a function for the states that parameters need, as bits, which are allocated."""
        lines = [f"int64_t used = {(1 << len(self.program.states)) - 1};"]
        for name, needs in self.optional.items():
            bit = 1 << self.program.states.index(name)
            result = scalar_lines(backward(needs, self.program.encode.scalars), needs)
            lines += block("if (![&]", result, end=f"}}()) used &= ~int64_t({bit});")
        return self.of_params("int64_t UsedStates(const double* params)", lines, "return used;")

    def decode(self, function: Function) -> list[str]:
        """Return a decoder that adds one payload after the other."""
        if self.exact:
            return code(
                """
                $template
                int DecodeImpl(const CompllDecodeCall& call) {
                  return UnpackFloats(call);
                }

                """,
                self,
            )
        if self.dense:
            return self.dense_decode(function)
        return code(
            """
            $template
            int DecodeOne(const CompllDecodeCall& call, const DecodePart& part) {
              Arena arena;
              $start
              int64_t offset = 0;
              $body
              return 0;
            }

            $template
            int DecodeImpl(const CompllDecodeCall& call) {
              for (int64_t k = 0; k < call.count; ++k) {
                if (DecodeOne$chosen(call, PartOf(call, k)) != 0) return -1;
              }
              return 0;
            }

            """,
            self,
            body=CppFunction(self.program, function).text(),
        )

    def dense_decode(self, function: Function) -> list[str]:
        """Return a decoder that adds all payloads in one pass."""
        struct, parse, loop = write_dense(self.program, function)
        return code(
            """
            $struct
            $template
            int Parse(const CompllDecodeCall& call, const DecodePart& part, $arena) {
              $start
              int64_t offset = 0;
              $parse
              (void)arena, (void)fields;
              return 0;
            }

            $template
            int DecodeImpl(const CompllDecodeCall& call) {
              Arena arena;
              $start
              Fields few[8];
              Fields* const all = call.count <= 8 ? few : arena.Get<Fields>(call.count);
              for (int64_t k = 0; k < call.count; ++k) {
                if (Parse$chosen(call, PartOf(call, k), arena, all + k) != 0) return -1;
              }
              if (call.check_only) return 0;
              $loop
              return 0;
            }

            """,
            self,
            struct=struct,
            arena="Arena& arena, Fields* fields",
            parse=parse,
            loop=loop,
        )

    def dispatch(
        self,
        name: str,
        bad: str,
        variants: list[tuple[str, str]] | None = None,
        left: list[ProgramParam] | None = None,
        chosen: tuple[str, ...] = (),
    ) -> list[str]:
        """Call the instantiation for the static parameters' values, and for a variant."""
        left = self.static_params if left is None else left
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
        grains += [known(instr.args[0]) for instr in self.program.operations("dct", "idct")]
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
        head = "void ForSum(const double* params, int64_t p_count, double* out)"
        unused = "(void)params, (void)p_count, (void)out;"
        return [*block(head, unused, param_lines(self.program), lines), ""]

    # The table ----------------------------------------------------------------------

    def param_row(self, param: ProgramParam) -> str:
        """Return a parameter's row of the table."""
        default = 0.0 if param.default is None else float(param.default)
        fields = [
            *map(quoted, (param.name, param.type, param.doc, param.allowed())),
            int(param.default is not None),
            literal(default, "f64"),
            len(param.choices or ()),
            f"kChoices_{param.name}" if param.choices else "nullptr",
            literal(float(param.low), "f64"),
            literal(float(param.high), "f64"),
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
