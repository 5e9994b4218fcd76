"""C++ of one encoder, or of one decoder of one payload: the walk over its nodes."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.text import block
from hipress.compression.compiler.backends.cpp import lazy, ranking, statements
from hipress.compression.compiler.backends.cpp.blocks import blocks
from hipress.compression.compiler.backends.cpp.context import CppContext
from hipress.compression.compiler.backends.cpp.loop import BucketLoop, CppLoop
from hipress.compression.compiler.ir.ir import Function, Instr, Loop, Program, node_writes
from hipress.compression.compiler.passes.buckets import bucket_group, bucket_of
from hipress.compression.compiler.passes.lazy import LazyState


class CppFunction(CppContext):
    """Writer of the body of one encode or decode; see CppContext for the arguments."""

    operations = statements.STATEMENTS

    def __init__(self, program: Program, function: Function, lazy: LazyState | None = None) -> None:
        super().__init__(program, function, lazy)
        self.loops = 0

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
            self.lines.append(f"const bool apart_{name} = IsApart({pointer}, {target}, n);")
        if self.has(name):
            self.lines.append(f"(void){target}, (void){pointer};")

    def node(self, position: int) -> int:
        node = self.function.body[position]
        group = bucket_group(self.function, position) if isinstance(node, Loop) else None
        if group is None:
            return super().node(position)
        self.buckets(group)
        return len(group)

    def allocate_written(self, loop: Loop) -> None:
        """Allocate the results of a loop, except those that only a filter or topk reads."""
        for name in sorted(node_writes(loop)):
            if name in self.ranked:
                ranking.write_floor(self, self.ranked[name], self.loops)
            elif name not in self.pointers and name not in self.filters:
                self.allocate(name)

    def buckets(self, group: list) -> None:
        """Write a group of nodes as one pass over buckets."""
        loops = [node for node in group if isinstance(node, Loop)]
        for node in group:
            if isinstance(node, Instr):
                self.instr(node)
        for loop in loops:
            for name in sorted(node_writes(loop)):
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
        deferred = self.lazy
        if deferred is not None and loop is deferred.last:
            self.lines += lazy.save([self.value(instr) for instr in deferred.uniforms])
            return
        self.allocate_written(loop)
        ranked = [self.ranked[name] for name in sorted(node_writes(loop) & set(self.ranked))]
        writer = (ranking.CandidatesLoop if ranked else CppLoop)(self, loop, self.loops)
        lines = writer.lines()
        self.pointers = self.after(loop)
        self.loops += 2 if ranked else 1
        self.known |= {instr.id for instr in loop.results}
        for one in ranked:
            lines = ranking.unless_all(self, one, lines)
        if self.is_decode and self.function.output in node_writes(loop):
            skip = "call.check_only" + (" || part.add" if self.sparse_output else "")
            lines = block(f"if (!({skip}))", lines)
        self.lines += lines
