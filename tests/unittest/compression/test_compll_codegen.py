"""Generated C++ against the NumPy interpreter, bit for bit, and against hostile payloads."""

from __future__ import annotations

import numpy as np
import pytest

from compll_helpers import (
    ISAS,
    SIZES,
    SPECS,
    check_equal,
    from_text,
    gradient,
    program,
    same_bits,
    seed_program,
)
from hipress.compression import compiler
from hipress.compression.compiler.backends.cpp.program import generate
from hipress.compression.compiler.backends.numpy import philox
from hipress.compression.compiler.backends.numpy.packing import pack, unpack

# Further parameters at which a spec is compared.
VARIANTS = {
    "terngrad": [{"bitwidth": 8}, {"bitwidth": 1, "stochastic": 0}, {"bitwidth": 4, "seed": 7}],
    "maxmin": [{"bits": b, "bucket": 192} for b in (1, 3, 5, 8)]
    + [{"stochastic": 0}, {"bucket": 64}, {"bucket": 8192}],
    "maxminef": [{"bits": b, "bucket": 192} for b in (2, 3, 8)]
    + [{"bucket": 64}, {"bucket": 8192}],
    "dgc": [{"ratio": 0.1, "clip": 1.0, "warmup": 8}, {"ratio": 1.0, "momentum": 0.0}],
    "ternary": [{"momentum": 0.9}, {"threshold": 0.0}, {"threshold": 4.0, "momentum": 0.5}],
    "stc": [{"momentum": 0.9}, {"threshold": 0.0}, {"threshold": 1.0, "momentum": 0.5}],
    "topk": [{"ratio": 1.0}, {"ratio": 1e-9}],
    "sparseloco": [{"ratio": 1.0, "decay": 0.0}, {"ratio": 1e-9, "decay": 1.0}],
    "dct": [
        {"bits": 1, "block": 16, "ratio": 1e-9},
        {"bits": 8, "block": 1024, "ratio": 0.1},
        {"block": 256, "ratio": 1.0, "decay": 0.0},
    ],
    "graddrop": [{"drop": 0.0}, {"drop": 0.5}],
    "2bit": [{"threshold": 0.1}],
    "1bit": [{"threshold": -0.3, "scale": 0.7}],
}
CASES = [(name, {}) for name in SPECS] + [
    (name, params) for name, many in VARIANTS.items() for params in many
]


def special(n: int) -> np.ndarray:
    """Return zeros, denormals, huge values and ties; no NaN."""
    values = np.array([0, -0.0, 1e-45, -1e-40, 3e38, -3e38, 0.5, -0.5, 1, 1], np.float32)
    return np.resize(values, n)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), CASES, ids=lambda value: str(value))
def test_compiled_code_equals_the_interpreter(name, params):
    """Compiled code of every codec and instruction set gives the interpreter's bytes.

    Cost: The C++ compiler compiles each codec for each instruction set.
    """
    one = compiler.Interpreter(program(name), **params)
    two = compiler.Compiled(program(name), ISAS[0], threads=2, **params)
    for n in SIZES:
        scales = (1.0, 0.05, 100.0)
        check_equal(one, two, n, [gradient(n, k, scale) for k, scale in enumerate(scales)])
    check_equal(one, two, 1000, [special(1000), np.zeros(1000, np.float32)])
    payloads = [one.encode(gradient(1000, k), stream=k) for k in range(10)]
    for count in (1, 2, 3, 10):
        sums = [coder.decode_sum(payloads[:count], 1000) for coder in (one, two)]
        assert same_bits(*sums), count


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("name", SPECS)
def test_nan_and_inf_give_the_same_bits_too(name):
    one, two = compiler.Interpreter(program(name)), compiler.Compiled(program(name), ISAS[0])
    for value in (np.nan, np.inf, -np.inf):
        x = gradient(1000)
        x[[3, 500]] = value
        check_equal(one, two, 1000, [x, gradient(1000, 1)])


PARTS = """
algorithm "parts" "a state that is written in some places only, and one that is not written";
state float* residual;
state float* bias;
void Encode(float* gradient, uint8* compressed) {
  float* over = gradient - residual - bias;
  int* sent = filter(range(gradient.size), [&](int i) -> bool { return over[i] > 0; });
  compressed = concat(uint32(sent.size), pack_ascending(sent), gather(residual, sent));
  residual = scatter(residual, sent, gather(gradient, sent));
}
void Decode(uint8* compressed, float* gradient) {
  uint32 count;
  int index[count];
  float value[count];
  extract(compressed, count, pack_ascending(index), value);
  gradient = scatter(gradient.size, index, value);
}
"""


