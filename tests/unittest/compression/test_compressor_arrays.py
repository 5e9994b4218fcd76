"""hipress.Compressor on the arrays of other libraries, in place, and its state in checkpoints."""

from __future__ import annotations

import array
import copy
import pickle
import re

import numpy as np
import pytest

import hipress
from compll_helpers import gradient, same_bits

N = 1000
SPARSE = "dgc"
STATEFUL = [name for name in hipress.codecs() if name not in ("fp16", "bf16")]


def torch_tensor(x: np.ndarray, dtype: str) -> object:
    torch = pytest.importorskip("torch")
    if dtype == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def mxnet_array(x: np.ndarray, dtype: str) -> object:
    mx = pytest.importorskip("mxnet", exc_type=ImportError)
    if dtype == "bfloat16":
        pytest.skip("MXNet has no bfloat16 arrays on a CPU")
    return mx.nd.array(x, dtype=x.dtype)


def ml_dtypes_array(x: np.ndarray, dtype: str) -> object:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return x.view(ml_dtypes.bfloat16) if dtype == "bfloat16" else x


def buffer(x: np.ndarray, dtype: str) -> object:
    if dtype == "float32":
        return array.array("f", x.tobytes())
    if dtype == "bfloat16":
        pytest.skip("the buffer protocol has no bfloat16")
    return memoryview(x)


LIBRARIES = {
    "torch": torch_tensor,
    "mxnet": mxnet_array,
    "ml_dtypes": ml_dtypes_array,
    "buffer": buffer,
}


def numbers(dtype: str) -> np.ndarray:
    """Return the gradient as NumPy stores it: bfloat16 as uint16."""
    if dtype == "bfloat16":
        return (gradient(N).view(np.uint32) >> 16).astype(np.uint16)
    return gradient(N).astype(dtype)


def bits(data: object) -> bytes:
    if hasattr(data, "asnumpy"):
        return data.asnumpy().tobytes()
    if type(data).__module__ == "torch":
        import torch

        return data.contiguous().view(torch.uint8).numpy().tobytes()
    return np.asarray(data).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["none", "onebit", SPARSE])
def test_any_librarys_arrays_are_used_where_they_lie(name, library, dtype):
    x = numbers(dtype)
    expected = hipress.Compressor(name).encode(x, dtype)
    data, out = LIBRARIES[library](x, dtype), LIBRARIES[library](np.zeros_like(x), dtype)
    codec = hipress.Compressor(name)
    assert codec.encode(data) == expected
    decoded = codec.decode(expected, N, dtype)
    assert codec.decode(expected, out=out) is out
    assert bits(out) == decoded.tobytes()
    if dtype == "float32":
        total = codec.decode_sum([expected, expected], N)
        codec.decode_sum([expected, expected], out=out)
        assert bits(out) == total.tobytes()


def test_payloads_of_any_library():
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mxnet", exc_type=ImportError)
    codec = hipress.Compressor(SPARSE)
    payload = codec.encode(gradient(N))
    expected = codec.decode(payload, N)
    numpy_payload = np.frombuffer(payload, np.uint8)
    forms = [
        bytearray(payload),
        memoryview(payload),
        numpy_payload,
        torch.tensor(list(payload), dtype=torch.uint8),
        mx.nd.array(numpy_payload, dtype=np.uint8),
        np.repeat(numpy_payload, 2)[::2],
    ]
    for form in forms:
        assert same_bits(codec.decode(form, N), expected), type(form)
    assert same_bits(codec.decode_sum(forms, N)[:1], (expected * len(forms))[:1])


@pytest.mark.parametrize("name", ["2bit", SPARSE])
def test_encode_into_given_memory(name):
    torch = pytest.importorskip("torch")
    limit = hipress.Compressor(name).max_bytes(N)
    expected = hipress.Compressor(name).encode(gradient(N))
    for out in (np.zeros(limit, np.uint8), bytearray(limit + 5), torch.zeros(limit + 1).byte()):
        written = hipress.Compressor(name).encode(gradient(N), out=out)
        assert bytes(memoryview(np.asarray(written))) == expected
        assert bytes(memoryview(np.asarray(out)))[: len(expected)] == expected
    tensor = torch.zeros(limit, dtype=torch.uint8)
    assert hipress.Compressor(name).encode(gradient(N), out=tensor).data_ptr() == tensor.data_ptr()


def test_gradients_that_are_not_contiguous_or_need_gradients():
    torch = pytest.importorskip("torch")
    x = gradient(N).reshape(10, 100)
    expected = hipress.Compressor("onebit").encode(np.ascontiguousarray(x.T))
    for data in (x.T, torch.from_numpy(x).T, torch.from_numpy(x).T.requires_grad_()):
        assert hipress.Compressor("onebit").encode(data) == expected
    tensor = torch.zeros(0, 3)
    codec = hipress.Compressor("2bit")
    assert codec.decode(codec.encode(tensor), out=tensor) is tensor


class OnGpu:
    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self):
        raise AssertionError("must not be asked")


