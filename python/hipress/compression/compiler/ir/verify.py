"""Invariants between any two passes. A failure is a bug of the compiler, not of the user."""

from __future__ import annotations

from hipress.compression.compiler.ir.indices import counts_buckets
from hipress.compression.compiler.ir.ir import (
    BINARY,
    COMPARE,
    Function,
    Instr,
    Loop,
    Program,
    node_writes,
    reads,
    writes,
)

_ONLY_IN_LOOPS = {"index", "load", "load_at", "bucket_load", "store", "reduce", "bucket_reduce"}
_ONLY_OUTSIDE = {
    "compact",
    "topk",
    "sort",
    "scatter",
    "emit",
    "field",
    "field_vector",
    "end_of_payload",
    "require",
    "n",
    "step",
    "param",
    "pack_ascending",
    "unpack_ascending",
    "pack_gaps",
    "unpack_gaps",
    "gaps_bytes",
    "pack_where",
    "count_where",
    "unpack_where",
    "pack_floats",
    "unpack_floats",
    "dct",
    "idct",
}


class IRError(AssertionError):
    """The IR breaks one of its rules."""


def verify(program: Program, after: str = "lowering") -> None:
    """Check every function of a program.

    :param after: the pass that made this IR, for the message
    :raises IRError: if a value is used before it is made, a type is wrong, a vector is unknown or
        read before it is written
    """
    for function in program.functions:
        try:
            _Verifier(function).run()
        except IRError as error:
            raise IRError(f"after {after}, in {function.name}: {error}") from None


class _Verifier:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.known: set[int] = set()
        self.written = {
            name
            for name, vector in function.vectors.items()
            if vector.kind in ("input", "state", "output")
        }

    def run(self) -> None:
        for vector in self.function.vectors.values():
            if vector.needs is not None and (vector.kind != "state" or vector.needs.type != "bool"):
                raise IRError(f"{vector.name} depends on {vector.needs.op}")
        for node in self.function.body:
            if isinstance(node, Loop):
                self._need(node.domain, "a loop's domain")
                if node.guard is not None:
                    self._need(node.guard, "a loop's guard")
                outside = set(self.known)
                self._order(node)
                self._sizes(node)
                for instr in node.body:
                    self._instr(instr, inside=True)
                self.known = outside | {instr.id for instr in node.results}
                for instr in node.body:
                    self.written.update(writes(instr))
            else:
                self._instr(node, inside=False)
                self.written.update(writes(node))

    def _order(self, loop: Loop) -> None:
        """Check that a loop does not write vectors that it reads at other elements.

        The elements of a loop have no order.
        """
        elsewhere = {i.vec[0] for i in loop.body if i.op in ("load_at", "bucket_load")}
        for name in sorted(elsewhere & node_writes(loop)):
            raise IRError(f"a loop writes {name} and reads other elements of it")

    def _sizes(self, loop: Loop) -> None:
        """Check that vectors without size checks in a loop have an element for each of the
        loop's."""
        for instr in loop.body:
            if instr.op not in ("load", "store", "bucket_load", "bucket_reduce"):
                continue
            vector = self.function.vectors.get(instr.vec[0])
            size = None if vector is None else vector.size  # an unknown one is reported later
            if instr.op in ("load", "store"):
                fits = size is loop.domain
            else:
                fits = size is not None and counts_buckets(size, loop.domain, instr.args[0])
            if vector is not None and not fits:
                raise IRError(f"{instr.op} of {instr.vec[0]} in a loop of another size")

    def _need(self, value: Instr, what: str) -> None:
        if value.id not in self.known:
            raise IRError(f"{what} uses %{value.id} ({value.op}) before it is made")

    def _instr(self, instr: Instr, inside: bool) -> None:
        if instr.id in self.known:
            raise IRError(f"%{instr.id} ({instr.op}) is made twice")
        if instr.op in (_ONLY_OUTSIDE if inside else _ONLY_IN_LOOPS):
            raise IRError(f"{instr.op} must not be {'in' if inside else 'outside'} a loop")
        for arg in instr.args:
            self._need(arg, instr.op)
        if inside and instr.type in ("i64", "f64") and instr.op != "reduce":
            raise IRError(f"{instr.op} of type {instr.type} in a loop")
        for name in reads(instr) + writes(instr):
            if name not in self.function.vectors:
                raise IRError(f"{instr.op} of the unknown vector {name}")
        local = set(writes(instr)) if instr.op == "scatter" else set()
        for name in reads(instr):
            if name not in self.written | local and not self._stored_in_loop(name):
                raise IRError(f"{instr.op} reads {name} before it is written")
        self._types(instr)
        self.known.add(instr.id)

    def _stored_in_loop(self, name: str) -> bool:
        """Return whether a loop of the function stores to a vector. Later loads of that loop see
        it."""
        return any(
            isinstance(node, Loop) and any(name in writes(instr) for instr in node.body)
            for node in self.function.body
        )

    def _types(self, instr: Instr) -> None:
        types = [arg.type for arg in instr.args]
        if instr.op in BINARY:
            if types[0] != types[1] and instr.op not in ("shl", "shr"):
                raise IRError(f"{instr.op} of {types[0]} and {types[1]}")
            expected = "bool" if instr.op in COMPARE else types[0]
            if instr.type != expected:
                raise IRError(f"{instr.op} of {types[0]} gives {expected}, not {instr.type}")
        elif instr.op == "select":
            if types[0] != "bool" or types[1] != types[2] or instr.type != types[1]:
                raise IRError(f"select of {types}")
        elif instr.op == "load":
            if instr.type != self.function.vectors[instr.vec[0]].value_type:
                raise IRError(f"load of {instr.vec[0]} gives {instr.type}")
        elif instr.op == "store":
            if types[0] != self.function.vectors[instr.vec[0]].value_type:
                raise IRError(f"store of {types[0]} to {instr.vec[0]}")