@pytest.mark.parametrize(("name", "params"), [*CASES, ("parts", {})], ids=lambda value: str(value))
def test_new_states_in_other_memory_have_the_same_bits(name, params):
    made = from_text(PARTS) if name == "parts" else program(name)
    coder = compiler.Compiled(made, ISAS[0], threads=2, **params)
    for n in (1, 1003, 70001):
        in_place: dict[str, np.ndarray] = {}
        separate: dict[str, np.ndarray] = {}
        for step in range(3):
            x, old = gradient(n, step), dict(separate)
            had = {name: values.copy() for name, values in old.items()}
            payload = coder.encode(x, in_place, step)
            assert coder.encode(x, separate, step, new_states=True) == payload
            assert all(same_bits(separate[name], values) for name, values in in_place.items())
            assert all(same_bits(old[name], values) for name, values in had.items())


CONVERSIONS = """
algorithm "conversions" "NaN and numbers out of range, as integers of which some bits count";
void Encode(float* gradient, uint8* compressed) {
  uint<8>* low = map(gradient, [&](float v) -> uint<8> {
    return (int(min(v, 9) * 65536) + 5) >> 16;
  });
  uint<8>* high = map(gradient, [&](float v) -> uint<8> { return (int(min(v, 9)) + 5) >> 24; });
  uint<1>* sign = map(gradient, [&](float v) -> uint<1> { return int(min(v, 7)) < 0; });
  uint<4>* fits = map(gradient, [&](float v) -> uint<4> { return min(15, v + 0.5); });
  uint<4>* larger = map(gradient, [&](float v) -> uint<4> { return min(16, v + 0.5); });
  uint<2>* twice = map(gradient, [&](float v) -> uint<2> { return min(min(3, v), 300); });
  compressed = concat(low, high, sign, fits, larger, twice);
}
void Decode(uint8* compressed, float* gradient) {
  uint<8>* low; uint<8>* high; uint<1>* sign; uint<4>* fits; uint<4>* larger; uint<2>* twice;
  extract(compressed, low, high, sign, fits, larger, twice);
  gradient = map(low, [&](uint<8> c) -> float { return c; });
}
"""


def test_a_conversion_is_cheaper_only_where_no_bit_of_it_tells():
    made = from_text(CONVERSIONS)
    text = generate(made)
    called = [text.count(f" {name}(") for name in ("ToI32Low", "ToI32Below", "SaturateBelow")]
    assert called == [1, 2, 1]
    one, two = compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])
    odd = [np.nan, -np.nan, np.inf, -np.inf, 3e9, -3e9, 8.9, -0.6, 15.4, 15.6, 99]
    odd = np.resize(np.array(odd, np.float32), 300)
    check_equal(one, two, 300, [odd, gradient(300, 1, 100.0)])


