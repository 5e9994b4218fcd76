"""A function's IR while it is built: instructions, loops, vectors, and conversions of values."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hipress.compression.compiler.errors import CompileError, Pos
from hipress.compression.compiler.frontend import ast, scope
from hipress.compression.compiler.ir.ir import Instr, Loop, Vector

_BITS = {"i32": 32, "u32": 32, "i64": 64}


def _whole(value: float | int, type_: str) -> int:
    """Return a constant in an integer type: an integer wraps around, a float saturates, NaN is
    0."""
    least = 0 if type_ == "u32" else -(2 ** (_BITS[type_] - 1))
    if isinstance(value, int):
        return (value - least) % 2 ** _BITS[type_] + least
    most = least + 2 ** _BITS[type_]  # a float; the type's own largest is none
    below = float(np.nextafter(np.float32(most), np.float32(0)))
    return 0 if math.isnan(value) else int(min(max(value, least), below))


class Emitter:
    """Emitter into the body of a function, or of the open loop.

    :ivar lanes: the open loop's body, or None
    :ivar domain: how many elements that loop has, or the last one had
    :ivar scalars: those emitted so far, so that equal ones are one
    :ivar limited: ids of sizes that limit() was called for
    :ivar sites: how many random calls there are
    """

    def __init__(self, signature: scope.Signature) -> None:
        self.signature = signature
        self.body: list = []
        self.lanes: list[Instr] | None = None
        self.scalars: dict[tuple, Instr] = {}
        self.vectors: dict[str, Vector] = {}
        self.sites = 0
        self.domain: Instr | None = None
        self.limited: set[int] = set()
        self.n = self.emit("n", [], "i64")
        self.step = self.emit("step", [], "i64")

    def emit(
        self, op: str, args: list[Instr], type_: str = "none", vec: list[str] | None = None, **attrs
    ) -> Instr:
        instr = Instr(op, args, type_, vec or [], attrs)
        if self.lanes is not None:
            self.lanes.append(instr)
            return instr
        if type_ != "none" and not vec and op not in ("field", "random_indices"):
            # Equal scalars are one value, so that sizes computed twice are known to be equal.
            same = self.scalars.setdefault(instr.key(), instr)
            if same is not instr:
                return same
        self.body.append(instr)
        return instr

    def const(self, value: float | int | bool, type_: str) -> Instr:
        if type_ in _BITS and not isinstance(value, bool):
            value = _whole(value, type_)
        return self.emit("const", [], type_, value=value)

    def uniform(self, value: Instr) -> Instr:
        """Return a scalar as loops can use it: i64 becomes i32, f64 becomes f32."""
        if self.lanes is None or value.type not in ("i64", "f64"):
            return value
        narrow = "i32" if value.type == "i64" else "f32"
        if value.op == "const":
            return self.const(value.attrs["value"], narrow)
        lanes, self.lanes = self.lanes, None
        result = self.emit("cast", [value], narrow)
        self.lanes = lanes
        return result

    def cast(self, value: Instr, type_: str) -> Instr:
        value = self.uniform(value)
        if value.type == type_:
            return value
        if value.op == "const" and type_ != "bool":
            number = value.attrs["value"]
            return self.const(float(number) if type_[0] == "f" else number, type_)
        return self.emit("cast", [value], type_)

    def convert(self, value: Instr, type_: ast.TypeName, pos: Pos) -> Instr:
        """Return a value as a variable of a written type holds it."""
        value = self.uniform(value)
        lane = self.lanes is not None
        if type_.base == "double" and lane:
            raise CompileError("double is for numbers outside of map and filter; use float", pos)
        if type_.base in scope.FLOATS:
            return self.cast(value, "f64" if type_.base == "double" else "f32")
        if type_.base == "bool":
            if value.type == "bool":
                return value
            return self.emit("ne", [value, self.const(0, value.type)], "bool")
        if type_.base == "uint32":
            return self.cast(value, "u32")
        whole = "i32" if lane else "i64"
        if type_.base == "int":
            return self.cast(value, whole)
        scope.storage(type_)
        bits = {"uint8": 8, "uint16": 16}.get(type_.base, type_.bits)
        if isinstance(bits, str) and bits not in self.signature.params:
            raise CompileError(f"uint<{bits}>: {bits} must be a parameter or a number", type_.pos)
        if value.type in ("f32", "f64"):
            return self.emit("saturate", [self.cast(value, "f32")], whole, bits=bits)
        if value.type == "bool":
            return self.cast(value, whole)
        return self.emit("wrap", [self.cast(value, whole)], whole, bits=bits)

    def loop(self, domain: Instr, emit: Callable[[], Instr]) -> Instr:
        """Return a loop over a domain; what `emit` emits goes into it, and what it returns is
        returned."""
        if self.lanes is not None:
            raise CompileError("map, reduce and filter cannot be used inside a lambda", None)
        self.lanes, self.domain = [], domain
        loop = Loop(domain, self.lanes)
        result = emit()
        self.lanes = None
        self.body.append(loop)
        return result

    def limit(self, size: Instr, what: str) -> None:
        """Refuse a payload with more elements than the gradient has."""
        if size is not self.n:
            fits = self.emit("le", [size, self.n], "bool")
            message = f"{what} must not have more elements than the gradient"
            self.emit("require", [fits], "none", message=message)
            self.limited.add(size.id)

    def new_vector(self, hint: str, elem: str, size: Instr, kind: str = "temp") -> str:
        name, number = hint, 1
        while name in self.vectors:
            name, number = f"{hint}_{number}", number + 1
        self.vectors[name] = Vector(name, elem, size, kind)
        return name
