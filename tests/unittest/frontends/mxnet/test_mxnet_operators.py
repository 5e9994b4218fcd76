"""mx.nd.contrib.encode_<type> and so on: the bytes of hipress.Compressor, symbols, blocks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import hipress
from compll_helpers import gradient
from hipress.compression import compiler
from hipress.native import library
from scripts import SCRIPTS

mxnet_hipress = pytest.importorskip("mxnet_hipress", exc_type=ImportError)
import mxnet as mx  # noqa: E402

from mxnet_hipress import operators  # noqa: E402

SHAPE = (10, 100)
TYPES = sorted(set(hipress.codecs()) - {"none"})


@pytest.fixture(scope="module", autouse=True)
def loaded():
    mxnet_hipress.load_operators()


def op(kind: str, type_: str, where: object = None) -> object:
    return getattr((where or mx.nd).contrib, operators.operator_name(kind, type_))


def array(seed: int = 0, dtype: str = "float32") -> mx.nd.NDArray:
    return mx.nd.array(gradient(1000, seed).reshape(SHAPE), dtype=dtype)


def payload_bytes(encoded: object) -> bytes:
    if isinstance(encoded, list):
        payload, size = encoded
        return payload.asnumpy()[: int(size.asscalar())].tobytes()
    return encoded.asnumpy().tobytes()


def parts(encoded: object) -> list:
    return encoded if isinstance(encoded, list) else [encoded]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("type_", TYPES)
def test_operators_give_the_compressors_bytes(type_, dtype):
    codec, encodings, payloads = hipress.Compressor(type_), [], []
    states = operators.new_states(type_, array())
    for step in range(3):
        x = array(step, dtype)
        encodings.append(parts(op("encode", type_)(x, *states)))
        payloads.append(codec.encode(x))
        encoded = encodings[-1] if len(encodings[-1]) > 1 else encodings[-1][0]
        assert payload_bytes(encoded) == payloads[-1]
        decoded = op("decode", type_)(*encodings[-1], shape=SHAPE, dtype=dtype)
        expected = codec.decode(payloads[-1], SHAPE, dtype)
        assert decoded.asnumpy().tobytes() == expected.tobytes()
        assert decoded.shape == SHAPE
    for name, state in zip(codec.state_names, states):
        assert state.asnumpy().tobytes() == codec.state_dict()["states"][name].tobytes()
    inputs = [item for column in zip(*encodings) for item in column]
    total = op("decode_sum", type_)(*inputs, num_args=3, shape=SHAPE)
    assert total.asnumpy().tobytes() == codec.decode_sum(payloads, SHAPE).tobytes()


@pytest.mark.parametrize("type_", ["2bit", "dgc", "terngrad"])
def test_symbols_know_their_shapes(type_):
    inputs = hipress.Compressor(type_)
    names = [*inputs.state_names, "step"]
    states = [mx.sym.var(name, shape=SHAPE) for name in inputs.state_names]
    states.append(mx.sym.var("step", shape=(1,)))
    symbol = op("encode", type_, mx.sym)(mx.sym.var("gradient"), *states)
    limit = inputs.max_bytes(1000)
    shapes = symbol.infer_shape(gradient=SHAPE)
    assert shapes[0] == [SHAPE] and shapes[1][0] == (limit,)
    assert shapes[2] == [SHAPE] * len(inputs.state_names) + [(1,)]
    assert symbol.list_auxiliary_states() == names
    assert symbol.infer_type(gradient="float32")[2][-1] is np.int64
    executor = symbol.simple_bind(mx.cpu(), gradient=SHAPE, grad_req="null")
    codec = hipress.Compressor(type_)
    for step in range(2):
        executor.forward(gradient=array(step))
        out = executor.outputs
        assert payload_bytes(out if len(out) > 1 else out[0]) == codec.encode(array(step))


def test_a_symbol_with_states_of_unknown_shape_is_refused():
    x, residual, step = (mx.sym.var(name) for name in ("x", "residual", "step"))
    with pytest.raises(mx.MXNetError, match="2 states, which are variables whose shape is said"):
        mx.sym.contrib.encode_2bit(x, residual, step)
    with pytest.raises(mx.MXNetError, match="needs a gradient and 2 states"):
        mx.sym.contrib.encode_2bit(x)


class Codec(mx.gluon.HybridBlock):
    """Block that sends its input through onebit, with the error feedback in parameters."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            frozen = {"grad_req": "null", "init": "zeros", "differentiable": False}
            self.residual = self.params.get("residual", shape=SHAPE, **frozen)
            self.step = self.params.get("step", shape=(1,), dtype="int64", **frozen)

    def hybrid_forward(self, F, x, residual, step):
        payload = F.contrib.encode_onebit(x * 1, residual, step)
        return F.BlockGrad(F.contrib.decode_onebit(payload, shape=SHAPE)) * 1


