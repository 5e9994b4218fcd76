"""Upper bounds of numbers and of payloads, and the bits of a number that affect results."""

from __future__ import annotations

import math
from dataclasses import replace

from hipress.compression.compiler.compiler_errors import CompileError
from hipress.compression.compiler.ir.ir import (
    FIELD_BYTES,
    OPS,
    Function,
    Instr,
    ProgramParam,
    backward,
    clone,
)

_EXACT = 2**24  # integers below it are the same in every type
_WORD = 2**32 - 1

# Numbers ------------------------------------------------------------------------------


def upper(value: Instr, params: dict[str, ProgramParam]) -> float:
    """Return an upper bound of a float that is not NaN, or infinity if none is known.

    `params` has the program's parameters by name.
    """
    known = _possible(value, params)
    if known:
        return float(max(known))
    if value.type != "f32":
        return math.inf
    if value.op == "select":
        bounds = [upper(arg, params) for arg in value.args[1:]]
        if value.args[0].op == "lt" and value.args[0].args == value.args[1:]:
            # a < b ? a : b of an `a` that is NaN is b.
            return min(bounds) if _possible(value.args[1], params) else bounds[1]
        return max(bounds)
    if value.op == "mul":
        factor = _possible(value.args[1], params)
        if factor and min(factor) > 0:
            return max(upper(value.args[0], params) * max(factor), 0.0)
    return math.inf


def fits(value: Instr, bits: int | str, params: dict[str, ProgramParam]) -> bool:
    """Return whether a float never exceeds the largest code of `bits` bits."""
    if isinstance(bits, int):
        return upper(value, params) < 2**bits
    return all(
        upper(value, {**params, bits: replace(params[bits], choices=(choice,))}) < 2 ** int(choice)
        for choice in params[bits].choices
    )


def wanted_bits(value: Instr, body: list[Instr], params: dict[str, ProgramParam]) -> int:
    """Return the bits of an i32 of a loop's body that decide anything: a mask of 32 bits."""
    found = 0
    for user in body:
        for position, arg in enumerate(user.args):
            if arg is value:
                found |= _passed_on(user, position, body, params)
    return found


def _passed_on(
    user: Instr, position: int, body: list[Instr], params: dict[str, ProgramParam]
) -> int:
    """Return the bits of one operand that decide anything."""
    if user.type != "i32" or user.op not in ("add", "sub", "wrap", "select", "shr", "shl"):
        return _WORD
    wanted = wanted_bits(user, body, params)
    if user.op in ("add", "sub"):
        return 2 ** wanted.bit_length() - 1  # carries come from below
    if user.op == "select":
        return _WORD if position == 0 else wanted
    if user.op == "wrap":
        bits = user.attrs["bits"]
        most = bits if isinstance(bits, int) else max(map(int, params[bits].choices))
        return wanted & (2**most - 1)
    amount = _possible(user.args[1], params)
    if position == 1 or not amount or len(amount) > 1 or not 0 <= min(amount) < 32:
        return _WORD
    shift = min(amount)
    if user.op == "shl":
        return wanted >> shift
    sign = 2**31 if wanted >> (32 - shift) else 0
    return (wanted << shift | sign) & _WORD


def _possible(value: Instr, params: dict[str, ProgramParam]) -> set[int] | None:
    """Return the whole numbers that a value may be, or None if these are not few."""
    if value.op == "const":
        found = {value.attrs["value"]}
    elif value.op == "param":
        found = set(params[value.attrs["name"]].choices or ())
    elif value.op == "cast":
        found = _possible(value.args[0], params)
    elif value.op in ("add", "sub", "mul", "shl"):
        one, two = (_possible(arg, params) for arg in value.args)
        if not one or not two or value.op == "shl" and not all(0 <= b < 24 for b in two):
            return None
        found = {OPS[value.op].python(a, b) for a in one for b in two}
    else:
        return None
    whole = found and all(abs(number) < _EXACT and number == int(number) for number in found)
    return {int(number) for number in found} if whole and len(found) <= 256 else None


# Sizes --------------------------------------------------------------------------------


