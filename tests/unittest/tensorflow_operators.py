"""Compares a generated library of TensorFlow operators with hipress.Compressor, bit for bit.

    python tensorflow_operators.py LIBRARY TYPE '{"ratio": 0.1}'

A separate process, because TensorFlow does not share one with MXNet or PyTorch reliably.
"""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import tensorflow as tf

import hipress

N = 1003
STREAM = 3


class Operators:
    """Operators of a codec, with its states and its parameters."""

    def __init__(self, library: str, type: str, params: dict[str, float]) -> None:
        module = tf.load_op_library(library)
        stem = re.sub("(?<=[a-z])(?=[A-Z])", "_", type).lower()
        self.encoder, self.decoder, self.summer = (
            getattr(module, f"{kind}_{stem}") for kind in ("encode", "decode", "decode_sum")
        )
        self.params, self.type = params, type
        self.compressor = self.new_compressor()
        self.stream = {"stream": STREAM} if self.compressor.uses_step else {}

    def new_compressor(self) -> hipress.Compressor:
        compressor = hipress.Compressor(self.type, **self.params)
        if compressor.uses_step:
            compressor.stream = STREAM
        return compressor

    def new_states(self, n: int = N) -> list[tf.Tensor]:
        if not self.compressor.uses_step:
            return []
        states = [tf.zeros(n) for _ in self.compressor.state_names]
        return [*states, tf.zeros(1, tf.int64)]

    def encode(self, gradient: tf.Tensor, states: list[tf.Tensor]):
        """Return (payload and perhaps its size), new states."""
        out = self.encoder(gradient, *states, **self.params, **self.stream)
        out = list(out) if isinstance(out, tuple) else [out]
        head = 1 if self.compressor.fixed_size else 2
        return out[:head], out[head:]

    def decode(self, payload: list[tf.Tensor], n: object = N, **options: object) -> tf.Tensor:
        return self.decoder(*payload, n, **options, **self.params)

    def decode_sum(self, payloads: list[list[tf.Tensor]], n: int = N) -> tf.Tensor:
        return self.summer(*map(list, zip(*payloads)), n, **self.params)


def payload_bytes(payload: list[tf.Tensor]) -> bytes:
    data = payload[0].numpy().tobytes()
    if len(payload) == 1:
        return data
    size = int(payload[1][0])
    assert not any(data[size:]), "what is after a payload must be zeros"
    return data[:size]


def gradients(dtype: tf.DType) -> list[tf.Tensor]:
    random = np.random.default_rng(1)
    return [tf.cast(random.normal(size=(17, 59)).astype(np.float32), dtype) for _ in range(3)]


def check_values(ops: Operators, dtype: tf.DType, encode) -> None:
    """Compare payloads, states, decoded values and sums of three steps."""
    compressor = ops.new_compressor()
    states, payloads, expected = ops.new_states(), [], []
    for gradient in gradients(dtype):
        before = [state.numpy().copy() for state in states]
        payload, new = encode(gradient, states)
        assert all((state.numpy() == b).all() for state, b in zip(states, before)), "not pure"
        states = new
        bits = gradient.numpy() if dtype != tf.bfloat16 else tf.bitcast(gradient, tf.uint16).numpy()
        expected.append(compressor.encode(bits, dtype.name))
        payloads.append(payload)
        assert payload_bytes(payload) == expected[-1], (dtype, len(expected))
        assert payload[0].shape == [compressor.max_bytes(N, dtype.name)]
        kept = compressor.state_dict()
        for name, state in zip(compressor.state_names, states):
            assert state.numpy().tobytes() == kept["states"][name].tobytes(), name
        if states:
            assert int(states[-1][0]) == kept["step"] == len(expected)
        decoded = ops.decode(payload, T=dtype)
        if dtype == tf.bfloat16:
            decoded = tf.bitcast(decoded, tf.uint16)
        other = compressor.decode(expected[-1], N, dtype.name)
        assert decoded.numpy().tobytes() == np.asarray(other).tobytes()
    total = compressor.decode_sum(expected, N)
    assert ops.decode_sum(payloads).numpy().tobytes() == total.tobytes()


