"""Floats with all their bits: the same bytes from every backend, and what is refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import hipress
from compll_helpers import ISAS, check_equal, from_text, gradient, program, same_bits
from hipress.compression import compiler
from hipress.compression.compiler.backends.numpy import floats
from hipress.compression.compiler.cuda import CudaError
from host_coder import HostCoder, outcome

SIZES = (0, 1, 7, 63, 64, 65, 1000, 1023, 1024, 1025, 5000)
DTYPES = ("float32", "float16", "bfloat16")
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-40, 3e38, -3e38, 0.5], np.float32
)
SIGNALING = np.array([0x7F800001, 0xFFA00001, 0x7FC12345], np.uint32).view(np.float32)


def narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    """Return x in another type; bfloat16 cut off, as uint16."""
    if dtype == "bfloat16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def inputs(n: int) -> list[np.ndarray]:
    """Return gradients of which few, half or nearly all elements are 0. Exponents are near and far,
    lowest bits are 0, and one gradient is empty."""
    rng = np.random.default_rng(n)
    x, share = gradient(n), rng.random(n)
    half, few = np.where(share < 0.5, 0, x), np.where(share < 0.95, 0, x)
    wide = x * np.exp(rng.normal(0, 6, n)).astype(np.float32)
    noise = rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    two = np.where(share < 0.45, x * np.float32(2.0**-60), x)
    special = np.resize(np.concatenate([SPECIAL, SIGNALING]), n)
    brief = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
    same = np.full(n, 0.1, np.float32)
    every = [x, half, few, wide, noise, two, special, brief, same, np.zeros(n, np.float32)]
    return [np.ascontiguousarray(each, np.float32) for each in every]


@cache
def emulated(shape: str = "grid") -> HostCoder:
    return HostCoder(program("lossless"), shape, emulate=True)


@cache
def reference(dtype: str) -> list[tuple[np.ndarray, bytes, np.ndarray]]:
    """Return gradients with the interpreter's payload and decoded values."""
    one, found = compiler.Interpreter(program("lossless")), []
    for n in (*SIZES, 40_000):  # which threads share
        for x in inputs(n):
            x = narrow(x, dtype)
            payload = one.encode(x)
            found.append((x, payload, one.decode(payload, n)))
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_interpreter_loses_nothing(dtype):
    for x, payload, decoded in reference(dtype):
        elements, _ = floats.unpack_elements(payload, x.size)
        assert same_bits(elements.view(x.dtype), x)
        if dtype == "float32":
            assert same_bits(decoded, x)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("threads", [1, 3])
def test_compiled_code_equals_the_interpreter(isa, threads, dtype):
    two = compiler.Compiled(program("lossless"), isa, threads=threads)
    for x, payload, decoded in reference(dtype):
        assert two.encode(x) == payload
        assert same_bits(two.decode(payload, x.size), decoded)


@pytest.mark.slow
def test_sums_of_all_types_are_the_interpreters():
    one, n = compiler.Interpreter(program("lossless")), 2500
    finite = [x for x in inputs(n) if np.isfinite(x).all()]
    payloads = [one.encode(narrow(x, DTYPES[k % 3])) for k, x in enumerate(finite * 3)]
    for two in [*(compiler.Compiled(program("lossless"), isa) for isa in ISAS), emulated()]:
        for count in (1, 2, 5, 11):  # more than eight have their places in separate memory
            for first in range(count):
                some = payloads[first : first + count]
                assert same_bits(two.decode_sum(some, n), one.decode_sum(some, n))
        totals = [gradient(n, 9), gradient(n, 9)]
        one.decode_add(payloads[1], totals[0])
        two.decode_add(payloads[1], totals[1])
        assert same_bits(*totals)


@pytest.mark.parametrize("shape", ["grid", "block"])
def test_kernels_equal_the_interpreter(shape):
    one, two = compiler.Interpreter(program("lossless")), emulated(shape)
    for n in SIZES:
        two.emulate(seed=n + 1, processors=1 + n % 4)
        check_equal(one, two, n, [x for x in inputs(n) if not np.isnan(x).any()])
    for dtype in DTYPES:
        for x, payload, decoded in reference(dtype):
            if x.size < 2000:
                assert same_bits(two.decode(payload, x.size), decoded)


