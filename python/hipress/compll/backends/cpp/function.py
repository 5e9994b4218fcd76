"""C++ of one encoder, or of one decoder of one payload: the walk over its nodes."""

from __future__ import annotations

from hipress.compll.backends.common.text import block
from hipress.compll.backends.cpp import lazy, ranking, statements
from hipress.compll.backends.cpp.blocks import blocks
from hipress.compll.backends.cpp.context import FunctionContext
from hipress.compll.backends.cpp.loop import BucketWriter, LoopWriter
from hipress.compll.ir.ir import Function, Instr, Loop, Program, node_writes
from hipress.compll.passes.buckets import bucket_group, bucket_of
from hipress.compll.passes.lazy import LazyState


class FunctionWriter:
    """Writes the body of one function.

    :param lazy_state: how the encoder leaves a state lazy, if it does
    """

    def __init__(
        self, program: Program, function: Function, lazy_state: LazyState | None = None
    ) -> None:
        self.function = function
        self.context = FunctionContext(program, function, lazy_state)
        self.loops = 0

    def text(self) -> list[str]:
        """Lines of the function's body."""
        context, function = self.context, self.function
        for position, name in enumerate(context.program.states):
            if function.kind == "encode":
                self.state(name, position)
        if function.kind == "decode":
            context.pointers[function.output] = "part.out"
        position = 0
        while position < len(function.body):
            written = position + self.node(position)
            for node in function.body[position:written]:
                self.check_indices(node)
            position = written
        return context.lines

    def check_indices(self, node: Instr | Loop) -> None:
        """Of indices that a node has made. Those of a field are checked where it is read."""
        for name in sorted(node_writes(node)):
            if not self.context.is_field(name):
                statements.check_indices(self.context, name)

    def state(self, name: str, position: int) -> None:
        """Declares where a state is read and written."""
        context, target = self.context, f"state_{name}"
        context.lines.append(f"float* const {target} = call.states[{position}];")
        before = f"call.before[{position}]"
        if context.renewals[name] is None:
            context.pointers[name] = target
            copy = f"std::memcpy({target}, {before}, static_cast<size_t>(n) * sizeof(float));"
            context.lines.append(f"if ({target} != {before}) {copy}")
            return
        pointer = context.pointers[name] = f"before_{name}"
        context.lines.append(f"const float* const {pointer} = {before};")
        if name in context.final:
            context.lines.append(f"const bool apart_{name} = IsApart({pointer}, {target}, n);")
        if context.has(name):
            context.lines.append(f"(void){target}, (void){pointer};")

    def node(self, position: int) -> int:
        """Writes a node, or several that are one pass; returns how many."""
        node = self.function.body[position]
        if isinstance(node, Instr):
            if node.id not in self.context.known:
                statements.write(self.context, node)
            return 1
        group = bucket_group(self.function, position)
        if group is not None:
            self.buckets(group)
            return len(group)
        self.loop(node)
        self.context.known |= {instr.id for instr in node.results}
        return 1

    def allocate(self, loop: Loop) -> None:
        """Memory of what a loop writes, but for what only a filter or topk reads."""
        context = self.context
        for name in sorted(node_writes(loop)):
            if name in context.ranked:
                ranking.write_floor(context, context.ranked[name], self.loops)
            elif name not in context.pointers and name not in context.filters:
                context.allocate(name)

    def buckets(self, group: list) -> None:
        context = self.context
        loops = [node for node in group if isinstance(node, Loop)]
        for node in group:
            if isinstance(node, Instr):
                statements.write(context, node)
        for loop in loops:
            for name in sorted(node_writes(loop)):
                if name not in context.pointers:
                    context.allocate(name)
        *others, final = loops
        writers = []
        for number, loop in enumerate(others):
            kind = LoopWriter if loop.domain is final.domain else BucketWriter
            writers.append(kind(context, loop, self.loops + number))
            context.pointers = context.after(loop)
        next_block = f"group{self.loops} * {context.value(bucket_of(final))}"
        writers.append(LoopWriter(context, final, self.loops + len(others), next_block))
        context.pointers = context.after(final)
        self.loops += len(loops)
        context.lines += blocks(writers, writers[0].domain)

    def loop(self, loop: Loop) -> None:
        context, deferred = self.context, self.context.lazy
        if deferred is not None and loop is deferred.last:
            context.lines += lazy.save([context.value(instr) for instr in deferred.uniforms])
            return
        self.allocate(loop)
        ranked = [context.ranked[name] for name in sorted(node_writes(loop) & set(context.ranked))]
        writer = (ranking.CandidatesWriter if ranked else LoopWriter)(context, loop, self.loops)
        lines = writer.lines()
        context.pointers = context.after(loop)
        self.loops += 2 if ranked else 1
        for one in ranked:
            lines = ranking.unless_all(context, one, lines)
        if self.function.output in node_writes(loop) and self.function.kind == "decode":
            skip = "call.check_only" + (" || part.add" if context.sparse_output else "")
            lines = block(f"if (!({skip}))", lines)
        context.lines += lines