BUCKETS = """
algorithm "buckets" "what is made of a bucket's largest: packed codes, random numbers; halves read";
param int bucket = 1024 in [64, 8192] multiple 64 "elements";
void Encode(float* gradient, uint8* compressed) {
  uint16* half = map(gradient, [&](float v) -> uint16 { return int(min(abs(v) * 1000, 60000)); });
  float* high = bucket_max(map(half, [&](int v) -> float { return v; }), bucket);
  uint<4>* exponent = map(high, [&](float v) -> uint<4> { return min(v / 256, 15); });
  float* drawn = map(high, [&](float v) -> float { return v * random<float>(0.5, 1); });
  uint<8>* code = map(range(gradient.size), [&](int i) -> uint<8> {
    return min(255, half[i] / drawn[i / bucket]);
  });
  compressed = concat(exponent, drawn, code);
}
void Decode(uint8* compressed, float* gradient) {
  uint<4> exponent[(gradient.size + bucket - 1) / bucket];
  float drawn[(gradient.size + bucket - 1) / bucket];
  uint<8>* code;
  extract(compressed, exponent, drawn, code);
  gradient = map(range(gradient.size), [&](int i) -> float { return code[i] * drawn[i / bucket]; });
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("bucket", [64, 192, 1024, 8192])
def test_what_is_made_of_buckets_may_be_codes_and_random(bucket):
    one = compiler.Interpreter(from_text(BUCKETS), bucket=bucket)
    for isa in ISAS:
        two = compiler.Compiled(from_text(BUCKETS), isa, threads=2, bucket=bucket)
        for n in (0, 1, 65, 4097, 70_001):
            check_equal(one, two, n, [gradient(n, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("bitwidth", [1, 2, 4, 8])
def test_the_published_sample_runs_compiled(bitwidth):
    one = compiler.Interpreter(seed_program(), bitwidth=bitwidth)
    two = compiler.Compiled(seed_program(), ISAS[0], bitwidth=bitwidth)
    for n in SIZES:
        check_equal(one, two, n, [gradient(n, 4)])


def test_the_largest_are_found_whatever_a_sample_says():
    """The largest elements are found whatever a sample shows: values that an evenly spread sample
    misses, ties, and NaN."""
    n = 70_001
    one = compiler.Interpreter(program("topk"), ratio=0.002)
    two = compiler.Compiled(program("topk"), ISAS[0], ratio=0.002)
    hidden = np.zeros(n, np.float32)
    hidden[5000:5100] = np.arange(100)
    nans = gradient(n)
    nans[[7, 60_000]] = np.nan
    for x in (hidden, np.ones(n, np.float32), np.round(gradient(n)), nans, -np.abs(gradient(n))):
        assert one.encode(x) == two.encode(x)


def test_a_custom_reduction_has_one_order():
    """A custom reduction has one order: it is not associative in float32, so any other order would
    show."""
    text = """
    void E(float* g, uint8* c) {
      float total = reduce(g, 0, [&](float a, float b) -> float { return a * 0.9 + b; });
      c = concat(total);
    }"""
    both = from_text(text)
    one, two = compiler.Interpreter(both), compiler.Compiled(both, ISAS[0], threads=3)
    for n in (0, 1, 31, 4096, 4097, 300_001):
        assert one.encode(gradient(n)) == two.encode(gradient(n))


RANKS = """
algorithm "ranks" "any rank";
param float share = 0.5 in [0, 1];
void Encode(float* gradient, uint8* compressed) {
  float at = quantile(gradient, share);
  int* top = topk(gradient, int(ceil(share * gradient.size)));
  int* drawn = random_indices(gradient.size, int(share * gradient.size));
  float* seen = sample(gradient, int(share * gradient.size));
  compressed = concat(at, uint32(top), uint32(drawn), seen);
}
"""


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("isa", ISAS)
def test_any_rank_and_any_number_of_strata(isa):
    """Any rank and any number of strata work: few and many keys, with ties, all alike, and with
    values that are not finite."""
    for n in (1, 17, 65, 1000, 100_003):
        ties = np.round(gradient(n) * 4) / 4
        special = gradient(n, 1)
        special[:: max(n // 7, 1)] = np.nan
        special[1 :: max(n // 5, 1)] = -np.inf
        for share in (0.001, 0.3, 0.99, 1):
            program = from_text(RANKS)
            one = compiler.Interpreter(program, share=share)
            two = compiler.Compiled(program, isa, share=share)
            for x in (gradient(n), ties, special, np.ones(n, np.float32)):
                assert one.encode(x) == two.encode(x), (n, share)


def test_a_sample_is_runs_of_neighbours_spread_evenly():
    """Sample consists of 8 evenly spread runs: of 8 parts of range(1001), 4 numbers each from a
    multiple of 4 on, 1000 at most; or all."""
    text = """
    void E(float* g, uint8* c) { c = concat(sample(g, 30)); }"""
    coder = compiler.Interpreter(from_text(text))
    values = np.arange(1001, dtype=np.float32)
    starts = set()
    for step in range(40):
        seen = np.frombuffer(coder.encode(values, step=step), np.float32)
        runs = [seen[j : j + 4] for j in range(0, 30, 4)]
        for part, run in enumerate(runs):
            assert (run == np.minimum(run[0] + np.arange(run.size), 1000)).all() and run[0] % 4 == 0
            assert part * 251 // 8 <= run[0] / 4 < (part + 1) * 251 // 8
        starts.add(tuple(run[0] for run in runs))
    assert len(starts) == 40
    few = values[:30]
    assert coder.encode(few) == few.tobytes()


def test_philox_known_answers():
    """Philox matches Random123's kat_vectors: philox4x32 with ten rounds, and with our seven."""
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], (0xA4093822, 0x299F31D0)
    for (counter, key), answer in (
        (([0] * 4, (0, 0)), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (([0xFFFFFFFF] * 4, (0xFFFFFFFF,) * 2), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (pi, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ):
        assert philox.philox4x32(np.array(counter, np.uint32), key, 10).tolist() == answer
    for (counter, key), answer in (
        (([0] * 4, (0, 0)), [0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48]),
        (([0xFFFFFFFF] * 4, (0xFFFFFFFF,) * 2), [0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662]),
        (pi, [0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A]),
    ):
        assert philox.philox4x32(np.array(counter, np.uint32), key).tolist() == answer


def test_sixteen_random_bits_are_uniform_and_hardly_related():
    """Sixteen random bits are uniform and hardly related. Elements that are 16 apart share a byte,
    as docs/reference/compll-language.md says."""
    count = 1 << 20
    drawn = philox.halves(count, site=0, seed=3, step=5)
    assert abs(drawn.mean() - 32767.5) < 5 * 65536 / np.sqrt(12 * count)
    for byte in (drawn & 255, drawn >> 8):
        expected = count / 256
        chi_squared = ((np.bincount(byte, minlength=256) - expected) ** 2 / expected).sum()
        assert chi_squared < 255 + 5 * np.sqrt(2 * 255)
    tiles = drawn.reshape(-1, 4, 16)
    assert ((tiles[:, 0] >> 8) == (tiles[:, 1] & 255)).all()
    for level in (0.003, 0.2, 0.5, 0.9):
        up = (tiles + level * 65536 >= 65536).astype(float)
        assert abs(up.mean() - level) < 1 / 65536 + 5 * np.sqrt(level * (1 - level) / count)
        one, next_ = up[:, 0].ravel(), up[:, 1].ravel()
        covariance = (one * next_).mean() - one.mean() * next_.mean()
        assert abs(covariance) < 1 / 512 + 5 * level * (1 - level) / np.sqrt(one.size)


@pytest.mark.parametrize("order", ["lsb", "msb"])
@pytest.mark.parametrize("bits", range(1, 9))
def test_packing_round_trip(bits, order):
    codes = np.random.default_rng(bits).integers(0, 2**bits, 77)
    assert (unpack(pack(codes, bits, order, 16), 77, bits, order) == codes).all()
    assert pack(np.array([1]), bits, "lsb", 1)[0] == 1
    assert pack(np.array([1]), bits, "msb", 1)[0] == 1 << (8 - bits)


@pytest.mark.parametrize("name", SPECS)
def test_malformed_payloads_are_refused_alike(name):
    """Malformed payloads (wrong sizes, flipped bytes, random bytes) are refused alike by both
    coders, and nothing is read out of bounds."""
    one, two = compiler.Interpreter(program(name)), compiler.Compiled(program(name), ISAS[0])
    n = 300
    good = one.encode(gradient(n))
    generator = np.random.default_rng(1)
    hostile = [good[:-1], good + b"\0", b"", good[: len(good) // 2], b"\xff" * len(good)]
    for _ in range(200):
        bad = bytearray(good)
        for _ in range(generator.integers(1, 5)):
            bad[generator.integers(0, len(bad))] = generator.integers(0, 256)
        hostile += [bytes(bad), generator.bytes(int(generator.integers(0, 2 * len(good))))]
    refused = 0
    for payload in hostile:
        results = []
        for coder in (one, two):
            try:
                results.append(coder.decode(payload, n).tobytes())
            except compiler.PayloadError:
                results.append(None)
        assert results[0] == results[1]
        refused += results[0] is None
    assert refused >= 4


PLAIN = """
void Encode(float* g, uint8* c) {
  int* sent = topk(g, 2);
  c = concat(uint32(sent.size), uint32(sent), gather(g, sent));
}
void Decode(uint8* c, float* g) {
  uint32 count;
  uint32 index[count];
  float value[count];
  extract(c, count, index, value);
  g = scatter(g.size, index, value);
}
"""


def test_sparse_payloads_with_bad_indices_are_refused():
    head = np.array([2], np.uint32).tobytes()
    values = np.ones(2, np.float32).tobytes()
    coder = compiler.Compiled(from_text(PLAIN), ISAS[0])
    for pair, fine in (((1, 5), True), ((5, 1), False), ((5, 5), False), ((5, 10), False)):
        payload = head + np.array(pair, np.uint32).tobytes() + values
        if fine:
            assert coder.decode(payload, 10).sum() == 2
        else:
            with pytest.raises(compiler.PayloadError, match="ascend"):
                coder.decode(payload, 10)
    with pytest.raises(compiler.PayloadError, match="not have more elements"):
        coder.decode(np.array([0xFFFFFFFF], np.uint32).tobytes() + bytes(80), 10)