def test_several_blocks_of_kernels_equal_the_interpreter():
    one, two = compiler.Interpreter(program("lossless")), emulated()
    two.emulate(seed=3, processors=2)
    check_equal(one, two, 60_000, [inputs(60_000)[1]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_number_of_16_bits_comes_back(dtype):
    every = np.arange(1 << 16, dtype=np.uint16)
    rng = np.random.default_rng(3)
    for x in (every, rng.permutation(every), np.repeat(every, 3)):
        x = x if dtype == "bfloat16" else x.view(np.float16)
        codec = hipress.Compressor("lossless")
        payload = codec.encode(x, dtype)
        assert len(payload) <= codec.max_bytes(x.size, dtype) < 1.01 * x.nbytes
        assert codec.decode(payload, x.size, dtype).tobytes() == x.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_library_gives_all_bits_back_and_keeps_nothing(dtype, threads):
    codec = hipress.Compressor("lossless", threads=threads)
    assert codec.state_names == () and not codec.uses_step
    for n in (*SIZES, 40_000):
        for x in inputs(n):
            x = narrow(x, dtype)
            payload = codec.encode(x, dtype)
            assert len(payload) <= codec.max_bytes(n, dtype)
            assert codec.decode(payload, x.size, dtype).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_bits_cost_little_more_than_themselves(dtype):
    noise = np.random.default_rng(1).integers(0, 256, 4 * 100_000, dtype=np.uint8)
    x = noise.view(np.uint16 if dtype == "bfloat16" else dtype)
    codec = hipress.Compressor("lossless")
    assert len(codec.encode(x, dtype)) < 1.003 * x.nbytes
    most = codec.max_bytes(x.size, dtype)
    assert x.nbytes < most < 1.003 * x.nbytes
    codec.encode(x, dtype, out=np.zeros(most, np.uint8))


@pytest.mark.parametrize(
    ("dtype", "ratio"), [("float32", 1.16), ("float16", 1.1), ("bfloat16", 1.4)]
)
def test_normal_numbers_take_fewer_bytes(dtype, ratio):
    x = narrow(gradient(50_000, scale=1e-3), dtype)
    assert x.nbytes > ratio * len(hipress.Compressor("lossless").encode(x, dtype))


def test_zeros_take_a_bit_each_and_blocks_of_them_nothing():
    x = np.where(np.random.default_rng(0).random(65536) < 0.75, 0, gradient(65536))
    x = x.astype(np.float32)
    x[:32768] = 0
    size = len(hipress.Compressor("lossless").encode(x))
    assert size < 32768 / 8 + 32768 / 4 * 27.5 / 8 + 1000
    x[1] = -0.0
    codec = hipress.Compressor("lossless")
    assert same_bits(codec.decode(codec.encode(x), x.size), x)


def test_what_another_codec_left_is_added_in_the_gradients_type():
    codec, x = hipress.Compressor("lossless"), gradient(3000).astype(np.float16)
    codec.encode(x)
    codec.residual = left = gradient(3000, 1, 0.01)
    expected = (x.astype(np.float32) + left).astype(np.float16)
    assert same_bits(codec.decode(codec.encode(x), 3000, "float16"), expected)
    assert same_bits(codec.decode(codec.encode(x), 3000, "float16"), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_malformed_payloads_are_refused_or_decoded_alike(dtype):
    """All backends refuse the same malformed payloads of `lossless`, and decode all other
    payloads to the same values.

    Cost: The interpreter decodes each payload in NumPy, some hundred times for each of three
    inputs.
    """
    n = 1200
    reference = compiler.Interpreter(program("lossless"))
    coders = [compiler.Compiled(program("lossless"), isa) for isa in ISAS] + [emulated()]
    rng = np.random.default_rng(2)
    for x in (inputs(n)[0], inputs(n)[1], inputs(n)[3]):
        payload = reference.encode(narrow(x, dtype))
        short = [payload[:size] for size in (0, 3, 4, 8, 12, 100, len(payload) - 1)]
        hostile = [*short, payload + bytes(1), payload + bytes(8)]
        places = [*range(8 * 12), *rng.integers(96, 8 * len(payload), 60).tolist()]
        for bit in places:
            turned = bytearray(payload)
            turned[bit // 8] ^= 1 << bit % 8
            hostile.append(bytes(turned))
        for _ in range(40):  # other numbers of blocks
            word = int(rng.integers(1, 3))
            other = rng.integers(0, 2**32, dtype=np.uint32).tobytes()
            hostile.append(payload[: 4 * word] + other + payload[4 * word + 4 :])
        seen = [outcome(reference, data, n) for data in hostile]
        assert all(result is None for result in seen[:9]) and any(seen)
        for coder in coders:
            assert [outcome(coder, data, n) for data in hostile] == seen


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda words: words.__setitem__(0, 3), "must be of float32, float16 or bfloat16"),
        (lambda words: words.__setitem__(1, 6 << 8), "must have blocks that can be"),
        (lambda words: words.__setitem__(1, words[1] ^ 1 << 12), "must have "),
    ],
)
def test_refusals_are_sentences_of_all(change, sentence):
    n = 1000
    words = np.frombuffer(compiler.Interpreter(program("lossless")).encode(gradient(n)), np.uint32)
    words = words.copy()
    change(words)
    coders = [compiler.Interpreter(program("lossless")), emulated()]
    coders += [compiler.Compiled(program("lossless"), isa) for isa in ISAS]
    for coder in coders:
        with pytest.raises((compiler.PayloadError, CudaError), match=sentence):
            coder.decode(words.tobytes(), n)


TEXT = """
void Encode(float* g, uint8* c) { c = concat(pack_floats(g)); }
void Decode(uint8* c, float* g) { extract(c, pack_floats(g)); }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pack_floats(g)); }\nvoid", "pack_floats(2 * g)); }\nvoid", "pack_floats takes g itself"),
        ("concat(pack_floats(g))", "concat(pack_floats(g), g)", "must be the only field"),
        ("concat(pack_floats(g))", "concat(sum(g), pack_floats(g))", "must be the only field"),
        ("concat(pack_floats(g))", "concat(pack_floats(g, g))", "takes 1 argument, not 2"),
        ("void Encode", "state float* residual;\nvoid Encode", "without states"),
        (
            "extract(c, pack_floats(g));",
            "float* v; extract(c, pack_floats(v)); g = v;",
            "pack_floats fills g itself",
        ),
        (
            "extract(c, pack_floats(g));",
            "float a; extract(c, a, pack_floats(g));",
            "must be the only field",
        ),
        ("extract(c, pack_floats(g));", "extract(c, pack_floats(g)); g = 2 * g;", "assigned twice"),
    ],
)
def test_misuse_is_an_error_of_the_compiler(old, new, message):
    assert old in TEXT
    from_text(TEXT)
    with pytest.raises(compiler.CompileError, match=message):
        from_text(TEXT.replace(old, new, 1))