class _Bounds:
    """Upper bounds of sizes in a function, as computations of n and the parameters alone.

    Attributes:
        body: Scalar instructions that compute the bounds.
        fixed: Whether every size that was bounded is its bound, for all data.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.body: list[Instr] = []
        self.fixed = True

    def emit(self, op: str, *args: Instr, type_: str = "i64", **attrs: object) -> Instr:
        """Emit an instruction."""
        instr = Instr(op, list(args), type_, attrs=attrs)
        self.body.append(instr)
        return instr

    def const(self, value: int) -> Instr:
        return self.emit("const", value=value)

    def least(self, one: Instr, two: Instr) -> Instr:
        return self.emit("select", self.emit("lt", one, two, type_="bool"), one, two)

    def bound(self, size: Instr) -> Instr:
        """Return an upper bound of a size; clears `fixed` if the size itself depends on data."""
        vectors = self.function.vectors
        if size.op in ("compact", "pack_where"):
            self.fixed = False
            return self.bound(vectors[size.vec[1]].size)
        if size.op == "pack_floats":
            self.fixed = False
            return self.emit("floats_bytes", self.emit("n"))
        if size.op == "pack_ascending":
            most = self.bound(vectors[size.vec[1]].size)
            most = self.emit("ascending_bytes", most, self.emit("n"))
            # Fewer indices can take a byte more, since two parts are rounded up to bytes.
            return most if self.fixed else self.emit("add", most, self.const(1))
        if size.op == "gaps_bytes":
            self.fixed = False
            return self.emit("gaps_most", self.bound(vectors[size.vec[0]].size), self.emit("n"))
        if size.op in ("topk", "random_indices"):
            drawn = size.op == "random_indices"
            most = self.bound(size.args[0] if drawn else vectors[size.vec[1]].size)
            k = self.most(size.args[-1])
            if k is None:
                self.fixed = False
                return most
            zero = self.const(0)
            k = self.emit("select", self.emit("gt", k, zero, type_="bool"), k, zero)
            return self.least(k, most)
        if not _is_pure(size):
            raise CompileError(
                "the size of a field must follow from the gradient's size and the parameters, or "
                "from filter, topk or sample"
            )
        mapping: dict[int, Instr] = {}
        self.body += clone(backward(size, self.function.scalars), mapping)
        return mapping[size.id]

    def most(self, wanted: Instr) -> Instr | None:
        """Return the bound of a number: itself if pure, or the pure side of min(a, b)."""
        if _is_pure(wanted):
            return self.bound(wanted)
        if wanted.op == "select" and wanted.args[0].op == "lt":
            if wanted.args[0].args == wanted.args[1:]:
                for side in wanted.args[1:]:
                    if _is_pure(side):
                        self.fixed = False
                        return self.bound(side)
        return None


class SizeBounds(_Bounds):
    """Upper bounds of the sizes of a function's vectors, each computed once."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.known: dict[int, Instr] = {}

    def bound(self, size: Instr) -> Instr:
        """Return an upper bound of a size, computed once."""
        if size.id not in self.known:
            # A decoder requires that a number in the payload is at most n.
            of_payload = self.function.kind == "decode" and not _is_pure(size)
            self.known[size.id] = self.emit("n") if of_payload else super().bound(size)
        return self.known[size.id]


class PayloadSize(_Bounds):
    """The largest payload of an encoder: `result`, i64, in bytes."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        (emit,) = function.operations("emit")
        self.result = self.const(0)
        for kind, what in emit.attrs["fields"]:
            is_vector = kind == "vector"
            size = self.vector_bytes(what) if is_vector else self.const(FIELD_BYTES[kind])
            self.result = self.emit("add", self.result, size)

    def vector_bytes(self, name: str) -> Instr:
        """Return the bound of a field's bytes."""
        vector = self.function.vectors[name]
        count, bits = self.bound(vector.size), vector.bits
        if not vector.packed:
            return self.emit("mul", count, self.const(bits // 8))
        width = self.const(bits) if isinstance(bits, int) else self.emit("param", name=bits)
        multiple = self.const(vector.multiple)
        more = self.emit("add", count, self.const(vector.multiple - 1))
        padded = self.emit("mul", self.emit("div", more, multiple), multiple)
        all_bits = self.emit("add", self.emit("mul", padded, width), self.const(7))
        return self.emit("div", all_bits, self.const(8))


def _is_pure(value: Instr) -> bool:
    """Return whether a scalar depends on n and the parameters only."""
    return OPS[value.op].pure and all(map(_is_pure, value.args))
