"""C++ of a loop's loads and stores: floats, packed codes, what a filter or `topk` collects."""

from __future__ import annotations

from hipress.compll.backends.common.expressions import LANE, SCALAR
from hipress.compll.backends.cpp.blocks import bucket_place
from hipress.compll.ir.ir import Instr


class MemoryWriter:
    """Part of LoopWriter."""

    def load(self, instr: Instr) -> str:
        name = instr.vec[0]
        vector = self.owner.function.vectors[name]
        if vector.kind == "input":
            line = "const float* const gradient = GradientTile<kTail>(call, i, rem, converted);"
            if line not in self.before:
                self.before += ["alignas(64) float converted[kTile];", line]
                if self.next_block:
                    self.before.append(f"PrefetchGradient(call, i + {self.next_block});")
            return "Load<kTail>(gradient, v * kLanes, left)"
        if vector.packed and vector.bits == 1:
            return f"Ones(MaskOf({self.bit_word(name)}, v))"
        memory = self.owner.memory(name)
        lazy = self.owner.lazy
        if lazy is not None and name == lazy.state and self.loop is lazy.first:
            if "auto settle" not in "".join(self.prologue):
                self.prologue += lazy.lambda_(lazy.saved(), "kLazy == 2")
            text = f"Load<kTail>({memory}, at, left)"
            return f"kLazy ? settle({text}) : {text}"
        if not vector.packed:
            has = self.owner.has(name)
            line = f"{f'if ({has}) ' if has else ''}PrefetchTile({memory} + i + {self.next_block});"
            if self.next_block and line not in self.before:
                self.before.append(line)
            text = f"Load<kTail>({memory}, at, left)"
            return f"{has} ? {text} : F{{}}" if has else text
        return f"GetCodes<{self.msb(name)}>({self.code_tile(name)}, {vector.bits}, v)"

    def is_bit(self, value: Instr) -> bool:
        if value.op != "load" or value.id not in self.inside or self.in_table:
            return False
        vector = self.owner.function.vectors[value.vec[0]]
        return vector.packed and vector.bits == 1

    def msb(self, name: str) -> str:
        return "true" if self.owner.function.vectors[name].order == "msb" else "false"

    def bit_word(self, name: str) -> str:
        """The 64 codes of one bit of a tile."""
        line = (
            f"const uint64_t bits_{name} = LoadBits<kTail, {self.msb(name)}>("
            f"{self.owner.memory(name)}, i, {self.owner.packed_size(name)});"
        )
        if line not in self.before:
            self.before.append(line)
        return f"bits_{name}"

    def code_tile(self, name: str) -> str:
        """Where the codes of a tile lie."""
        bits, size = self.owner.function.vectors[name].bits, self.owner.packed_size(name)
        lines = [
            f"alignas(64) uint8_t scratch_{name}[kTile];",
            f"const uint8_t* const codes_{name} = FindTile<kTail, {self.msb(name)}>("
            f"{self.owner.memory(name)}, {bits}, i, {size}, scratch_{name});",
        ]
        if lines[0] not in self.before:
            self.before += lines
        return f"codes_{name}"

    def load_at(self, instr: Instr) -> str:
        name = instr.vec[0]
        where, index = instr.args[0], self.value(instr.args[0])
        runs = where.op == "load" and where.vec[0] in self.owner.runs
        if runs:
            index = f"{self.owner.memory(where.vec[0])} + at, {index}"
        if self.owner.function.vectors[name].kind == "input":
            return f"GatherGradient{'Runs<kTail>' if runs else ''}(call, {index})"
        memory, size = self.owner.memory(name), self.owner.size(name)
        has = self.owner.has(name)
        size = f"{has} ? {size} : 0" if has else size
        gather = "GatherRuns<kTail, " if runs else "Gather<"
        return f"{gather}{LANE[instr.type]}>({memory}, {size}, {index})"

    def bucket_load(self, instr: Instr) -> str:
        block = "block" if self.bucket is not None else f"i / {self.owner.value(instr.args[0])}"
        value = f"Set(ReadField<{SCALAR[instr.type]}>({bucket_place(self, instr, block)}))"
        if self.bucket is None:
            return value
        name = f"bucket{self.owner.number(instr)}"
        self.prologue.append(f"const {LANE[instr.type]} {name} = {value};")
        return name

    def store(self, instr: Instr) -> None:
        name = instr.vec[0]
        vector = self.owner.function.vectors[name]
        if name in self.owner.filters:
            self.filter(instr)
            return
        if name in self.owner.ranked and self.loop is self.owner.ranked[name].loop:
            self.rank(instr)
            return
        memory = self.owner.memory(name)
        if not vector.packed:
            value = self.value(instr.args[0])
            if vector.kind == "output":
                value = f"part.add ? Load<kTail>({memory}, at, left) + {value} : {value}"
            has = self.owner.has(name)
            store = f"Store<kTail>({memory}, at, left, {value});"
            self.tile.append(f"if ({has}) {store}" if has else store)
            return
        size, codes = self.owner.packed_size(name), f"out_{name}"
        if vector.bits == 1 and (masks := self.masks(instr, codes)):
            self.after.append(
                f"StoreMasks<kTail, {self.msb(name)}>({masks}, {memory}, i, {size});"
            )
            return
        code = instr.args[0]
        high = _upper_half(code, vector.bits)
        value = self.value(high or code)
        self.before += [f"I {codes}[kVectors];", *_cleared(codes, "I{}")]
        masked = f"kTail ? Select(Valid(left), {value}, I{{}}) : {value}"
        self.tile.append(f"{codes}[v] = {masked};")
        self.after.append(
            f"StoreTile<kTail, {self.msb(name)}{', true' if high else ''}>({codes}, {vector.bits}, "
            f"{memory}, i, {size});"
        )

    def masks(self, store: Instr, name: str) -> str | None:
        """Collects the masks of a bool that is stored as one bit."""
        value = store.args[0]
        if value.op != "cast" or value.args[0].type != "bool" or value.id not in self.inside:
            return None
        mask = self.value(value.args[0])
        self.before += [f"M {name}[kVectors];", *_cleared(name, "Set(false)")]
        self.tile.append(f"{name}[v] = kTail ? And(Valid(left), {mask}) : {mask};")
        return name

    def filter(self, store: Instr) -> None:
        """A mask that only a filter reads: indices are found here, in the same pass."""
        number = self.number
        masks = self.masks(store, f"passed{number}")
        self.setup.append(f"Filter filter{number}(&arena, {self.domain});")
        self.prologue.append(f"int32_t* found{number} = filter{number}.Begin(worker, begin);")
        self.after += [
            f"const uint64_t bits{number} = JoinMasks({masks});",
            f"found{number} = AppendIndices(bits{number}, i, found{number});",
        ]
        self.finish.append(f"filter{number}.End(worker, found{number});")
        compact = self.owner.filters[store.vec[0]]
        self.epilogue += self.owner.filtered(compact, f"filter{number}")

    def rank(self, store: Instr) -> None:
        """Values that only topk reads: candidates are found here, in the same pass."""
        number, value = self.number, self.value(store.args[0])
        ranking = self.owner.ranked[store.vec[0]]
        self.setup.append(f"Candidates candidates{number}(&arena, {self.domain});")
        self.prologue += [
            f"Candidate candidate{number} = candidates{number}.Begin(worker, begin);",
            f"const U least{number} = Set(floor{self.owner.number(ranking.topk)});",
        ]
        self.before += [
            f"U keys{number}[kVectors];", f"M large{number}[kVectors];",
            *_cleared(f"large{number}", "Set(false)"),
        ]  # fmt: skip
        large = f"Ge(keys{number}[v], least{number})"
        self.tile += [
            f"keys{number}[v] = Ordered({value});",
            f"large{number}[v] = kTail ? And(Valid(left), {large}) : {large};",
        ]
        self.after += [
            f"const uint64_t bits{number} = JoinMasks(large{number});",
            f"if (bits{number} != 0) candidate{number} = AppendCandidates(bits{number}, i, "
            f"keys{number}, candidate{number});",
        ]
        self.finish.append(f"candidates{number}.End(worker, candidate{number});")
        self.epilogue += self.owner.after_ranking(ranking, f"candidates{number}")


def _upper_half(code: Instr, bits: int | str) -> Instr | None:
    """What a code is the upper half of: where codes are packed it is found without a shift."""
    if code.op != "wrap" or code.attrs["bits"] != bits or code.args[0].op != "shr":
        return None
    whole, amount = code.args[0].args
    return whole if amount.op == "const" and amount.attrs["value"] == 16 else None


def _cleared(name: str, value: str) -> list[str]:
    """A tail leaves vectors out."""
    return [f"if (kTail) for (int v = 0; v < kVectors; ++v) {name}[v] = {value};"]
