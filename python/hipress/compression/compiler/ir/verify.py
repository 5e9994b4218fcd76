"""Invariants between any two passes. A failure is a bug of the compiler, not of the user."""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import (
    BINARY,
    COMPARE,
    OPS,
    Function,
    Instr,
    Loop,
    Program,
    counts_buckets,
)


class IRError(AssertionError):
    """The IR breaks one of its rules."""


def verify(program: Program, after: str = "lowering") -> None:
    """Check every function of a program; `after` names the pass that made this IR.

    Raises:
        IRError: If a value is used before it is made, a type is wrong, a vector is unknown or read
            before it is written.
    """
    for function in program.functions:
        try:
            _Verifier(function).run()
        except IRError as error:
            raise IRError(f"after {after}, in {function.name}: {error}") from None


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise IRError(message)


class _Verifier:
    def __init__(self, function: Function) -> None:
        self.function, self.vectors = function, function.vectors
        self.known: set[int] = set()
        # Later loads of a loop see what it stores.
        self.written = {name for loop in function.loops for name in loop.writes}
        self.written |= {
            name
            for name, vector in function.vectors.items()
            if vector.kind in ("input", "state", "output")
        }

    def run(self) -> None:
        for vector in self.vectors.values():
            good = vector.needs is None or vector.kind == "state" and vector.needs.type == "bool"
            _expect(good, f"{vector.name} depends on {vector.needs and vector.needs.op}")
        for node in self.function.body:
            if isinstance(node, Loop):
                self.need(node.domain, "a loop's domain")
                if node.guard is not None:
                    self.need(node.guard, "a loop's guard")
                # The elements of a loop have no order.
                elsewhere = {i.vec[0] for i in node.ops("load_at", "bucket_load")}
                for name in sorted(elsewhere & node.writes):
                    raise IRError(f"a loop writes {name} and reads other elements of it")
                self.sizes(node)
            outside = set(self.known)
            for instr in node.body:
                self.instr(instr, inside=isinstance(node, Loop))
            self.known = outside | node.defines
            self.written |= node.writes

    def sizes(self, loop: Loop) -> None:
        """Check that vectors accessed without a size check have the loop's size."""
        for instr in loop.ops("load", "store", "bucket_load", "bucket_reduce"):
            if instr.vec[0] not in self.vectors:
                continue  # reported later
            size = self.vectors[instr.vec[0]].size
            if instr.op in ("load", "store"):
                fits = size is loop.domain
            else:
                fits = counts_buckets(size, loop.domain, instr.args[0])
            _expect(fits, f"{instr.op} of {instr.vec[0]} in a loop of another size")

    def need(self, value: Instr, what: str) -> None:
        _expect(value.id in self.known, f"{what} uses %{value.id} ({value.op}) before it is made")

    def instr(self, instr: Instr, inside: bool) -> None:
        op = instr.op
        _expect(instr.id not in self.known, f"%{instr.id} ({op}) is made twice")
        here, there = ("in", "function") if inside else ("outside", "loop")
        _expect(op not in OPS or OPS[op].place != there, f"{op} must not be {here} a loop")
        for arg in instr.args:
            self.need(arg, op)
        narrow = not inside or instr.type not in ("i64", "f64") or op == "reduce"
        _expect(narrow, f"{op} of type {instr.type} in a loop")
        for name in sorted(instr.reads | instr.writes):
            _expect(name in self.vectors, f"{op} of the unknown vector {name}")
        ready = self.written | (instr.writes if op == "scatter" else set())
        for name in sorted(instr.reads):
            _expect(name in ready, f"{op} reads {name} before it is written")
        self.types(instr)
        self.known.add(instr.id)

    def types(self, instr: Instr) -> None:
        types, op = [arg.type for arg in instr.args], instr.op
        if op in BINARY:
            same = types[0] == types[1] or op in ("shl", "shr")
            _expect(same, f"{op} of {types[0]} and {types[1]}")
            expected = "bool" if op in COMPARE else types[0]
            gives = f"{op} of {types[0]} gives {expected}, not {instr.type}"
            _expect(instr.type == expected, gives)
        elif op == "select":
            same = types == ["bool", types[1], types[1]] and instr.type == types[1]
            _expect(same, f"select of {types}")
        elif op == "load":
            value_type = self.vectors[instr.vec[0]].value_type
            _expect(instr.type == value_type, f"load of {instr.vec[0]} gives {instr.type}")
        elif op == "store":
            value_type = self.vectors[instr.vec[0]].value_type
            _expect(types[0] == value_type, f"store of {types[0]} to {instr.vec[0]}")