def test_a_hybridized_block():
    block, codec = Codec(), hipress.Compressor("onebit")
    block.initialize()
    block.hybridize()
    for step in range(3):
        expected = codec.decode(codec.encode(array(step)), SHAPE)
        np.testing.assert_array_equal(block(array(step)).asnumpy(), expected)
    np.testing.assert_array_equal(block.residual.data().asnumpy().ravel(), codec.residual)
    assert block.step.data().asscalar() == 3


def test_parameters_and_streams():
    x = array()
    states = operators.new_states("terngrad", x)
    encoded = mx.nd.contrib.encode_terngrad(x, *states, bitwidth=8, seed=3, stream=9)
    codec = hipress.Compressor("terngrad", bitwidth=8, seed=3)
    codec.stream = 9
    assert payload_bytes(encoded) == codec.encode(x)


def test_bad_calls_are_mxnet_errors_of_one_sentence():
    x, contrib = array(), mx.nd.contrib
    states = operators.new_states("dgc", x)
    payload = contrib.encode_2bit(x, *operators.new_states("2bit", x))
    cases = {
        "ratio of compression type dgc must be a finite number": lambda: contrib.encode_dgc(
            x, *states, ratio=2
        ),
        'has no parameter "rate"; its parameters: ratio': lambda: contrib.encode_dgc(
            x, *states, rate=1
        ),
        "the velocity of dgc has 5 elements, the gradient 1000": lambda: contrib.encode_dgc(
            x, states[0], mx.nd.zeros(5), states[2]
        ),
        "a gradient must be float32 or float16": lambda: contrib.encode_2bit(
            x.astype("int32"), *states[1:]
        ),
        "step must be int64": lambda: contrib.encode_2bit(x, states[0], mx.nd.zeros(1)),
        "a payload must be uint8": lambda: contrib.decode_2bit(x, shape=(10, 100)),
        "decoding 2bit needs the gradient's shape": lambda: contrib.decode_2bit(payload),
        "1100 elements must have 276 bytes, not 252": lambda: contrib.decode_2bit(
            payload, shape=1100
        ),
        'stream must be an integer from 0 to 4294967295, not "-1"': lambda: contrib.encode_dgc(
            x, *states, stream=-1
        ),
    }
    for sentence, call in cases.items():
        with pytest.raises(mx.MXNetError, match=sentence) as caught:
            result = call()
            for array_ in result if isinstance(result, list) else [result]:
                array_.wait_to_read()
        assert "\n" not in str(caught.value).strip(), sentence


def test_there_is_no_backward():
    x = array()
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.contrib.encode_bf16(x)
    with pytest.raises(mx.MXNetError, match="encode_bf16 is non-differentiable"):
        y.backward()


def test_a_loaded_algorithm_is_an_operator(tmp_path):
    path = tmp_path / "copied.cll"
    text = (compiler.SPECS / "onebit.cll").read_text()
    path.write_text(text.replace('algorithm "onebit"', 'algorithm "mxnet-copy"'))
    assert compiler.load(path) == "mxnet-copy"
    x = array()
    states = operators.new_states("mxnet-copy", x)
    encoded = mx.nd.contrib.encode_mxnet_copy(x, *states)
    assert payload_bytes(encoded) == hipress.Compressor("onebit").encode(x)


@pytest.mark.slow
def test_without_the_built_library_it_is_compiled_on_first_use(tmp_path):
    """Operators are compiled on first use without the built library, as from a wheel, which is
    built where MXNet is not installed."""
    shutil.copy(library.library_path(), tmp_path / "libhipress.so")
    script = SCRIPTS / "mxnet_operators.py"
    env = {
        **os.environ,
        "HIPRESS_LIBRARY": str(tmp_path / "libhipress.so"),
        "HIPRESS_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    result = subprocess.run(
        [sys.executable, str(script)],
        env=env,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str([0, 60] * 3)
    assert list((tmp_path / "cache").glob("hipress_mxnet_ops-*.so"))
