"""CompLL's algorithms on a GPU, with NumPy arrays as inputs and outputs, which are copied."""

from __future__ import annotations

import numpy as np

import cuda_emulation
from hipress.compression.compiler import PayloadError, Program
from hipress.compression.compiler.backends.numpy.interpreter import fill_states
from hipress.compression.compiler.cuda import Algorithm, CudaError, DecodeCall, EncodeCall


def outcome(coder: object, payload: bytes, n: int) -> bytes | None:
    """Return what any coder decodes a payload to, or None if it refuses it."""
    try:
        return coder.decode(payload, n).tobytes()
    except (PayloadError, CudaError):
        return None


class HostCoder:
    """Coder that runs an algorithm on NumPy arrays with the interpreter's interface. It copies, and
    waits.

    Args:
        program: The program.
        shape: The shape of its calls, as for Algorithm.
        emulate: Run its kernels on the CPU.
        options: The library and the parameters, as for Algorithm.
    """

    def __init__(
        self, program: Program, shape: str = "auto", emulate: bool = False, **options: object
    ) -> None:
        if emulate:
            options["library"] = cuda_emulation.build(program)
        self.algorithm = Algorithm(program, **options)
        self.program, self.shape, self.library = program, shape, self.algorithm.library
        self._owned: list[int] = []

    def emulate(self, seed: int, processors: int = 3) -> None:
        """Set how an emulated GPU runs; see cuda_emulation.emulate()."""
        cuda_emulation.emulate(self.library, seed, processors)

    def max_bytes(self, n: int) -> int:
        return self.algorithm.max_bytes(n)

    @property
    def fixed_size(self) -> bool:
        return self.algorithm.fixed_size

    def _put(self, array: np.ndarray, size: int | None = None) -> int:
        at = self._room(array.nbytes if size is None else size)
        self.library.copy(at, array.ctypes.data, array.nbytes)
        return at

    def _room(self, size: int) -> int:
        """Return device memory that holds noise at first, and that _done() frees."""
        at = self.library.alloc(size)
        self._owned.append(at)
        noise = np.full(size, 0xA5, np.uint8)
        self.library.copy(at, noise.ctypes.data, size)
        return at

    def _take(self, at: int, array: np.ndarray) -> np.ndarray:
        self.library.copy(array.ctypes.data, at, array.nbytes)
        return array

    def _done(self) -> None:
        while self._owned:
            self.library.free(self._owned.pop())

    def encode_many(
        self,
        gradients: list[np.ndarray],
        states: list[dict[str, np.ndarray]],
        step: int = 0,
        stream: int = 0,
        batch: bool = True,
    ) -> list[bytes]:
        """Return the payloads of several gradients, as Interpreter.encode; with `batch` in one
        launch."""
        try:
            calls = [self._call(x, s, step, stream) for x, s in zip(gradients, states)]
            if batch:
                listed = self._put(np.frombuffer((EncodeCall * len(calls))(*calls), np.uint8))
                self.algorithm.encode_batch(listed, len(calls))
            else:
                for call in calls:
                    self.algorithm.encode(call, shape=self.shape)
            return [self._payload(call, s) for call, s in zip(calls, states)]
        finally:
            self._done()

    def _call(self, gradient: np.ndarray, states: dict, step: int, stream: int) -> EncodeCall:
        gradient = np.ascontiguousarray(gradient, np.float32)
        n = gradient.size
        fill_states(self.program, states, n)
        most = self.max_bytes(n)
        return self.algorithm.encode_call(
            self._put(gradient),
            n,
            [self._put(states[name]) for name in self.program.states],
            self._room(most + 64),
            most,
            self._room(8),
            self._room(self.algorithm.encode_workspace(n)),
            step,
            stream,
        )

    def _payload(self, call: EncodeCall, states: dict[str, np.ndarray]) -> bytes:
        for name, at in zip(self.program.states, call.states):
            self._take(at, states[name])
        size = int(self._take(call.bytes, np.zeros(1, np.int64))[0])
        payload = self._take(call.payload, np.zeros(call.capacity + 64, np.uint8))
        if not 0 <= size <= call.capacity or (payload[-64:] != 0xA5).any():
            raise AssertionError(f"encode wrote {size} bytes, or beyond its memory")
        return payload[:size].tobytes()

    def encode(
        self,
        gradient: np.ndarray,
        states: dict[str, np.ndarray] | None = None,
        step: int = 0,
        stream: int = 0,
    ) -> bytes:
        """Encode as Interpreter.encode does."""
        states = states if states is not None else {}
        return self.encode_many([gradient], [states], step, stream, batch=False)[0]

    def decode(self, payload: bytes, n: int) -> np.ndarray:
        """Return float32[n].

        Raises:
            PayloadError: The payload is malformed.
        """
        out = np.full(n, np.nan, np.float32)
        self._decode(payload, out, add=False)
        return out

    def decode_add(self, payload: bytes, total: np.ndarray) -> None:
        """Compute total += decoded, in place, for float32[n]."""
        self._decode(payload, total, add=True)

    def decode_sum(self, payloads: list[bytes], n: int) -> np.ndarray:
        """Return float32[n], as Interpreter.decode_sum."""
        out = np.full(n, np.nan, np.float32)
        try:
            calls = [self._decode_call(payloads[0], out)]
            for payload in payloads[1:]:
                calls.append(self._decode_call(payload, out))
                calls[-1].out = calls[0].out
            self.algorithm.decode_sum(calls, shape=self.shape)
            for call in calls:
                self._raise(call)
            return self._take(calls[0].out, out)
        finally:
            self._done()

    def _decode_call(self, payload: bytes, out: np.ndarray) -> DecodeCall:
        data = np.frombuffer(payload, np.uint8)
        return DecodeCall(
            self._put(data),
            self._put(np.array([data.size], np.int64)),
            data.size,
            out.size,
            self._put(out),
            self._put(np.full(2, -1, np.int64)),
            self._room(self.algorithm.decode_workspace(out.size)),
        )

    def _raise(self, call: DecodeCall) -> None:
        status = self._take(call.status, np.zeros(2, np.int64))
        if status[0] != 0:
            raise PayloadError(f"the payload {self.algorithm.sentence(status)}")

    def _decode(self, payload: bytes, out: np.ndarray, add: bool) -> None:
        try:
            call = self._decode_call(payload, out)
            self.algorithm.decode(call, add, shape=self.shape)
            self._raise(call)
            self._take(call.out, out)
        finally:
            self._done()