def check_shapes(ops: Operators) -> None:
    """Check what is known of shapes while a graph is made."""

    @tf.function(autograph=False)
    def work(gradient, *states):
        payload, new = ops.encode(gradient, list(states))
        size = tf.size(gradient, tf.int64)
        return payload, new, ops.decode(payload), ops.decode(payload, size)

    def shapes(gradient: list) -> list:
        states = [tf.TensorSpec(s.shape, s.dtype) for s in ops.new_states()]
        graph = work.get_concrete_function(tf.TensorSpec(gradient), *states)
        payload, new, decoded, counted = graph.structured_outputs
        assert [s.shape.as_list() for s in new] == [s.shape for s in ops.new_states()]
        return [t.shape.as_list() for t in [*payload, decoded, counted]]

    limit = ops.compressor.max_bytes(N)
    size = [] if ops.compressor.fixed_size else [[1]]
    assert shapes([17, 59]) == [[limit], *size, [N], [N]]
    assert shapes([None, 59]) == [[None], *size, [N], [None]]


def check_refusals(ops: Operators) -> None:
    """Check each wrong call's message."""
    gradient, states = gradients(tf.float32)[0], ops.new_states()
    payload, _ = ops.encode(gradient, states)
    refused("int32", lambda: ops.encode(tf.cast(gradient, tf.int32), states))
    refused("float", lambda: ops.decode([tf.zeros(8), *payload[1:]]))
    refused("n must be one number, not 2", lambda: ops.decode(payload, [1, 2]))
    refused("an element count must be 0 or more, not -1", lambda: ops.decode(payload, -1))
    refused("payload", lambda: ops.decode([payload[0][:3], *payload[1:]]))
    if not ops.compressor.fixed_size:
        refused("size must be one number, not 2", lambda: ops.decode([payload[0], [1, 2]]))
        refused("size says 9999 bytes", lambda: ops.decode([payload[0], [9999]]))
    if ops.compressor.state_names:
        state = f"{ops.compressor.state_names[0]} of {ops.compressor.type} has 5 elements"
        refused(
            f"{state}, but must have {N}", lambda: ops.encode(gradient, [tf.zeros(5), *states[1:]])
        )
    if states:
        refused(
            "has 2 elements, but must have 1",
            lambda: ops.encode(gradient, [*states[:-1], tf.zeros(2, tf.int64)]),
        )
    for name in ops.params:
        wrong = {**ops.params, name: type(ops.params[name])(-1)}

        @tf.function(autograph=False)
        def graph(wrong=wrong):
            return ops.encoder(gradient, *states, **wrong)

        refused(
            f"{name} of compression type {ops.compressor.type} must be",
            lambda wrong=wrong: ops.encoder(gradient, *states, **wrong),
        )
        refused(f"{name} of compression type {ops.compressor.type} must be", graph)


def refused(sentence: str, call) -> None:
    try:
        call()
    except (tf.errors.InvalidArgumentError, TypeError, ValueError) as error:
        assert sentence in str(error), f"{sentence!r} is not in {error}"
    else:
        raise AssertionError(f"not refused: {sentence}")


def main() -> None:
    library, type, params = sys.argv[1:]
    ops = Operators(library, type, json.loads(params))
    graph = tf.function(lambda gradient, states: ops.encode(gradient, states), autograph=False)
    for dtype in (tf.float32, tf.float16, tf.bfloat16):
        check_values(ops, dtype, ops.encode)
        check_values(ops, dtype, graph)
    check_shapes(ops)
    check_refusals(ops)
    empty, _ = ops.encode(tf.zeros(0), ops.new_states(0))
    assert ops.decode(empty, 0).shape == [0]


if __name__ == "__main__":
    main()
