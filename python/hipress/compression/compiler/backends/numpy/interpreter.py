"""The interpreter: runs the IR with NumPy. Every other backend must equal it bit for bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from string import Template

import numpy as np

from hipress.compression.compiler.backends.numpy import cosines, floats, gaps, packing, philox
from hipress.compression.compiler.backends.numpy import scalar_operations as ops
from hipress.compression.compiler.compiler_errors import PayloadError
from hipress.compression.compiler.ir.ir import (
    FIELD_BYTES,
    Block,
    Function,
    Instr,
    Loop,
    Program,
)
from hipress.compression.compiler.passes import optimize
from hipress.compression.compiler.passes.analyses import integer_levels

_SCALAR = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "f32": np.float32}
BLOCK = 4096
EXTREME_STARTS = {"max": np.float32(-np.inf), "min": np.float32(np.inf)}


def fill_states(
    program: Program, states: dict[str, np.ndarray] | None, n: int
) -> dict[str, np.ndarray]:
    """Return `states` itself, or a new dict, with float32[n] zeros for missing states."""
    states = states if states is not None else {}
    for name in program.states:
        states.setdefault(name, np.zeros(n, np.float32))
    return states


def check_params(program: Program, given: dict[str, float | int]) -> dict[str, float | int]:
    """Return all parameters, with defaults.

    Raises:
        ValueError: For an unknown name, a missing one, or a value that is not allowed.
    """
    names = [param.name for param in program.params]
    for name in given:
        if name not in names:
            known = ", ".join(names) or "none"
            raise ValueError(f'{program.name} has no parameter "{name}"; its parameters: {known}')
    values: dict[str, float | int] = {}
    for param in program.params:
        name, allowed = param.name, param.allowed()
        value = given.get(name, param.default)
        if value is None:
            raise ValueError(f"{program.name} needs the parameter {name}: {allowed}")
        if not isinstance(value, (int, float)) or not param.allows(value):
            raise ValueError(f"{name} of {program.name} must be {allowed}, not {value!r}")
        values[name] = int(value) if param.integer else float(np.float32(value))
    return values


class Interpreter:
    """An algorithm, optimized or not, with values of its parameters, run with NumPy."""

    def __init__(self, program: Program, **params: float | int) -> None:
        self.program = program
        self.params = check_params(program, params)

    def encode(
        self,
        gradient: np.ndarray,
        states: dict[str, np.ndarray] | None = None,
        step: int = 0,
        stream: int = 0,
    ) -> bytes:
        """Return a gradient's payload, and update `states`. Exact programs also take 16 bits."""
        states = fill_states(self.program, states, gradient.size)
        run = _Run(self.program.encode, self.params, gradient.size, step, stream)
        dtype = None if self.program.exact else np.float32
        run.memory[self.program.encode.input] = np.ascontiguousarray(gradient, dtype)
        run.memory.update(states)
        run.execute()
        states.update({name: run.memory[name] for name in self.program.states})
        return run.payload

    def decode(self, payload: bytes, n: int) -> np.ndarray:
        """Return float32[n]; PayloadError for a malformed payload."""
        return self._run(payload, n).memory[self.program.decode.output]

    def decode_add(self, payload: bytes, total: np.ndarray) -> None:
        """Add the decoded payload to total. A sparse one changes only elements that it has."""
        total[:] = self._run(payload, total.size, total).memory[self.program.decode.output]

    def decode_sum(self, payloads: list[bytes], n: int) -> np.ndarray:
        """Return float32[n], the merged payloads (passes/merge.py) in their order."""
        if not self.program.optimized:
            program = optimize(copy.deepcopy(self.program))
            return Interpreter(program, **self.params).decode_sum(payloads, n)
        levels = integer_levels(self.program.decode)
        if levels is None:
            total = self.decode(payloads[0], n)
            for payload in payloads[1:]:
                self.decode_add(payload, total)
            return total
        counts, unit = np.zeros(n, np.int32), np.float32(0)
        for payload in payloads:
            run = self._run(payload, n)
            counts += ops.spread(run.values[levels.level.id], n, "i32")
            unit = run.values[levels.unit.id]
        with np.errstate(all="ignore"):
            return unit * counts.astype(np.float32)

    def _run(self, payload: bytes, n: int, add_to: np.ndarray | None = None) -> _Run:
        run = _Run(self.program.decode, self.params, n, 0, 0)
        run.input, run.add_to = payload, add_to
        run.execute()
        return run


