"""Ascending indices by their gaps: entropy, bounds, all backends, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hipress
from compll_helpers import ISAS, from_text, marked_by, positions, program
from hipress.compression import compiler
from hipress.compression.compiler.backends.numpy import gaps
from hipress.compression.compiler.cuda import CudaError
from host_coder import HostCoder

MARKED = marked_by("pack_gaps")


def shapes(n: int, count: int) -> list[np.ndarray]:
    """Return indices anywhere, at either end, in two runs, and at regular distances."""
    first_and_last = np.concatenate([np.arange(count // 2), np.arange(n - count + count // 2, n)])
    even = np.arange(count) * (n // max(count, 1))
    return [positions(n, count), np.arange(count), np.arange(n - count, n), first_and_last, even]


def marked(index: np.ndarray, n: int) -> np.ndarray:
    gradient = np.zeros(n, np.float32)
    gradient[index] = 1
    return gradient


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 64, 100])
def test_every_number_of_indices_comes_back(n):
    for count in range(n + 1):
        for index in shapes(n, count):
            data = gaps.pack_gaps(index, n)
            assert len(data) == len(gaps.pack_gaps(index, n)) <= gaps.most_bytes(count, n)
            np.testing.assert_array_equal(gaps.unpack_gaps(data, count, n), index)


def test_bounds_grow_with_the_number_of_indices():
    for n in (5, 100, 1000, 4097):
        sizes = [gaps.most_bytes(count, n) for count in range(n + 1)]
        assert sizes == sorted(sizes) and sizes[-1] <= 1.07 * n / 8 + 3


@pytest.mark.parametrize("density", [0.5, 0.25, 0.1, 1 / 32, 1 / 64, 0.01, 0.001])
def test_an_index_takes_little_more_than_its_entropy(density):
    n = 1 << 20
    count, rest = int(density * n), 1 - density
    entropy = -n * (density * math.log2(density) + rest * math.log2(rest)) / count
    index = positions(n, count)
    bits = 8 * len(gaps.pack_gaps(index, n)) / count
    assert entropy - 0.02 < bits < entropy + 0.17
    if density == 1 / 64:
        assert bits < 7.55


def test_indices_that_are_denser_in_places_take_fewer_bits():
    n, count = 1 << 16, 1 << 10
    runs = np.concatenate([np.arange(at, at + 128) for at in range(0, n, n // 8)])
    rows = np.unique(np.concatenate([positions(n // 16, 900) + n // 4, positions(n, 200)]))[:count]
    sizes = [len(gaps.pack_gaps(i, n)) / i.size for i in (positions(n, count), rows, runs)]
    assert max(sizes[1:]) < 0.8 * sizes[0]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("n", [1, 63, 1000, 70000])
def test_compiled_code_has_the_interpreters_bytes(isa, n):
    one = from_text(MARKED)
    compiled, reference = compiler.Compiled(one, isa), compiler.Interpreter(one)
    counts = {0, 1, n // 2, n // 3, n // 4, (n + 3) // 4, n // 40, n // 64, n // 999, n}
    for count in sorted(counts):
        for index in shapes(n, count):
            payload = compiled.encode(marked(index, n))
            assert payload == reference.encode(marked(index, n))
            assert len(payload) <= compiled.max_bytes(n)
            np.testing.assert_array_equal(compiled.decode(payload, n), marked(index, n))
    assert not compiled.fixed_size


@pytest.mark.parametrize("shape", ["grid", "block"])
def test_kernels_have_the_interpreters_bytes(shape):
    one = from_text(MARKED)
    kernels, reference = HostCoder(one, shape, emulate=True), compiler.Interpreter(one)
    for n in (0, 1, 300, 3000):
        kernels.emulate(seed=n + 1, processors=1 + n % 4)
        for count in sorted({0, min(n, 1), n // 64, n // 5, n // 2, n}):
            for index in shapes(n, count):
                payload = kernels.encode(marked(index, n))
                assert payload == reference.encode(marked(index, n))
                np.testing.assert_array_equal(kernels.decode(payload, n), marked(index, n))


TWICE = """
void Encode(float* g, uint8* c) {
  int* up = filter(range(g.size), [&](int i) -> bool { return g[i] > 0; });
  int* down = filter(range(g.size), [&](int i) -> bool { return g[i] < 0; });
  c = concat(uint32(up.size), pack_gaps(up), gather(g, up), uint32(down.size), pack_gaps(down));
}
void Decode(uint8* c, float* g) {
  uint32 many;  uint32 less;
  int up[many];  float value[many];  int down[less];
  extract(c, many, pack_gaps(up), value, less, pack_gaps(down));
  g = scatter(g.size, up, value);
}
"""


@pytest.mark.slow
def test_two_lists_and_fields_behind_them():
    one = from_text(TWICE)
    reference = compiler.Interpreter(one)
    coders = [*(compiler.Compiled(one, isa) for isa in ISAS), HostCoder(one, emulate=True)]
    for n in (0, 1, 700):
        x = np.random.default_rng(n).normal(size=n).astype(np.float32)
        x[::3] = 0
        payload = reference.encode(x)
        for coder in coders:
            assert coder.encode(x) == payload
            np.testing.assert_array_equal(coder.decode(payload, n), np.maximum(x, 0))


def outcome(coder: object, payload: bytes, n: int) -> bytes | None:
    """Return what a payload decodes to, or None if it is refused."""
    try:
        return coder.decode(payload, n).tobytes()
    except (compiler.PayloadError, CudaError) as error:
        assert "must" in str(error)
        return None


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("count", [3, 40, 300, 700])
def test_bytes_that_no_indices_have_are_refused(count):
    """Bytes that no indices have are refused. With any bit flipped, all coders agree: other
    indices, or none."""
    n = 1000
    one = from_text(MARKED)
    coders = [compiler.Interpreter(one), *(compiler.Compiled(one, isa) for isa in ISAS)]
    coders.append(HostCoder(one, emulate=True))
    payload = coders[0].encode(marked(positions(n, count), n))
    refused = 0  # of all but few counts and sizes, and where there is one more or less in unary
    bits = [*range(64), *range(64, 8 * len(payload), 1 + len(payload) // 60)]
    for bit in bits:
        turned = bytearray(payload)
        turned[bit // 8] ^= 1 << bit % 8
        seen = [outcome(coder, bytes(turned), n) for coder in coders]
        assert len(set(seen)) == 1, bit
        refused += seen[0] is None
    assert refused >= 60


def test_what_is_left_over_is_refused():
    n, count = 1000, 16
    one = from_text(MARKED)
    index = positions(n, count)
    reference = compiler.Interpreter(one)
    payload = reference.encode(marked(index, n))
    size = len(payload) - 8
    assert int.from_bytes(payload[4:8], "little") == size
    longer = payload[:4] + (size + 1).to_bytes(4, "little") + payload[8:] + b"\0"
    none = bytes(4) + (1).to_bytes(4, "little") + b"\1"
    padded = bytearray(payload)
    padded[8] |= 0xF0  # of one block's choice only two bits are in use
    beyond = bytearray(payload)  # nine lowest bits of each, all of them ones
    beyond[9 : 9 + size // 2] = bytes([255]) * (size // 2)
    for hostile in (longer, none, padded, beyond):
        for coder in (reference, *(compiler.Compiled(one, isa) for isa in ISAS)):
            with pytest.raises(
                compiler.PayloadError, match="must have indices that ascend and are"
            ):
                coder.decode(bytes(hostile), n)
        with pytest.raises(
            (compiler.PayloadError, CudaError), match="must have indices that ascend"
        ):
            HostCoder(one, emulate=True).decode(bytes(hostile), n)


@pytest.mark.slow
def test_sparseloco_of_damaged_bytes_is_refused_or_alike():
    n, rng = 3000, np.random.default_rng(1)
    reference = compiler.Interpreter(program("sparseloco"))
    coders = [*(compiler.Compiled(program("sparseloco"), isa) for isa in ISAS)]
    payload = reference.encode(rng.normal(size=n).astype(np.float32))
    for _ in range(150):
        turned = bytearray(payload)
        turned[rng.integers(len(payload))] ^= 1 << rng.integers(8)
        seen = outcome(reference, bytes(turned), n)
        assert all(outcome(coder, bytes(turned), n) == seen for coder in coders)


def test_the_values_of_sparseloco_are_those_of_fixed_positions():
    """SparseLoCo's values equal those of fixed positions: pack_ascending only codes positions
    differently, and all other bits are the same."""
    text = (compiler.SPECS / "sparseloco.cll").read_text()
    fixed = compiler.Interpreter(from_text(text.replace("pack_gaps", "pack_ascending")))
    coded, n = hipress.Compressor("sparseloco"), 20_000
    states: dict[str, np.ndarray] = {}
    saved = 0
    for step in range(5):
        gradient = np.random.default_rng(step).normal(size=n).astype(np.float32)
        before, now = fixed.encode(gradient, states, step), coded.encode(gradient)
        assert fixed.decode(before, n).tobytes() == coded.decode(now, n).tobytes()
        assert states["residual"].tobytes() == np.asarray(coded.residual).tobytes()
        saved += len(before) - len(now)
    assert saved > 0
