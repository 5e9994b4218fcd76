"""CUDA of operations on whole vectors and of payload fields, as steps (sparse.cuh, payload.cuh)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hipress.compll.backends.cuda.expressions import FIELD, FIELD_BYTES, TYPES
from hipress.compll.errors import CompileError
from hipress.compll.ir.ir import Instr, Loop, node_reads, node_writes

if TYPE_CHECKING:
    from hipress.compll.backends.cuda.function import FunctionWriter


class VectorWriter:
    """Adds steps to a function's writer."""

    def __init__(self, owner: FunctionWriter) -> None:
        self.owner = owner
        function = owner.function
        scatters = [n for n in function.body if isinstance(n, Instr) and n.op == "scatter"]
        self.checked = sorted({
            n.vec[1] for n in scatters if function.vectors[n.vec[1]].kind == "field"
        })  # fmt: skip
        self.checks = bool(self.checked) or any(
            node.op in ("unpack_ascending", "count_where") for node in owner.instrs.values()
        )
        self.sparse_output = any(n.vec[0] == function.output for n in scatters)
        self.requires = [n for n in owner.instrs.values() if n.op == "require"]
        self.lazy: dict[str, str] = {}
        self.counts: dict[int, str] = {}
        whole = ("compact", "topk", "sort", "random_indices", "element", "pack_ascending",
                 "pack_where", "unpack_where")  # fmt: skip
        self.whole = {
            name for n in function.body if isinstance(n, Instr) and n.op in whole for name in n.vec
        }  # these want their vectors aligned, in memory of their own

    def everywhere(self, instr: Instr) -> str | None:
        """Text of a number that every thread computes, or a statement; None for operators."""
        owner, name = self.owner, f"{instr.op}"
        if instr.op == "step":
            return "static_cast<int64_t>(call.step)"
        if instr.op == "topk":
            return f"Clip({owner.value(instr.args[0])}, {owner.size(instr.vec[1])})"
        if instr.op == "random_indices":
            size = f"Clip({owner.value(instr.args[0])}, n)"
            return f"Clip({owner.value(instr.args[1])}, {size})"
        if instr.op == "pack_ascending":
            return f"AscendingBytes({owner.size(instr.vec[1])}, n)"
        if instr.op == "field":
            return f"reader.Field<{FIELD[instr.attrs['elem']]}>()"
        if instr.op == "field_vector":
            name = instr.vec[0]
            place = f"f_{owner.plain(name)}"
            zeros = f" reader.Zeros({place}, {owner.size(name)});" if "zeros" in instr.attrs else ""
            return f"const uint8_t* const {place} = reader.Take({owner.bytes_of(name)});{zeros}"
        if instr.op == "end_of_payload":
            return "reader.End();"
        if instr.op == "require":
            return f"reader.Require({owner.value(instr.args[0])}, {self.requires.index(instr)});"
        return None

    # Numbers and payload fields ---------------------------------------------------------------

    def do_field(self, instr: Instr) -> None:
        """Read by every step: see FunctionWriter.prologue()."""

    do_field_vector = do_end_of_payload = do_field

    def do_require(self, instr: Instr) -> None:
        if not self.owner.everywhere(instr.args[0]):
            raise CompileError("for CUDA, require can only look at numbers of the payload")

    def check_indices(self) -> None:
        """A decoder that scatters looks at the whole payload's indices before it writes."""
        if self.checked:
            self.check_order(self.checked)

    def check_order(self, names: list[str]) -> None:
        """A step that looks whether indices ascend and are below n."""
        owner = self.owner
        step = owner.new_step(owner.function.vectors[names[0]].size)
        for name in names:
            c_type = "uint32_t" if owner.function.vectors[name].elem == "u32" else "int32_t"
            step.body.append(
                f"if (BadIndices(team, {owner.memory(name)}, {owner.size(name)}, n, {c_type}())) "
                "atomicOr(&control.disorder, 1u);"
            )
        step.serial += self.verdict("control.disorder != 0")

    def verdict(self, bad: str) -> list[str]:
        """What the last block says of the indices. No later step does anything if they are bad."""
        return [
            f"control.bad = {bad};",
            "call.status[0] = control.bad != 0 ? kBadIndices : kFine;",
            "call.status[1] = control.bad != 0 ? n : 0;",
        ]

    def do_element(self, instr: Instr) -> None:
        owner = self.owner
        name = instr.vec[0]
        at, size = owner.value(instr.args[0]), owner.size(name)
        source = self.lazy.get(name)
        if source is None:
            owner.define(instr, f"Element({owner.memory(name)}, {size}, {at})")
            return
        # The value with `at` smaller ones is the (size - at)-th largest: no need to sort.
        selection = self.select(
            source, owner.function.vectors[name].size,
            lambda: f"{owner.size(name)} - Clip({owner.value(instr.args[0])}, "
                    f"{owner.size(name)} - 1)",
        )  # fmt: skip
        owner.define(
            instr, f"{owner.size(name)} > 0 ? FromOrdered({selection}.prefix) : 0.0f"
        )

    # Ordered results ----------------------------------------------------------------------

    def do_compact(self, instr: Instr) -> None:
        owner = self.owner
        target, mask = instr.vec
        size = owner.function.vectors[mask].size
        counts = self.count(instr, mask, self.words)
        step = owner.new_step(size, 32 * 8192)
        owner.allocate(target)
        step.body.append(
            f"WriteBits(team, shared, {self.words(mask)}, {owner.value(size)}, {counts}, "
            f"[&](int64_t j, int64_t i) {{ {owner.memory(target)}[j] = static_cast<int32_t>(i); "
            "});"
        )

    def words(self, name: str) -> str:
        """Bits of a temp, for functions that take them 32 at a time."""
        return f"MaskWords{{{self.owner.memory(name)}, {self.owner.size(name)}}}"

    def payload_words(self, name: str) -> str:
        """The same of a field of the payload."""
        return f"PayloadWords{{{self.owner.memory(name)}, {self.owner.bytes_of(name)}}}"

    def count(self, instr: Instr, mask: str, words: Callable[[str], str]) -> str:
        """A step whose number is how many bits are set; what lies before each block's part."""
        owner = self.owner
        counts = owner.scratch(f"counts{owner.number(instr)}", "uint32_t", "kMaxBlocks * 4")
        step = owner.new_step(owner.function.vectors[mask].size, 32 * 8192)
        step.body.append(f"CountBits(team, shared, {words(mask)}, {owner.size(mask)}, {counts});")
        owner.define(instr, f"ScanArray(shared, {counts}, team.Blocks())", joined=True)
        return counts

    def do_pack_where(self, instr: Instr) -> None:
        owner = self.owner
        target, bits, mask = instr.vec
        size = owner.function.vectors[mask].size
        counts = self.count(instr, mask, self.words)
        owner.allocate(target)
        owner.current.body.append(
            f"ForEach(team, Blocks({owner.value(size)}, 32), [&](int64_t w) {{ "
            f"reinterpret_cast<uint32_t*>({owner.memory(target)})[w] = 0; }});"
        )
        step = owner.new_step(size, 32 * 8192)
        step.body.append(
            f"PackWhere(team, shared, {self.words(bits)}, {self.words(mask)}, {owner.value(size)}, "
            f"{counts}, {owner.memory(target)});"
        )

    def do_count_where(self, instr: Instr) -> None:
        self.counts[instr.id] = self.count(instr, instr.vec[0], self.payload_words)
        self.owner.current.counts = True

    def do_unpack_where(self, instr: Instr) -> None:
        owner = self.owner
        target, packed, mask = instr.vec
        vectors = owner.function.vectors
        step = owner.new_step(vectors[mask].size, 32 * 8192)
        owner.allocate(target)
        step.body.append(
            f"UnpackWhere(team, shared, {self.payload_words(packed)}, {self.payload_words(mask)}, "
            f"{owner.size(mask)}, {self.counts[vectors[packed].size.id]}, {owner.memory(target)});"
        )

    def do_pack_ascending(self, instr: Instr) -> None:
        owner = self.owner
        target, index = instr.vec
        count = owner.function.vectors[index].size
        if not owner.everywhere(instr):
            owner.define(instr, f"AscendingBytes({owner.value(count)}, n)")
        step = owner.new_step(count)
        owner.allocate(target)
        step.body.append(
            f"ForEach(team, Blocks({owner.value(instr)}, 4), [&](int64_t w) {{ "
            f"reinterpret_cast<uint32_t*>({owner.memory(target)})[w] = 0; }});"
        )
        step = owner.new_step(count)
        step.body.append(
            f"PackAscending(team, {owner.memory(index)}, {owner.value(count)}, n, "
            f"{owner.memory(target)});"
        )

    def do_unpack_ascending(self, instr: Instr) -> None:
        owner = self.owner
        target, data = instr.vec
        size = owner.function.vectors[target].size
        counts = owner.scratch(f"counts{owner.number(instr)}", "uint32_t", "kMaxBlocks * 4")
        arguments = f"team, shared, {owner.memory(data)}, {{}}, n, {counts}"
        step = owner.new_step(size)
        step.body.append(f"CountAscending({arguments.format(owner.value(size))});")
        step.joins.append(f"const int64_t found = ScanArray(shared, {counts}, team.Blocks());")
        step.serial += self.verdict(f"found != {owner.value(size)}")
        step = owner.new_step(size)
        owner.allocate(target)
        step.body.append(
            f"UnpackAscending({arguments.format(owner.value(size))}, {owner.memory(target)});"
        )
        self.check_order([target])

    def select(self, source: str, size: Instr, k: object) -> str:
        """Three steps that find the k-th largest value; the name of the state."""
        owner = self.owner
        state = f"control.selection{owner.selections}"
        owner.selections += 1
        for digit in range(3):
            step = owner.new_step(size)
            step.body.append(
                f"CountDigit<{digit}>(team, shared, {owner.memory(source)}, {owner.value(size)}, "
                f"&{state});"
            )
            step.joins.append(f"PickDigit<{digit}>(shared, {k()}, &{state});")
        return state

    def do_topk(self, instr: Instr) -> None:
        owner = self.owner
        target, source = instr.vec
        size = owner.function.vectors[source].size
        count = f"Clip({owner.value(instr.args[0])}, {owner.value(size)})"
        if not owner.everywhere(instr):
            owner.define(instr, count)
        state = self.select(source, size, lambda: owner.value(instr))
        step = owner.new_step(size)
        arguments = f"team, shared, {owner.memory(source)}, {owner.value(size)}, &{state}"
        step.body.append(f"CountChosen({arguments});")
        step.joins.append(f"ScanChosen(team, shared, &{state});")
        step = owner.new_step(size)
        owner.allocate(target)
        arguments = f"team, shared, {owner.memory(source)}, {owner.value(size)}, &{state}"
        step.body.append(f"WriteChosen({arguments}, {owner.memory(target)});")

    def do_sort(self, instr: Instr) -> None:
        owner = self.owner
        target, source = instr.vec
        if self.only_elements(instr):
            self.lazy[target] = source
            return
        size = owner.function.vectors[source].size
        number, bound = owner.number(instr), owner.bound(size)
        keys = [owner.scratch(f"keys{number}_{k}", "uint32_t", f"{bound} * 4") for k in range(2)]
        counts = owner.scratch(f"digits{number}", "uint32_t", "kDigits * kSortBlocks * 4")
        step = owner.new_step(size)
        step.body.append(
            f"ForEach(team, {owner.value(size)}, [&](int64_t i) {{ {keys[0]}[i] = "
            f"Ordered({owner.get(source, 'i')}); }});"
        )
        for digit in range(4):
            one, two = keys[digit % 2], keys[(digit + 1) % 2]
            for half in ("Count", "Move"):
                step = owner.new_step(size)
                step.most_blocks = "kSortBlocks"
                step.body.append(
                    f"{half}SortDigit(team, shared, {one}, {owner.value(size)}, {8 * digit}, "
                    f"{counts}{f', {two}' if half == 'Move' else ''});"
                )
                if half == "Count":
                    step.joins.append(
                        f"ScanArray(shared, {counts}, int64_t(kDigits) * team.Blocks());"
                    )
        step = owner.new_step(size)
        owner.allocate(target)
        value = owner.put(target, "i", f"FromOrdered({keys[0]}[i])")
        step.body.append(f"ForEach(team, {owner.value(size)}, [&](int64_t i) {{ {value}; }});")

    def only_elements(self, sort: Instr) -> bool:
        """True if single elements are all that is wanted of a sorted vector."""
        target, source = sort.vec
        body = self.owner.function.body
        after = body[body.index(sort) + 1 :]
        users = [node for node in body if target in node_reads(node)]
        if any(isinstance(node, Loop) or node.op != "element" for node in users):
            return False
        last = max((after.index(node) for node in users), default=0)
        return not any(source in node_writes(node) for node in after[:last])

    def do_random_indices(self, instr: Instr) -> None:
        owner = self.owner
        step = owner.new_step(instr)
        owner.use_key()
        target = instr.vec[0]
        owner.allocate(target)
        put = owner.put(target, "j", "static_cast<int32_t>(index)")
        run, size = instr.attrs["run"], owner.value(instr.args[0])
        strata = "ForStrata" if run == 1 else f"ForRuns<{run}>"
        step.body += [
            f"{strata}(team, Clip({size}, n), {owner.value(instr)}, key, "
            f"{instr.attrs['site']}, [&](int64_t j, int64_t index) {{ {put}; }});"
        ]

    def do_scatter(self, instr: Instr) -> None:
        owner = self.owner
        target, index = instr.vec[:2]
        vectors = owner.function.vectors
        previous = owner.current
        if previous.scatters == index:
            step = previous  # one pass over the indices for all states
        else:
            step = owner.new_step(vectors[index].size)
            step.scatters = index
        if len(instr.vec) > 2:
            value = owner.get(instr.vec[2], "j")
        else:
            value = owner.value(instr.args[0])
        output = owner.function.kind == "decode" and target == owner.function.output
        place = owner.get(target, "i")
        there = " && ".join(filter(None, ("i >= 0 && i < n", owner.kept(target))))
        if output:
            value = f"add ? {place} + {value} : {value}"
        step.body += [
            f"ForEach(team, {owner.size(index)}, [&](int64_t j) {{",
            f"  const int64_t i = static_cast<int64_t>({owner.get(index, 'j')});",
            f"  if ({there}) {owner.put(target, 'i', value)};",
            "});",
        ]

    # Payloads ----------------------------------------------------------------------

    def do_emit(self, instr: Instr) -> None:
        owner = self.owner
        if not owner.steps:
            owner.new_step()
        for kind, what in instr.attrs["fields"]:
            if kind == "vector" and what not in owner.placed:
                self.copy(what)
        used = list(instr.args)
        used += [owner.function.vectors[w].size for k, w in instr.attrs["fields"] if k == "vector"]
        late = not all(owner.known_before(number) for number in used)
        lines = ["int64_t offset = 0;"]
        for kind, what in instr.attrs["fields"]:
            if kind == "vector":
                lines.append(f"offset += {owner.bytes_of(what)};")
                continue
            c_type, value = FIELD[kind], owner.value(instr.args[what])
            lines += [
                f"WriteBytes<{FIELD_BYTES[kind]}>(call.payload + offset, "
                f"FieldBits(static_cast<{c_type}>({value})), {FIELD_BYTES[kind]});",
                f"offset += {FIELD_BYTES[kind]};",
            ]
        lines.append("*call.bytes = offset;")
        (owner.current.serial if late else owner.current.first).extend(lines)

    def copy(self, name: str) -> None:
        """A step that copies a vector from the workspace, or from a state, into the payload."""
        owner = self.owner
        vector = owner.function.vectors[name]
        step = owner.new_step(vector.size)
        if vector.packed or vector.bits != 32:
            source = f"reinterpret_cast<const uint8_t*>({owner.memory(name)})[j]"
            step.body.append(
                f"ForEach(team, {owner.bytes_of(name)}, [&](int64_t j) {{ "
                f"(call.payload + {owner.place(name)})[j] = {source}; }});"
            )
            return
        c_type = TYPES[vector.elem]
        step.body.append(
            f"ForEach(team, {owner.size(name)}, [&](int64_t j) {{ Write<{c_type}>(call.payload + "
            f"{owner.place(name)}, j, {owner.memory(name)}[j]); }});"
        )
