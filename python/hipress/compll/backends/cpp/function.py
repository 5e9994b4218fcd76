"""C++ of one encoder or decoder: scalars, operations on whole vectors, payload fields."""

from __future__ import annotations

import re

from hipress.compll.backends.common.expressions import SCALAR, expression, known
from hipress.compll.backends.cpp.blocks import blocks, bucket_of
from hipress.compll.backends.cpp.lazy import LazyPlan
from hipress.compll.backends.cpp.loop import BucketWriter, LoopWriter
from hipress.compll.backends.cpp.payload import FIELD_BYTES, PayloadWriter, indent
from hipress.compll.backends.cpp.ranking import Ranking, RankingWriter, rankings
from hipress.compll.ir.ir import (
    Function,
    Instr,
    Loop,
    Program,
    node_defines,
    node_reads,
    node_uses,
    node_writes,
    reads,
)

_STORAGE = {
    "f32": "float", "i32": "int32_t", "u32": "uint32_t", "u16": "uint16_t", "f16": "Float16",
    "bf16": "BFloat16",
}  # fmt: skip

_PLACED = {"f32", "u32", "f16", "bf16"}  # stored and loaded whatever the alignment


class FunctionWriter(PayloadWriter, RankingWriter):
    """Writes one encode, or one decode of one payload.

    :param lazy: how the encoder leaves a state lazy, if it does
    """

    def __init__(
        self, program: Program, function: Function, lazy: LazyPlan | None = None
    ) -> None:
        self.lazy = lazy
        self.program, self.function = program, function
        self.params = {param.name: param for param in program.params}
        self.numbers: dict[int, int] = {}
        self.lines: list[str] = []
        self.known: set[int] = set()
        self.pointers: dict[str, str] = {}
        self.loops = 0
        emits = [n for n in function.body if isinstance(n, Instr) and n.op == "emit"]
        self.fields = emits[0].attrs["fields"] if emits else []
        self.placed: dict[str, str] = {}
        self.payload = "call.payload" if function.kind == "encode" else "part.payload"
        self.filters = {
            node.vec[1]: node for node in function.body
            if isinstance(node, Instr) and node.op == "compact" and self._readers(node.vec[1]) == 1
        }  # fmt: skip
        # Of a sorted vector often one element is all that is looked at.
        self.selected = {
            node.vec[0]: node.vec[1] for node in function.body
            if isinstance(node, Instr) and node.op == "sort" and self._readers(node.vec[0]) == 1
            and any(i.op == "element" and i.vec == node.vec[:1] for i in function.instrs())
        }  # fmt: skip
        self.ranked: dict[str, Ranking] = rankings(function, lazy)
        # Sampled indices: neighbours come together.
        self.runs = {
            node.vec[0] for node in function.body if isinstance(node, Instr)
            and node.op == "random_indices" and node.attrs["run"] > 1
        }  # fmt: skip
        self.index_checks = {
            node.vec[1] for node in function.body if isinstance(node, Instr)
            and node.op == "scatter" and function.vectors[node.vec[1]].kind == "field"
        }  # fmt: skip
        self.sparse_output = any(
            isinstance(n, Instr) and n.op == "scatter" and n.vec[0] == function.output
            for n in function.body
        )

    def _readers(self, name: str) -> int:
        return sum(name in reads(instr) for instr in self.function.instrs())

    # Names ----------------------------------------------------------------------

    def number(self, instr: Instr) -> int:
        return self.numbers.setdefault(instr.id, len(self.numbers))

    def value(self, instr: Instr) -> str:
        """C++ of a scalar of the function."""
        return known(instr) or f"s{self.number(instr)}"

    def memory(self, name: str) -> str:
        return self.pointers[name]

    def has(self, name: str) -> str:
        """The template argument that says whether a state is kept; empty if it always is."""
        return f"kHas_{name}" if self.function.vectors[name].needs is not None else ""

    def size(self, name: str) -> str:
        return self.value(self.function.vectors[name].size)

    def packed_size(self, name: str) -> str:
        vector = self.function.vectors[name]
        return f"PackedBytes({self.size(name)}, {vector.bits}, {vector.multiple})"

    def bytes_of(self, name: str) -> str:
        vector = self.function.vectors[name]
        if vector.packed:
            return self.packed_size(name)
        return f"{self.size(name)} * {vector.bits // 8}"

    def c_type(self, name: str) -> str:
        vector = self.function.vectors[name]
        return "uint8_t" if vector.packed else _STORAGE[vector.elem]

    # Body ----------------------------------------------------------------------

    def text(self) -> list[str]:
        """Lines of the function's body."""
        function = self.function
        vectors = function.vectors
        for position, name in enumerate(self.program.states):
            if name in vectors:
                pointer = f"state_{name}"
                self.pointers[name] = pointer
                self.lines.append(f"float* const {pointer} = call.states[{position}];")
                if vectors[name].needs is not None:
                    self.lines.append(f"(void){pointer};")
        if function.kind == "decode":
            self.pointers[function.output] = "part.out"
        position = 0
        while position < len(function.body):
            position += self.node(position)
        return self.lines

    def node(self, position: int) -> int:
        """Writes a node, or several that are one pass; returns how many."""
        node = self.function.body[position]
        if isinstance(node, Instr):
            if node.id not in self.known:
                self.instr(node)
                self.known.add(node.id)
            return 1
        group = self._bucket_group(position)
        if group is not None:
            self.buckets(group)
            return len(group)
        self.loop(node)
        self.known |= {instr.id for instr in node.results}
        return 1

    def _bucket_group(self, position: int) -> list | None:
        """A pass that reduces buckets, what is made of them, and a pass that reads that: or None.

        Both passes can be done bucket by bucket, so that the second finds its bucket in the cache.
        """
        body = self.function.body
        first = body[position]
        targets = {i.vec[0] for i in first.body if i.op == "bucket_reduce"}
        if not targets or bucket_of(first) is None:
            return None
        size = self.function.vectors[next(iter(targets))].size
        made = set(targets)
        for end in range(position + 1, len(body)):
            node = body[end]
            if isinstance(node, Instr):
                if node.vec or node_uses(node) & node_defines(first):
                    return None
            elif node.domain is size and not node.results:
                if self._needs_whole_tiles(node):  # a block's buckets begin anywhere
                    return None
                made |= node_writes(node)
            elif node.domain is first.domain and bucket_of(node) is bucket_of(first):
                anywhere = {n for i in node.body if i.op == "load_at" for n in i.vec}
                if anywhere & made or not node_reads(node) & made:
                    return None
                return body[position : end + 1]
            else:
                return None
        return None

    def _needs_whole_tiles(self, loop: Loop) -> bool:
        """Whether its tiles must begin at multiples of their length: of packed codes, of draws."""
        return any(
            instr.op in ("random", "random16")
            or any(self.function.vectors[name].packed for name in instr.vec)
            for instr in loop.body
        )

    def buckets(self, group: list) -> None:
        loops = [node for node in group if isinstance(node, Loop)]
        for node in group:
            if isinstance(node, Instr):
                self.instr(node)
                self.known.add(node.id)
        for loop in loops:
            for name in sorted(node_writes(loop)):
                if name not in self.pointers:
                    self.allocate(name)
        *others, final = loops
        writers = [
            (LoopWriter if loop.domain is loops[0].domain else BucketWriter)(
                self, loop, self.loops + number
            )
            for number, loop in enumerate(others)
        ]
        block = f"group{self.loops} * {self.value(bucket_of(final))}"
        writers.append(LoopWriter(self, final, self.loops + len(others), block))
        self.loops += len(loops)
        self.lines += blocks(writers, writers[0].domain)

    def loop(self, loop: Loop) -> None:
        if self.lazy is not None and loop is self.lazy.last:
            self.lines += self.lazy.save([self.value(instr) for instr in self.lazy.uniforms])
            return
        for name in sorted(node_writes(loop)):
            if name in self.ranked:
                self.before_ranking(self.ranked[name])
            elif name not in self.pointers and name not in self.filters:
                self.allocate(name)
        lines = LoopWriter(self, loop, self.loops).lines()
        for name in node_writes(loop) & self.ranked.keys():
            lines = self.unless_all(self.ranked[name], lines)
        self.loops += 1
        if self.function.output in node_writes(loop) and self.function.kind == "decode":
            skip = "call.check_only" + (" || part.add" if self.sparse_output else "")
            lines = [f"if (!({skip})) {{", *indent(lines), "}"]
        self.lines += lines

    def allocate_counted(self, instr: Instr, count: str) -> None:
        """Defines an instruction's value, `count`, and allocates its target of that size."""
        self.define(instr, count)
        self.known.add(instr.id)
        self.allocate(instr.vec[0])

    def allocate(self, name: str) -> None:
        """Memory of a temp: its place in the payload if that is known, else scratch."""
        pointer = f"m_{re.sub(r'[^0-9A-Za-z_]', '_', name)}"
        self.pointers[name] = pointer
        c_type = self.c_type(name)
        offset = self.place(name)
        vector = self.function.vectors[name]
        if offset is not None and (vector.packed or vector.elem in _PLACED):
            self.placed[name] = pointer
            place = f"reinterpret_cast<{c_type}*>({self.payload} + {offset})"
            self.lines.append(f"{c_type}* const {pointer} = {place};")
            return
        size = self.packed_size(name) if vector.packed else self.size(name)
        self.lines.append(f"{c_type}* const {pointer} = arena.Get<{c_type}>({size});")

    def place(self, name: str) -> str | None:
        """Offset of a field in the payload, if all before it have sizes that are known by now."""
        parts = []
        for kind, what in self.fields:
            if kind == "vector" and what == name:
                return " + ".join(["int64_t(0)", *parts])
            if kind == "vector":
                size = self.function.vectors[what].size
                if size.id not in self.known and size.op not in ("n", "const", "param"):
                    return None
                parts.append(self.bytes_of(what))
            else:
                parts.append(str(FIELD_BYTES[kind]))
        return None

    def instr(self, instr: Instr) -> None:
        special = getattr(self, f"do_{instr.op}", None)
        if special is not None:
            special(instr)
            return
        if instr.op in ("const", "param", "n"):
            return
        if instr.op == "step":
            text = "static_cast<int64_t>(call.step)"
        else:
            text = expression(instr, [self.value(arg) for arg in instr.args], lane=False)
        self.define(instr, text)

    def define(self, instr: Instr, text: str) -> None:
        self.lines.append(f"const {SCALAR[instr.type]} {self.value(instr)} = {text};")

    # Whole vectors ----------------------------------------------------------------------

    def do_element(self, instr: Instr) -> None:
        name = instr.vec[0]
        at = self.value(instr.args[0])
        if name in self.selected:
            source = self.selected[name]
            self.define(
                instr, f"NthElement({self.memory(source)}, {self.size(source)}, {at}, &arena)"
            )
            return
        self.define(instr, f"Element({self.memory(name)}, {self.size(name)}, {at})")

    def do_compact(self, instr: Instr) -> None:
        target, mask = instr.vec
        if mask in self.filters:
            return  # done where the mask is made
        count, source = self.size(mask), self.memory(mask)
        self.allocate_counted(instr, f"CountBits({source}, {count})")
        self.lines.append(f"Compact({source}, {count}, {self.memory(target)});")

    def filtered(self, compact: Instr, name: str) -> list[str]:
        """Declares what a filter found: the number and the indices."""
        self.known.add(compact.id)
        pointer = f"m_{compact.vec[0]}"
        self.pointers[compact.vec[0]] = pointer
        return [
            f"const int64_t {self.value(compact)} = {name}.Join();",
            f"int32_t* const {pointer} = {name}.data();",
        ]

    def do_topk(self, instr: Instr) -> None:
        target, source = instr.vec
        count = self.size(source)
        self.allocate_counted(instr, f"Clip({self.value(instr.args[0])}, {count})")
        self.lines.append(
            f"TopK({self.memory(source)}, {count}, {self.value(instr)}, &arena, "
            f"{self.memory(target)});"
        )

    def do_sort(self, instr: Instr) -> None:
        target, source = instr.vec
        if target in self.selected:
            return
        self.allocate(target)
        self.lines.append(
            f"Sort({self.memory(source)}, {self.size(source)}, {self.memory(target)});"
        )

    def do_random_indices(self, instr: Instr) -> None:
        size = f"Clip({self.value(instr.args[0])}, n)"
        self.allocate_counted(instr, f"Clip({self.value(instr.args[1])}, {size})")
        target = self.memory(instr.vec[0])
        strata, arena = ("Strata", "") if instr.attrs["run"] == 1 else ("SampleRuns", "&arena, ")
        self.lines.append(
            f"{strata}({size}, {self.value(instr)}, key, {instr.attrs['site']}, {arena}{target});"
        )

    def do_pack_ascending(self, instr: Instr) -> None:
        target, index = instr.vec
        count = self.size(index)
        self.allocate_counted(instr, f"AscendingBytes({count}, n)")
        self.lines.append(
            f"PackAscending({self.memory(index)}, {count}, n, {self.memory(target)});"
        )

    def do_unpack_ascending(self, instr: Instr) -> None:
        target, data = instr.vec
        self.allocate(target)
        self.lines.append(
            f"if (!UnpackAscending({self.memory(data)}, {self.size(target)}, n, "
            f"{self.memory(target)})) {self.bad_indices()}"
        )

    def do_pack_where(self, instr: Instr) -> None:
        target, bits, mask = instr.vec
        mask, count = self.memory(mask), self.size(mask)
        self.allocate_counted(instr, f"CountBits({mask}, {count})")
        self.lines.append(
            f"PackWhere({self.memory(bits)}, {mask}, {count}, {self.memory(target)});"
        )

    def do_count_where(self, instr: Instr) -> None:
        (mask,) = instr.vec
        self.define(instr, f"CountBits({self.memory(mask)}, {self.size(mask)})")

    def do_unpack_where(self, instr: Instr) -> None:
        target, packed, mask = instr.vec
        self.allocate(target)
        self.lines.append(
            f"UnpackWhere({self.memory(packed)}, {self.size(packed)}, {self.memory(mask)}, "
            f"{self.size(mask)}, {self.memory(target)});"
        )

    def do_scatter(self, instr: Instr) -> None:
        target, index = instr.vec[:2]
        count, at = self.size(index), f"ReadField<{self.c_type(index)}>("
        at = f"{at}reinterpret_cast<const uint8_t*>({self.memory(index)} + j))"
        if len(instr.vec) > 2:
            memory = self.memory(instr.vec[2])
            value = f"ReadField<float>(reinterpret_cast<const uint8_t*>({memory} + j))"
        else:
            value = self.value(instr.args[0])
        output = self.function.kind == "decode" and target == self.function.output
        place = f"{self.memory(target)}[{at}]"
        if output:
            value = f"part.add ? {place} + {value} : {value}"
        loop = f"for (int64_t j = 0; j < {count}; ++j) {place} = {value};"
        loop = f"if ({self.has(target)}) {loop}" if self.has(target) else loop
        self.lines.append(f"if (!call.check_only) {loop}" if output else loop)
