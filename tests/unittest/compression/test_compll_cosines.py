"""Cosine transforms `dct` and `idct` of the language: against the cosines' matrix, and in every
backend."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hipress
from compll_helpers import ISAS, check_equal, from_text, gradient, same_bits
from hipress.compression import compiler
from hipress.compression.compiler.backends.cuda.program import generate
from hipress.compression.compiler.backends.numpy import cosines
from hipress.compression.compiler.ir.ir import TRANSFORMS
from host_coder import HostCoder

SENDS_ALL = f"""
algorithm "cosines" "all coefficients; a residual of what two transforms round";
param int block = 64 in {{{", ".join(map(str, TRANSFORMS))}}} "elements";
state float* residual;
void Encode(float* gradient, uint8* compressed) {{
  float* coefficient = dct(gradient, block);
  residual = gradient - idct(coefficient, block);
  compressed = concat(uint8(1), coefficient);
}}
void Decode(uint8* compressed, float* gradient) {{
  uint8 one;
  float* coefficient;
  extract(compressed, one, coefficient);
  gradient = idct(coefficient, block);
}}
"""


def matrix(size: int) -> np.ndarray:
    """Return float64[size, size] whose row k is the cosine of frequency k, of length 1."""
    rows = np.cos(np.pi * np.outer(np.arange(size), 2 * np.arange(size) + 1) / (2 * size))
    return rows * np.where(np.arange(size) > 0, np.sqrt(2 / size), np.sqrt(1 / size))[:, None]


@pytest.mark.parametrize("block", TRANSFORMS)
def test_coefficients_are_those_of_the_matrix(block):
    x = gradient(3 * block + 7)
    found = cosines.dct(x, block)
    wanted = x[: 3 * block].reshape(3, block).astype(np.float64) @ matrix(block).T
    np.testing.assert_allclose(found[: 3 * block], wanted.ravel(), atol=3e-6)
    assert same_bits(found[3 * block :], x[3 * block :])  # a short block is stored untransformed
    np.testing.assert_allclose(cosines.idct(found, block), x, atol=5e-6)
    assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(x), rel=1e-6)


@pytest.mark.parametrize("size", [2**k for k in range(1, 10)])
def test_the_table_is_the_same_with_any_mathematical_library(size):
    """The table is the same with any mathematical library: no cosine is within 16 units of a
    double's last place of where it would round otherwise."""
    exact = np.array([math.cos(math.pi * (2 * j + 1) / (4 * size)) for j in range(size)])
    for near in (exact * (1 - 16 * 2.0**-53), exact * (1 + 16 * 2.0**-53)):
        assert same_bits(near.astype(np.float32), cosines.cosines(size))


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
def test_compiled_code_equals_the_interpreter(isa):
    made = from_text(SENDS_ALL)
    for block in TRANSFORMS:
        one = compiler.Interpreter(made, block=block)
        two = compiler.Compiled(made, isa, threads=2, block=block)
        for n in (0, 15, 17 * block + 5, 40_000):
            check_equal(one, two, n, [gradient(n, k, 10.0**k) for k in range(3)])
        odd = gradient(5000)
        odd[[3, 2900, 4999]] = np.nan, np.inf, -np.nan
        check_equal(one, two, 5000, [odd, gradient(5000, 1, 1e38), gradient(5000, 2, 1e-40)])


@pytest.mark.parametrize("shape", ["grid", "block"])
def test_kernels_equal_the_interpreter(shape):
    made = from_text(SENDS_ALL)
    for block in TRANSFORMS:
        one = compiler.Interpreter(made, block=block)
        two = HostCoder(made, shape, emulate=True, block=block)
        for n in (0, 15, 3 * block + 5, 3000):
            two.emulate(seed=1 + n, processors=2)
            check_equal(one, two, n, [gradient(n, k) for k in range(2)])
        odd = gradient(2000)
        odd[[3, 1999]] = np.nan, np.inf
        check_equal(one, two, 2000, [odd])


def test_nan_is_the_same_nan_and_stays_in_its_block():
    x = gradient(300)
    x[70] = np.inf
    x[299] = -np.nan
    found = cosines.dct(x, 64)
    bad = np.r_[64:128, 299]
    assert np.isin(found[bad].view(np.uint32), [0x7FC00000, 0x7F800000, 0xFF800000]).all()
    assert found[299:].view(np.uint32) == 0x7FC00000
    assert np.isfinite(np.delete(found, bad)).all()


@pytest.mark.parametrize(
    ("param", "block"),
    [
        ('param int block = 64 in {32, 48, 64} "x";', "block"),
        ('param int block = 64 in [64, 1024] multiple 64 "x";', "block"),
        ('param float block = 64 in {64} "x";', "block"),
        ("", "8"),
        ("", "96"),
        ("", "2048"),
        ("", "g.size"),
    ],
)
def test_other_blocks_are_refused(param, block):
    text = param + f"void Encode(float* g, uint8* c) {{ c = concat(dct(g, {block})); }}"
    with pytest.raises(compiler.CompileError, match="block must be one of 16, 32|expected an int"):
        from_text(text)