class _Run:
    """One call of one function."""

    def __init__(self, function: Function, params: dict, n: int, step: int, stream: int) -> None:
        self.function, self.params, self.n = function, params, n
        self.step, self.stream = step, stream
        self.memory: dict[str, np.ndarray] = {}
        self.values: dict[int, object] = {}
        self.payload, self.input, self.position = b"", b"", 0
        self.add_to: np.ndarray | None = None

    def execute(self) -> None:
        with np.errstate(all="ignore"):
            for node in self.function.body:
                # A value of a loop is an array with that of each element, or a reduction's.
                count = self.values[node.domain.id] if isinstance(node, Loop) else 0
                self.index = np.arange(count, dtype=np.int64)
                for instr in node.body:
                    args = [self.values[arg.id] for arg in instr.args]
                    special = getattr(self, f"do_{instr.op}", None)
                    self.values[instr.id] = (
                        ops.compute(instr, args, self.params)
                        if special is None
                        else special(instr, args)
                    )

    def bits(self, name: str) -> int:
        bits = self.function.vectors[name].bits
        return bits if isinstance(bits, int) else self.params[bits]

    # Loops ----------------------------------------------------------------------

    def do_index(self, instr: Instr, args: list) -> np.ndarray:
        return self.index.astype(np.int32)

    def do_random(self, instr: Instr, args: list) -> np.ndarray:
        draw = philox.words if instr.op == "random" else philox.halves
        return self.draw(draw, self.index.size, instr.attrs["site"])

    do_random16 = do_random

    def do_load(self, instr: Instr, args: list) -> np.ndarray:
        return self.vector(instr.vec[0])

    def do_load_at(self, instr: Instr, args: list) -> np.ndarray:
        return ops.take(self.vector(instr.vec[0]), args[0], self.index.size)

    def do_bucket_load(self, instr: Instr, args: list) -> np.ndarray:
        return self.memory[instr.vec[0]][self.index // args[0]]

    def do_store(self, instr: Instr, args: list) -> None:
        self.store(instr.vec[0], ops.spread(args[0], self.index.size, instr.args[0].type))

    def do_bucket_reduce(self, instr: Instr, args: list) -> None:
        start, function = EXTREME_STARTS[instr.attrs["fn"]], ops.EXTREMES[instr.attrs["fn"]]
        values = ops.spread(args[1], self.index.size, "f32")
        self.memory[instr.vec[0]] = ops.fold_blocks(values, args[0], start, function)

    def draw(self, draw: Callable, count: int, site: int) -> np.ndarray:
        return draw(count, site, self.params.get("seed", 0), self.step, self.stream)

    def kept(self, name: str) -> bool:
        needs = self.function.vectors[name].needs
        return needs is None or bool(self.values[needs.id])

    def vector(self, name: str) -> np.ndarray:
        values = self.memory[name]
        return values if self.kept(name) else np.zeros_like(values)

    def store(self, name: str, values: np.ndarray) -> None:
        vector = self.function.vectors[name]
        if not self.kept(name):
            return
        if vector.kind == "output" and self.add_to is not None:
            values = self.add_to + values
        if vector.elem in ("f16", "bf16"):
            raw = packing.to_storage(values, vector.elem).tobytes()
            values = packing.from_storage(raw, vector.elem)
        self.memory[name] = values

    def do_reduce(self, instr: Instr, args: list) -> object:
        function = instr.attrs["fn"]
        values = ops.spread(args[0], self.index.size, instr.args[0].type)
        if function == "sum":
            if instr.type == "i64":
                return int(values.astype(np.int64).sum())
            blocks = ops.fold_blocks(values, BLOCK, np.float32(0), np.add).astype(np.float64)
            return np.cumsum(blocks)[-1] if blocks.size else np.float64(0)
        if isinstance(function, Block):
            combine, start = self.combiner(function), args[1]
        else:
            combine, start = ops.EXTREMES[function], EXTREME_STARTS[function]
        total = values.dtype.type(start)
        for block in ops.fold_blocks(values, BLOCK, total, combine):
            total = combine(total, block)
        return values.dtype.type(total)

    def combiner(self, block: Block) -> object:
        def combine(a: object, b: object) -> object:
            known = {block.params[0].id: a, block.params[1].id: b}
            for instr in block.body:
                args = [known[arg.id] for arg in instr.args]
                known[instr.id] = ops.compute(instr, args, self.params)
            return known[block.result.id]

        return combine

    # Scalars and whole vectors -------------------------------------------------------------------

    def do_n(self, instr: Instr, args: list) -> int:
        return self.n

    def do_step(self, instr: Instr, args: list) -> int:
        return self.step

    def do_param(self, instr: Instr, args: list) -> object:
        value = self.params[instr.attrs["name"]]
        return np.float32(value) if instr.type == "f32" else value

    def do_element(self, instr: Instr, args: list) -> object:
        value = ops.take(self.memory[instr.vec[0]], np.array([args[0]]), 1)[0]
        return int(value) if instr.type == "i64" else value

    def do_compact(self, instr: Instr, args: list) -> int:
        found = np.flatnonzero(self.memory[instr.vec[1]])
        self.memory[instr.vec[0]] = found.astype(np.int32)
        return found.size

    def do_topk(self, instr: Instr, args: list) -> int:
        """Return the indices of the k largest, ascending. Of equal values the first count."""
        target, source = instr.vec
        values = self.memory[source]
        k = min(max(args[0], 0), values.size)
        order = np.argsort(~ops.ordered(values), kind="stable")[:k]
        self.memory[target] = np.sort(order).astype(np.int32)
        return k

    def do_sort(self, instr: Instr, args: list) -> None:
        values = self.memory[instr.vec[1]]
        self.memory[instr.vec[0]] = values[np.argsort(ops.ordered(values), kind="stable")]

    def do_dct(self, instr: Instr, args: list) -> None:
        source = self.memory[instr.vec[1]]
        self.memory[instr.vec[0]] = getattr(cosines, instr.op)(source, args[0])

    do_idct = do_dct

    def strata(self, size: int, k: int, site: int) -> np.ndarray:
        """Return one random index of each of k parts of range(size)."""
        k = min(max(k, 0), size)
        j = np.arange(k, dtype=np.int64)
        low, high = j * size // max(k, 1), (j + 1) * size // max(k, 1)
        return low + (self.draw(philox.words, k, site).astype(np.int64) * (high - low) >> 32)

    def do_random_indices(self, instr: Instr, args: list) -> int:
        run, size = instr.attrs["run"], min(max(args[0], 0), self.n)
        count = min(max(args[1], 0), size)
        starts = run * self.strata(-(-size // run), -(-count // run), instr.attrs["site"])
        indices = np.minimum((starts[:, None] + np.arange(run)).ravel()[:count], size - 1)
        self.memory[instr.vec[0]] = indices.astype(np.int32)
        return indices.size

    def do_scatter(self, instr: Instr, args: list) -> None:
        vectors = self.function.vectors
        if not self.kept(instr.vec[0]):
            return
        target, index = instr.vec[0], self.memory[instr.vec[1]].astype(np.int64)
        values = self.memory[instr.vec[2]] if len(instr.vec) > 2 else np.full(index.size, args[0])
        if self.function.kind == "decode" and index.size:
            if index[0] < 0 or index[-1] >= self.n or (np.diff(index) <= 0).any():
                raise self.bad_indices()
        there = (index >= 0) & (index < self.n)  # an encoder leaves out other indices
        index, values = index[there], values[there]
        result = self.memory[target].copy()
        if vectors[target].kind == "output" and self.add_to is not None:
            result = self.add_to.copy()
            values = result[index] + values
        result[index] = values
        self.memory[target] = result

    # Payloads ----------------------------------------------------------------------

    def bad_indices(self) -> PayloadError:
        return PayloadError(f"the payload must have indices that ascend and are below {self.n}")

    def keep_bytes(self, name: str, data: bytes) -> int:
        self.memory[name] = np.frombuffer(data, np.uint8).astype(np.int32)
        return len(data)

    def do_pack_ascending(self, instr: Instr, args: list) -> int:
        target, index = instr.vec
        pack = packing.pack_ascending if instr.op == "pack_ascending" else gaps.pack_gaps
        return self.keep_bytes(target, pack(self.memory[index], self.n))

    do_pack_gaps = do_pack_ascending

    def do_unpack_ascending(self, instr: Instr, args: list) -> None:
        target, source = instr.vec
        data = self.memory[source].astype(np.uint8).tobytes()
        unpack = packing.unpack_ascending if instr.op == "unpack_ascending" else gaps.unpack_gaps
        index = unpack(data, args[0], self.n)
        if index is None:
            raise self.bad_indices()
        self.memory[target] = index

    do_unpack_gaps = do_unpack_ascending

    def do_gaps_bytes(self, instr: Instr, args: list) -> int:
        return len(gaps.pack_gaps(self.memory[instr.vec[0]], self.n))

    def do_pack_where(self, instr: Instr, args: list) -> int:
        target, bits, mask = instr.vec
        self.memory[target] = self.memory[bits][self.memory[mask] != 0]
        return self.memory[target].size

    def do_count_where(self, instr: Instr, args: list) -> int:
        return np.count_nonzero(self.memory[instr.vec[0]])

    def do_unpack_where(self, instr: Instr, args: list) -> None:
        target, packed, mask = instr.vec
        bits = self.memory[target] = np.zeros(self.memory[mask].size, np.int32)
        bits[self.memory[mask] != 0] = self.memory[packed]

    def do_pack_floats(self, instr: Instr, args: list) -> int:
        return self.keep_bytes(instr.vec[0], floats.pack(self.memory[instr.vec[1]]))

    def do_unpack_floats(self, instr: Instr, args: list) -> None:
        self.store(instr.vec[0], floats.unpack(self.input, self.n))

    def do_emit(self, instr: Instr, args: list) -> None:
        parts = []
        for kind, what in instr.attrs["fields"]:
            if kind == "vector":
                parts.append(self.packed(what))
            elif kind == "f32":
                parts.append(np.float32(args[what]).tobytes())
            else:
                size = FIELD_BYTES[kind]
                parts.append((int(args[what]) & ((1 << 8 * size) - 1)).to_bytes(size, "little"))
        self.payload = b"".join(parts)

    def packed(self, name: str) -> bytes:
        """Return a vector as a payload has it."""
        vector, values = self.function.vectors[name], self.memory[name]
        if vector.packed:
            return packing.pack(values, self.bits(name), vector.order, vector.multiple)
        return packing.to_storage(values, vector.elem).tobytes()

    def take(self, size: int) -> bytes:
        data = self.input[self.position : self.position + size]
        if len(data) != size:
            least, has = self.position + size, len(self.input)
            raise PayloadError(f"the payload must have at least {least} bytes, not {has}")
        self.position += size
        return data

    def do_field(self, instr: Instr, args: list) -> object:
        dtype = _SCALAR[instr.attrs["elem"]]
        value = np.frombuffer(self.take(dtype().itemsize), dtype)[0]
        return value if dtype is np.float32 else int(value)

    def do_field_vector(self, instr: Instr, args: list) -> None:
        name = instr.vec[0]
        vector, count = self.function.vectors[name], max(int(args[0]), 0)
        if vector.packed:
            bits = self.bits(name)
            data = self.take(packing.packed_bytes(count, bits, vector.multiple))
            self.memory[name] = packing.unpack(data, count, bits, vector.order)
            if instr.attrs.get("zeros") and self.packed(name) != data:
                raise PayloadError("the payload must have zeros where bits pad a byte")
        else:
            data = self.take(count * vector.bits // 8)
            self.memory[name] = packing.from_storage(data, vector.elem)

    def do_end_of_payload(self, instr: Instr, args: list) -> None:
        right, has = self.position, len(self.input)
        if right != has:
            raise PayloadError(f"the payload must have {right} bytes, not {has}")

    def do_require(self, instr: Instr, args: list) -> None:
        if not args[0]:
            raise PayloadError(instr.attrs["message"])


_MODULE = Template('''"""$name on NumPy, by CompLL's interpreter.

Generated by CompLL from $file; do not edit.
"""

from hipress.compression import compiler as compll

SOURCE = $source


def coder(**params):
    """encode(gradient, states, step) -> bytes, decode(payload, n) -> float32[n]."""
    return compll.Interpreter(compll.optimize(compll.read_program(SOURCE, "$name")), **params)
''')


def generate_module(program: Program) -> str:
    """Return the text of a Python module that runs an algorithm with the interpreter."""
    return _MODULE.substitute(name=program.name, file=program.file, source=repr(program.source))
