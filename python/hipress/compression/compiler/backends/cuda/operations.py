"""CUDA of operations on whole vectors and of payload fields, as steps (sparse.cuh, packing.cuh)."""

from __future__ import annotations

from collections.abc import Callable

from hipress.compression.compiler.backends.common.emitter import COUNTS, FIELD
from hipress.compression.compiler.backends.common.expressions import ELEMENT
from hipress.compression.compiler.backends.cuda.context import CudaContext, for_each
from hipress.compression.compiler.compiler_errors import CompileError
from hipress.compression.compiler.ir.ir import FIELD_BYTES, Instr
from hipress.compression.compiler.passes.analyses import only_elements

_BITS_EACH = 32 * 8192
# Numbers that every thread computes, and statements that read the payload.
_NUMBERS = {
    "step": "static_cast<int64_t>(call.step)",
    **COUNTS,
    "end_of_payload": "reader.End();",
}


class CudaOperations(CudaContext):
    """Writers of operations, which add to the steps."""

    # Numbers and payload fields -----------------------------------------------------------

    def number_text(self, instr: Instr) -> str:
        """Return the number that every thread computes, or the statement that reads a field."""
        op = instr.op
        if op in _NUMBERS:
            return self.fill(_NUMBERS[op], instr)
        if op == "field":
            return f"reader.Field<{FIELD[instr.attrs['elem']]}>()"
        if op == "field_vector":
            field = f"f_{self.plain(instr.vec[0])}"
            zeros = f" reader.Zeros({field}, {{n0}});" if "zeros" in instr.attrs else ""
            text = f"const uint8_t* const {field} = reader.Take({{b0}});{zeros}"
            return self.fill(text, instr)
        if op == "require":
            number = self.function.operations("require").index(instr)
            return f"reader.Require({self.value(instr.args[0])}, {number});"
        return self.expression(instr)

    def _write_field(self, instr: Instr) -> None:
        """Do nothing here: every step reads it; see number_text()."""

    _write_field_vector = _write_field

    def _write_end_of_payload(self, instr: Instr) -> None:
        """Check all indices of the payload, if the decoder scatters, before it writes."""
        fields = [name for name in self.unproven if self.is_field(name)]
        if fields:
            self.check_indices(fields)

    def _write_require(self, instr: Instr) -> None:
        if not self.everywhere(instr.args[0]):
            raise CompileError("for CUDA, require can only look at numbers of the payload")

    def _write_emit(self, instr: Instr) -> None:
        if not self.steps:
            self.new_step()
        fields = instr.attrs["fields"]
        vectors = [what for kind, what in fields if kind == "vector"]
        for name in vectors:
            if name not in self.placed:
                self.copy(name)
        used = [*instr.args, *(self.count(name) for name in vectors)]
        last = self.steps[-1].defines
        late = any(not self.everywhere(number) and number.id in last for number in used)
        lines = ["int64_t offset = 0;"]
        for kind, what in fields:
            if kind == "vector":
                lines.append(f"offset += {self.bytes_of(what)};")
                continue
            bits = f"FieldBits(static_cast<{FIELD[kind]}>({self.value(instr.args[what])}))"
            size = FIELD_BYTES[kind]
            lines.append(f"WriteBytes<{size}>(call.payload + offset, {bits}, {size});")
            lines.append(f"offset += {size};")
        lines.append("*call.bytes = offset;")
        (self.current.serial if late else self.current.first).extend(lines)

    def copy(self, name: str) -> None:
        """Add a step that copies a vector from the workspace, or a state, into the payload."""
        vector = self.function.vectors[name]
        step = self.new_step(vector.size)
        to = f"call.payload + {self.field_offset(name, '0')}"
        if vector.packed or vector.bits != 32:
            source = f"reinterpret_cast<const uint8_t*>({self.memory(name)})[j]"
            count, write = self.bytes_of(name), f"({to})[j] = {source};"
        else:
            write = f"Write<{ELEMENT[vector.elem]}>({to}, j, {self.memory(name)}[j]);"
            count = self.size(name)
        step.body.append(for_each(count, "j", write))

    # Elements -----------------------------------------------------------------------------

    def select(self, instr: Instr, source: str, rank: str) -> str:
        """Write three steps that find the `rank`-th largest value; return the state's name."""
        state, size = f"control.selection{self.selections}", self.count(source)
        self.selections += 1
        for digit in range(3):
            step = self.new_step(size)
            call = f"team, shared, {self.memory(source)}, {self.value(size)}, &{state}"
            step.body.append(f"CountDigit<{digit}>({call});")
            step.joins.append(f"PickDigit<{digit}>(shared, {self.fill(rank, instr)}, &{state});")
        return state

    def _write_topk(self, instr: Instr) -> None:
        size, count = self.count(instr.vec[1]), self.fill(COUNTS["topk"], instr)
        if not self.everywhere(instr):
            self.define(instr, count)
        state = self.select(instr, instr.vec[1], "{value}")
        step = self.add_step(instr, size, f"CountChosen(team, shared, {{v1}}, &{state})")
        step.joins.append(f"ScanChosen(team, shared, &{state});")
        self.add_step(instr, size, f"WriteChosen(team, shared, {{v1}}, &{state}, {{m0}})", True)

    def _write_sort(self, instr: Instr) -> None:
        target, source = instr.vec
        if only_elements(self.function, instr):
            self.unsorted[target] = source
            return
        size = self.count(source)
        number, bound = self.number(instr), self.bound(size)
        keys = [self.scratch(f"keys{number}_{k}", "uint32_t", f"{bound} * 4") for k in range(2)]
        counts = self.scratch(f"digits{number}", "uint32_t", "kDigits * kSortBlocks * 4")
        scan = f"ScanArray(shared, {counts}, int64_t(kDigits) * team.Blocks());"

        def each(statement: Callable[[], str], allocate: bool = False) -> None:
            step = self.new_step(size)
            if allocate:
                self.allocate(target)
            count = self.value(size)
            step.body.append(for_each(count, "i", f"{statement()};"))

        each(lambda: f"{keys[0]}[i] = Ordered({self.get(source, 'i')})")
        for digit in range(4):
            one, two = keys[digit % 2], keys[(digit + 1) % 2]
            call = f"team, shared, {one}, {{size}}, {8 * digit}, {counts}"
            count = self.add_step(instr, size, f"CountSortDigit({call})")
            count.joins.append(scan)
            move = self.add_step(instr, size, f"MoveSortDigit({call}, {two})")
            count.most_blocks = move.most_blocks = "kSortBlocks"
        each(lambda: self.put(target, "i", f"FromOrdered({keys[0]}[i])"), allocate=True)

    def _write_element(self, instr: Instr) -> None:
        source = self.unsorted.get(instr.vec[0])
        text = self.fill("Element({v0}, {a0})", instr)
        if source is not None:
            # The value with `at` smaller ones is the (size - at)-th largest: no need to sort.
            chosen = self.select(instr, source, "{n0} - Clip({a0}, {n0} - 1)")
            text = f"{{n0}} > 0 ? FromOrdered({chosen}.prefix) : 0.0f"
        self.define(instr, self.fill(text, instr))

    def _write_dct(self, instr: Instr) -> None:
        inverse = "true" if instr.op == "idct" else "false"
        text = f"Cosines<{inverse}>(team, shared, {{v1}}, {{a0}}, kCosines, {{m0}})"
        self.add_step(instr, self.count(instr.vec[1]), text, True)

    _write_idct = _write_dct

    def _write_random_indices(self, instr: Instr) -> None:
        run, site = instr.attrs["run"], instr.attrs["site"]
        step = self.new_step(instr)
        step.key = True
        self.allocate(instr.vec[0])
        strata = "ForStrata" if run == 1 else f"ForRuns<{run}>"
        put = self.put(instr.vec[0], "j", "static_cast<int32_t>(index)")
        call = self.fill(f"{strata}(team, Clip({{a0}}, n), {{value}}, key, {site}, ", instr)
        step.body.append(f"{call}[&](int64_t j, int64_t index) {{ {put}; }});")

    def _write_scatter(self, instr: Instr) -> None:
        target, index = instr.vec[:2]
        step = self.current
        if step.scatters != index:  # otherwise one pass over the indices for all states
            step = self.new_step(self.count(index))
            step.scatters = index
        if len(instr.vec) > 2:
            value = self.get(instr.vec[2], "j")
        else:
            value = self.value(instr.args[0])
        place = self.get(target, "i")
        there = " && ".join(filter(None, ("i >= 0 && i < n", self.kept(target))))
        if self.is_output(target):
            value = f"add ? {place} + {value} : {value}"
        step.body += [
            f"ForEach(team, {self.size(index)}, [&](int64_t j) {{",
            f"  const int64_t i = static_cast<int64_t>({self.get(index, 'j')});",
            f"  if ({there}) {self.put(target, 'i', value)};",
            "});",
        ]

    # Bits under masks -----------------------------------------------------------------------

    def counts_array(self, instr: Instr) -> str:
        """Return new memory for a number of each block."""
        return self.scratch(f"counts{self.number(instr)}", "uint32_t", "kMaxBlocks * 4")

    def count_bits(self, instr: Instr, mask: int, words: str) -> str:
        """Write a count of bits of vector `mask`. Return the array of what precedes each block."""
        counts = self.counts_array(instr)
        text = f"CountBits(team, shared, {words}, {{n{mask}}}, {counts})"
        self.add_step(instr, self.count(instr.vec[mask]), text, each=_BITS_EACH)
        self.define(instr, f"ScanArray(shared, {counts}, team.Blocks())", joined=True)
        return counts

    def _write_compact(self, instr: Instr) -> None:
        counts = self.count_bits(instr, 1, "MaskWords{{v1}}")
        text = (
            f"WriteBits(team, shared, MaskWords{{{{v1}}}}, {{size}}, {counts}, "
            "[&](int64_t j, int64_t i) { {m0}[j] = static_cast<int32_t>(i); })"
        )
        self.add_step(instr, self.count(instr.vec[1]), text, True, _BITS_EACH)

    def _write_pack_where(self, instr: Instr) -> None:
        counts = self.count_bits(instr, 2, "MaskWords{{v2}}")
        self.allocate(instr.vec[0])
        self.current.body.append(self.clear_words(instr, "Blocks({n2}, 32)"))
        words = "MaskWords{{v1}}, MaskWords{{v2}}"
        text = f"PackWhere(team, shared, {words}, {{size}}, {counts}, {{m0}})"
        self.add_step(instr, self.count(instr.vec[2]), text, each=_BITS_EACH)

    def _write_count_where(self, instr: Instr) -> None:
        self.counts[instr.id] = self.count_bits(instr, 0, "PayloadWords{{m0}, {b0}}")
        self.current.counts = True

    def _write_unpack_where(self, instr: Instr) -> None:
        counts = self.counts[self.count(instr.vec[1]).id]
        words = "PayloadWords{{m1}, {b1}}, PayloadWords{{m2}, {b2}}"
        text = f"UnpackWhere(team, shared, {words}, {{n2}}, {counts}, {{m0}})"
        self.add_step(instr, self.count(instr.vec[2]), text, True, _BITS_EACH)

    def clear_words(self, instr: Instr, count: str) -> str:
        """Return a statement that clears words of vector 0."""
        write = "reinterpret_cast<uint32_t*>({m0})[w] = 0;"
        return self.fill(for_each(count, "w", write), instr)

    # Packed indices -------------------------------------------------------------------------

    def _write_pack_ascending(self, instr: Instr) -> None:
        if not self.everywhere(instr):
            self.define(instr, self.fill(COUNTS["pack_ascending"], instr))
        self.pack_indices(instr, "{value}", "PackAscending(team, {v1}, n, {m0})")

    def pack_indices(self, instr: Instr, size: str, text: str) -> None:
        """Write two steps, which clear the `size` bytes of the target and pack indices into it."""
        count = self.count(instr.vec[1])
        step = self.new_step(count)
        self.allocate(instr.vec[0])
        step.body.append(self.clear_words(instr, f"Blocks({size}, 4)"))
        self.add_step(instr, count, text)

    def _write_unpack_ascending(self, instr: Instr) -> None:
        target, size = instr.vec[0], self.count(instr.vec[0])
        counts = self.counts_array(instr)
        arguments = f"team, shared, {{m1}}, {{size}}, n, {counts}"
        step = self.add_step(instr, size, f"CountAscending({arguments})")
        step.joins.append(f"const int64_t found = ScanArray(shared, {counts}, team.Blocks());")
        self.verdict(f"found != {self.value(size)}")
        self.add_step(instr, size, f"UnpackAscending({arguments}, {{m0}})", True)
        self.check_indices([target])

    def gap_array(self, what: str, instr: Instr, index: str, elem: str) -> str:
        """Return a number of each block of gaps."""
        bytes_ = f"GapBlocks({self.bound(self.count(index))}) * sizeof({elem})"
        return self.scratch(f"{what}{self.number(instr)}", elem, bytes_)

    def _write_gaps_bytes(self, instr: Instr) -> None:
        """Write the number of bytes of gaps, and each block's choice and the sum before it."""
        index = instr.vec[0]
        lows, zeros = (self.gap_array(n, instr, index, "uint32_t") for n in ("lows", "zeros"))
        choices = self.gap_array("choices", instr, index, "uint8_t")
        self.gaps[instr.id] = arrays = f"{choices}, {lows}, {zeros}"
        self.add_step(instr, self.count(index), f"ChooseGaps(team, {{v0}}, n, {arrays})")
        text = f"GapsBytes(shared, {{n0}}, {lows}, {zeros})"
        self.define(instr, self.fill(text, instr), joined=True)

    def _write_pack_gaps(self, instr: Instr) -> None:
        arrays = self.gaps[instr.args[0].id]
        self.pack_indices(instr, "{a0}", f"PackGaps(team, {{v1}}, n, {arrays}, {{m0}})")

    def _write_unpack_gaps(self, instr: Instr) -> None:
        target, size, number = instr.vec[0], self.count(instr.vec[0]), self.number(instr)
        lows = self.gap_array("lows", instr, target, "uint32_t")
        counts = self.counts_array(instr)
        stops = self.scratch(f"stops{number}", "uint32_t", f"{self.bound(size)} * 4")
        sums = self.scratch(f"sums{number}", "int64_t", "kMaxBlocks * 8")
        bits = self.scratch(f"bits{number}", "int64_t", "8")
        about = "{m1}, {b1}, {size}, n"

        def step(text: str, scan: str, good: str) -> None:
            one = self.add_step(instr, size, text)
            one.joins.append(self.fill(f"const int64_t found = {scan};", instr))
            self.verdict(f"!({self.fill(good, instr)})")

        step(
            f"SumLows(team, {about}, {lows})",
            f"LowestBits(shared, {{b1}}, {{n0}}, {lows})",
            "GoodParts({m1}, {b1}, {n0}, n, found)",
        )
        self.current.serial.append(f"{bits}[0] = found;")
        about += f", {bits}[0]"
        step(
            f"CountGaps(team, shared, {about}, {counts})",
            f"ScanArray(shared, {counts}, team.Blocks())",
            "found == {n0}",
        )
        self.add_step(instr, size, f"FindGaps(team, shared, {about}, {counts}, {stops})")
        about += f", {lows}, {stops}, {sums}"
        scan = f"ScanArray(shared, {sums}, team.Blocks())"
        step(f"SumGaps(team, shared, {about})", scan, "found <= n")
        self.add_step(instr, size, f"UnpackGaps(team, shared, {about}, {{m0}})", True)

    # Floats with all their bits ---------------------------------------------------------------

    def _write_pack_floats(self, instr: Instr) -> None:
        size = self.count(instr.vec[1])
        number, blocks = self.number(instr), "FloatBlocks(n)"
        kept = self.scratch(f"kept{number}", "uint32_t", "n * 4")
        sizes = self.scratch(f"sizes{number}", "int64_t", f"{blocks} * 8")
        self.add_step(instr, size, f"PlanFloats(team, shared, call, {kept}, {sizes})")
        total = f"TableBytes({blocks}) + ScanArray(shared, {sizes}, {blocks})"
        self.define(instr, total, joined=True)
        self.add_step(instr, size, f"WriteFloats(team, call, {kept}, {sizes})")
        self.placed.add(instr.vec[0])

    def _write_unpack_floats(self, instr: Instr) -> None:
        size, blocks = self.count(instr.vec[0]), "FloatBlocks(n)"
        sizes = self.scratch(f"sizes{self.number(instr)}", "int64_t", f"{blocks} * 8")
        arguments = f"team, call, {sizes}, &control.disorder"
        step = self.add_step(instr, size, f"MeasureFloats({arguments})")
        step.joins.append(f"const int64_t found = ScanArray(shared, {sizes}, {blocks});")
        step.serial.append("control.bad = JudgeFloats(call, found, control.disorder);")
        step = self.add_step(instr, size, f"CheckFloats({arguments})")
        step.serial.append("control.bad = JudgeCounts(call, control.disorder);")
        self.add_step(instr, size, f"UnpackFloats(team, call, {sizes}, add)")