def test_a_block_may_be_a_number_and_its_table_is_in_the_code():
    made = from_text("void Encode(float* g, uint8* c) { c = concat(dct(g, 32)); }")
    x = gradient(100)
    expected = cosines.dct(x, 32).tobytes()
    for coder in (compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])):
        assert coder.encode(x) == expected
    assert "__device__ const float kCosines[1022]" in generate(made)
    plain = from_text("void Encode(float* g, uint8* c) { c = concat(g); }")
    assert "kCosines" not in generate(plain)


SCATTERED = """
void Encode(float* g, uint8* c) {
  int* large = topk(abs(g), 3);
  float* kept = scatter(g.size, large, gather(g, large));
  float* changed = scatter(kept, large, 2);
  c = concat(map(kept, changed, [&](float a, float b) -> float { return 10 * b + a; }));
}
"""


def test_scatter_makes_a_vector():
    x = np.array([0.5, -3, 0, 2, 1, -0.25], np.float32)
    expected = np.array([0, 17, 0, 22, 21, 0], np.float32).tobytes()
    made = from_text(SCATTERED)
    for coder in (
        compiler.Interpreter(made),
        compiler.Compiled(made, ISAS[0]),
        HostCoder(made, emulate=True),
    ):
        assert coder.encode(x) == expected
    with pytest.raises(compiler.CompileError, match="not known to have the same size"):
        from_text(SCATTERED.replace("scatter(kept", "scatter(gather(g, large)"))
    with pytest.raises(compiler.CompileError, match="has the size of the gradient"):
        from_text(SCATTERED.replace("scatter(g.size", "scatter(7"))


# The codec ------------------------------------------------------------------


def smooth(n: int) -> np.ndarray:
    """Return a gradient whose neighbors are alike."""
    return np.convolve(gradient(n + 31), np.ones(32, np.float32) / 32, "valid")[:n]


@pytest.mark.parametrize("bits", [1, 2, 8])
def test_what_is_smooth_takes_few_coefficients(bits):
    x, ratio = smooth(64 * 500), 1 / 16
    kept = {}
    for name in ("dct", "topk"):
        codec = hipress.Compressor(name, **({"bits": bits} if name == "dct" else {}), ratio=ratio)
        left = x - codec.decode(codec.encode(x), x.size)
        kept[name] = 1 - np.square(left).sum() / np.square(x).sum()
    assert kept["dct"] > 0.6 > 0.4 > kept["topk"], kept


def test_levels_are_between_the_least_and_the_largest():
    """Levels of one short block, which is stored untransformed, lie between its least and largest
    value."""
    x = np.array([8, -6, 2, -4, 1, 0.5, -1, 0.25], np.float32)  # sent: 8 6 4 2, of the mean 5
    expected = {
        1: [5, -5, 5, -5],
        2: [2 + 1.5 * 4.5, -(2 + 0.5 * 4.5), 4.25, -4.25],
        8: [8, -6, 2, -4],
    }
    for bits, values in expected.items():
        codec = hipress.Compressor("dct", bits=bits, ratio=0.5, decay=0.5)
        decoded = codec.decode(codec.encode(x), 8)
        np.testing.assert_allclose(decoded[:4], values, atol=3.1 / 128 if bits == 8 else 0)
        assert not decoded[4:].any()
        np.testing.assert_array_equal(codec.residual, x - decoded)
        before = codec.residual
        codec.encode(np.zeros(8, np.float32))
        assert np.abs(codec.residual).sum() < np.abs(before).sum()
    config = codec.for_sum_of(4).config + " "
    assert "ratio=1 " in config and "decay=1 " in config, config


def test_payloads_take_the_bits_of_positions_and_values():
    n, sizes = 1 << 18, {}
    for bits in (1, 2, 8):
        codec = hipress.Compressor("dct", bits=bits)
        sizes[bits] = len(codec.encode(gradient(n)))
        assert sizes[bits] <= codec.max_bytes(n)
    assert sizes[2] - sizes[1] == n // 128 // 8
    assert sizes[8] - sizes[2] == n // 128 * 6 // 8
    assert 4 * n / sizes[2] > 380


def test_nan_is_seen_and_finite_elements_wait():
    codec = hipress.Compressor("dct", decay=1.0)
    x = gradient(64 * 100)
    x[130] = np.nan
    decoded = codec.decode(codec.encode(x), x.size)
    assert np.isnan(decoded[128:192]).all()
    assert codec.residual[130] == 0
    waiting = np.isfinite(x) & np.isnan(decoded)
    assert same_bits(codec.residual[waiting], x[waiting])
    assert np.isfinite(codec.decode(codec.encode(gradient(x.size, 1)), x.size)).all()


@pytest.mark.slow
def test_partitions_have_whole_blocks():
    """Partitions have whole blocks: a sum over the store has the bits of one encode of each
    partition."""
    made = from_text(SENDS_ALL)
    for block in (16, 1024):
        coder = compiler.Compiled(made, ISAS[0], block=block)
        assert coder.algorithm.granularity(coder._values) == block
    whole = compiler.Interpreter(made)
    x = gradient(64 * 40 + 9)
    cut = 64 * 17
    parts = b"".join(whole.encode(part)[1:] for part in (x[:cut], x[cut:]))
    assert whole.encode(x)[1:] == parts
