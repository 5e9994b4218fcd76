"""Largest payload: a computation of n and the parameters alone."""

from __future__ import annotations

from hipress.compression.compiler.errors import CompileError
from hipress.compression.compiler.ir.ir import FIELD_BYTES, Function, Instr
from hipress.compression.compiler.ir.slices import backward, clone

_PURE = {
    "const",
    "param",
    "n",
    "add",
    "sub",
    "mul",
    "div",
    "mod",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "neg",
    "not",
    "floor",
    "ceil",
    "abs",
    "sqrt",
    "cast",
    "saturate",
    "wrap",
    "select",
    "ascending_bytes",
}


class PayloadSize:
    """The upper bound of an encoder's payload.

    :ivar body: scalar instructions that compute `result` (i64, bytes)
    :ivar fixed: True if every payload has exactly that size
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.body: list[Instr] = []
        self.fixed = True
        emit = next(node for node in function.body if isinstance(node, Instr) and node.op == "emit")
        total = self._const(0)
        for kind, what in emit.attrs["fields"]:
            if kind == "vector":
                size = self._vector_bytes(what)
            else:
                size = self._const(FIELD_BYTES[kind])
            total = self._emit("add", [total, size])
        self.result = total

    def _emit(self, op: str, args: list[Instr], type_: str = "i64", **attrs: object) -> Instr:
        instr = Instr(op, args, type_, attrs=attrs)
        self.body.append(instr)
        return instr

    def _const(self, value: int) -> Instr:
        return self._emit("const", [], value=value)

    def _vector_bytes(self, name: str) -> Instr:
        vector = self.function.vectors[name]
        count = self.bound(vector.size)
        if not vector.packed:
            return self._emit("mul", [count, self._const(vector.bits // 8)])
        bits = vector.bits
        width = self._const(bits) if isinstance(bits, int) else self._emit("param", [], name=bits)
        multiple = self._const(vector.multiple)
        more = self._emit("add", [count, self._const(vector.multiple - 1)])
        padded = self._emit("mul", [self._emit("div", [more, multiple]), multiple])
        all_bits = self._emit("add", [self._emit("mul", [padded, width]), self._const(7)])
        return self._emit("div", [all_bits, self._const(8)])

    def bound(self, size: Instr) -> Instr:
        """Return an upper bound of a size; clears `fixed` if the size itself depends on data."""
        if size.op in ("compact", "pack_where"):
            self.fixed = False
            return self.bound(self.function.vectors[size.vec[1]].size)
        if size.op == "pack_floats":
            self.fixed = False
            return self._emit("floats_bytes", [self._emit("n", [])])
        if size.op == "pack_ascending":
            most = self.bound(self.function.vectors[size.vec[1]].size)
            most = self._emit("ascending_bytes", [most, self._emit("n", [])])
            # Fewer indices can take a byte more, since two parts are rounded up to bytes.
            return most if self.fixed else self._emit("add", [most, self._const(1)])
        if size.op == "gaps_bytes":
            self.fixed = False
            most = self.bound(self.function.vectors[size.vec[0]].size)
            return self._emit("gaps_most", [most, self._emit("n", [])])
        if size.op in ("topk", "random_indices"):
            if size.op == "random_indices":
                most, wanted = self.bound(size.args[0]), size.args[1]
            else:
                most, wanted = self.bound(self.function.vectors[size.vec[1]].size), size.args[0]
            k = self._most(wanted)
            if k is None:
                self.fixed = False
                return most
            zero = self._const(0)
            k = self._emit("select", [self._emit("gt", [k, zero], "bool"), k, zero])
            return self._emit("select", [self._emit("lt", [k, most], "bool"), k, most])
        if not self.is_pure(size):
            raise CompileError(
                "the size of a field must follow from the gradient's size and the parameters, or "
                "from filter, topk or sample"
            )
        mapping: dict[int, Instr] = {}
        scalars = [node for node in self.function.body if isinstance(node, Instr)]
        self.body += clone(backward(size, scalars), mapping)
        return mapping[size.id]

    def _most(self, wanted: Instr) -> Instr | None:
        """Return an upper bound of a number: itself if it is pure, or the pure side of min(a,
        b)."""
        if self.is_pure(wanted):
            return self.bound(wanted)
        if wanted.op == "select" and wanted.args[0].op == "lt":
            if wanted.args[0].args == wanted.args[1:]:
                for side in wanted.args[1:]:
                    if self.is_pure(side):
                        self.fixed = False
                        return self.bound(side)
        return None

    def is_pure(self, value: Instr) -> bool:
        """Return whether a scalar depends on n and the parameters only."""
        return value.op in _PURE and all(self.is_pure(arg) for arg in value.args)


class SizeBounds(PayloadSize):
    """Upper bounds of the sizes of a function's vectors, from n and the parameters."""

    def __init__(self, function: Function) -> None:
        self.function, self.body, self.fixed = function, [], True
        self.known: dict[int, Instr] = {}

    def bound(self, size: Instr) -> Instr:
        if size.id not in self.known:
            if self.function.kind == "decode" and not self.is_pure(size):
                # A field's count; the program requires that it is at most n.
                self.known[size.id] = self._emit("n", [])
            else:
                self.known[size.id] = super().bound(size)
        return self.known[size.id]