def bad_outputs() -> list[tuple[object, str]]:
    read_only = np.zeros(N, np.float32)
    read_only.flags.writeable = False
    return [
        (np.zeros(N), "must be float32, float16 or bfloat16, not float64"),
        (np.zeros(N - 1, np.float32), "out has 999 elements, not the 1000 of shape 1000"),
        (np.zeros(2 * N, np.float32)[::2], "out must be contiguous to be written in place"),
        (read_only, "out is read-only memory"),
        (bytes(4 * N), "out is read-only memory"),
        (OnGpu(), "out is in CUDA memory, which this CPU codec cannot read"),
    ]


@pytest.mark.parametrize(("out", "sentence"), bad_outputs())
def test_bad_outputs(out, sentence):
    codec = hipress.Compressor("2bit")
    with pytest.raises(ValueError, match=re.escape(sentence)):
        codec.decode(codec.encode(gradient(N)), N, out=out)


def test_bad_inputs():
    torch = pytest.importorskip("torch")
    codec = hipress.Compressor("2bit")
    with pytest.raises(ValueError, match="gradient is in CUDA memory.*give it in CPU memory"):
        codec.encode(OnGpu())
    with pytest.raises(ValueError, match="gradient must be of float32, float16, .* not float64"):
        codec.encode(torch.zeros(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="gradient cannot be used where it lies"):
        codec.encode(torch.zeros(3).to_sparse())
    with pytest.raises(ValueError, match="out cannot be used where it lies: .*require grad"):
        codec.decode(codec.encode(torch.zeros(3)), out=torch.zeros(3, requires_grad=True))
    with pytest.raises(TypeError, match="gradient must be an array .*, not a list"):
        codec.encode([1.0, 2.0])
    with pytest.raises(ValueError, match="bytes or an array of uint8, not of int64"):
        codec.decode(np.zeros(4, np.int64), 16)
    with pytest.raises(ValueError, match=r"out holds 3 bytes; .* needs max_bytes\(\) = 4"):
        hipress.Compressor("2bit").encode(gradient(5), out=bytearray(3))
    with pytest.raises(ValueError, match="needs the gradient's shape, or an array `out`"):
        codec.decode(bytes(4))


@pytest.mark.parametrize("name", STATEFUL)
def test_a_compressor_goes_on_from_its_state(name):
    codec = hipress.Compressor(name)
    codec.stream = 7
    for step in range(3):
        codec.encode(gradient(N, step))
    state = codec.state_dict()
    assert state["step"] == codec.step and state["stream"] == 7
    assert set(state["states"]) == set(codec.state_names)
    other = hipress.Compressor(name)
    other.encode(gradient(N, 99))
    other.load_state_dict(state)
    for step in range(3, 5):
        assert other.encode(gradient(N, step)) == codec.encode(gradient(N, step))


def test_a_state_of_tensors_and_states_that_do_not_fit():
    torch = pytest.importorskip("torch")
    codec = hipress.Compressor("dgc")
    assert codec.state_names == ("residual", "velocity")
    assert codec.state_dict()["states"] == {}
    codec.encode(gradient(N))
    state = codec.state_dict()
    state["states"] = {k: torch.from_numpy(v) for k, v in state["states"].items()}
    other = hipress.Compressor("dgc")
    other.load_state_dict(state)
    assert same_bits(other.residual, codec.residual)
    with pytest.raises(ValueError, match="of compression type dgc, not of topk; a residual alone"):
        hipress.Compressor("topk").load_state_dict(state)
    with pytest.raises(ValueError, match="a compressor's state lacks states, stream"):
        other.load_state_dict({"type": "dgc", "step": 1})
    del state["states"]["velocity"]
    with pytest.raises(ValueError, match="states of dgc are residual, velocity, of one size, not"):
        other.load_state_dict(state)


def test_an_empty_state_forgets():
    codec, fresh = hipress.Compressor("dgc"), hipress.Compressor("dgc")
    codec.encode(gradient(N))
    codec.load_state_dict(fresh.state_dict())
    assert codec.encode(gradient(N, 1)) == fresh.encode(gradient(N, 1))


def test_description():
    codec = hipress.Compressor("maxmin", bits=3, bucket=128)
    assert codec.type == "maxmin" and codec.fixed_size and codec.granularity == 128
    assert codec.dense and hipress.Compressor("ternary").dense
    assert "bits=3" in codec.config and "bucket=128" in codec.config
    assert not hipress.Compressor(SPARSE).fixed_size and not hipress.Compressor(SPARSE).dense
    assert not hipress.Compressor("ternary").fixed_size


def test_parameters_have_types_and_defaults():
    params = {p.name: p for p in hipress.codecs()["dgc"].typed_params()}
    assert params["ratio"] == ("ratio", "float", 0.001) and params["warmup"] == ("warmup", "int", 0)
    assert "spec" not in params
    for info in hipress.codecs().values():
        given = {p.name: p.default for p in info.typed_params()}
        assert set(given) == set(info.params)
        assert hipress.Compressor(info.name, **given).config == hipress.Compressor(info.name).config


@pytest.mark.parametrize("call", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_compressor_is_not_copied(call):
    codec = hipress.Compressor("2bit")
    codec.encode(gradient(N))
    with pytest.raises(TypeError, match=r"cannot be copied or pickled: .* state_dict\(\)"):
        call(codec)
    assert codec.residual.any()
