"""Checks of hipress.Compressor against formulas written here in NumPy, and its answers to bad
input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hipress
from hipress.native.library import instruction_sets
from scripts import SCRIPTS

FORMATS = {
    "none": {},
    "2bit": {"threshold": 0.5},
    "1bit": {"threshold": 0.0, "scale": 1.0},
    "onebit": {},
}


def two_bit(x: np.ndarray, threshold: float) -> tuple[bytes, np.ndarray]:
    """Compute MXNet's documented 2bit format: payload and decoded values of x = gradient +
    residual."""
    t = np.float32(threshold)
    codes = np.where(x >= t, 3, np.where(x <= -t, 2, 0)).astype(np.uint8)
    padded = np.zeros(-(-x.size // 16) * 16, np.uint8)
    padded[: x.size] = codes
    quads = padded.reshape(-1, 4)
    payload = quads[:, 0] << 6 | quads[:, 1] << 4 | quads[:, 2] << 2 | quads[:, 3]
    levels = np.array([0, 0, -t, t], np.float32)
    return payload.astype(np.uint8).tobytes(), levels[codes]


def one_bit(x: np.ndarray, threshold: float, scale: float) -> tuple[bytes, np.ndarray]:
    """Compute MXNet 2.0's documented 1bit format."""
    bits = np.zeros(-(-x.size // 32) * 32, bool)
    bits[: x.size] = x > np.float32(threshold)
    s = np.float32(scale)
    return np.packbits(bits).tobytes(), np.where(bits[: x.size], s, -s)


def sign_and_means(x: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Compute the onebit format as documented, with its order of summation."""
    bits = np.zeros(-(-x.size // 32) * 32, bool)
    bits[: x.size] = x >= 0
    means = []
    for chosen in (~bits[: x.size], bits[: x.size]):
        part = np.where(chosen, x, np.float32(0))
        total = 0.0
        for block in np.split(part, range(4096, x.size, 4096)):
            rows = np.zeros((-(-block.size // 32), 32), np.float32)
            rows.ravel()[: block.size] = block
            lanes = np.zeros(32, np.float32)
            for row in rows:
                lanes = lanes + row
            while lanes.size > 1:
                lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
            total += float(lanes[0])
        means.append(np.float32(total / chosen.sum()) if chosen.any() else np.float32(0))
    payload = np.array(means, np.float32).tobytes()
    payload += np.packbits(bits, bitorder="little").tobytes()
    return payload, np.where(bits[: x.size], means[1], means[0])


def oracle(name: str, x: np.ndarray) -> tuple[bytes, np.ndarray]:
    if name == "none":
        return x.tobytes(), x
    if name == "2bit":
        return two_bit(x, **FORMATS[name])
    if name == "1bit":
        return one_bit(x, **FORMATS[name])
    return sign_and_means(x)


def gradients(max_size: int = 300) -> st.SearchStrategy[np.ndarray]:
    finite = st.floats(-1e6, 1e6, width=32)
    special = np.array([0, -0.0, 0.5, -0.5, 0.49999997, 1, 1e-40], np.float32).tolist()
    near = st.sampled_from(special)
    return hnp.arrays(np.float32, st.integers(0, max_size), elements=finite | near)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(first=gradients(), seed=st.integers(0, 2**31))
def test_bytes_values_and_residual_are_the_formulas(name, first, seed):
    compressor = hipress.Compressor(name, **FORMATS[name])
    generator = np.random.default_rng(seed)
    residual = np.zeros(first.size, np.float32)
    gradient = first
    for _step in range(3):
        x = gradient if name == "none" else residual + gradient
        expected_payload, expected = oracle(name, x)
        payload = compressor.encode(gradient)
        assert payload == expected_payload
        decoded = compressor.decode(payload, gradient.size)
        np.testing.assert_array_equal(decoded, expected)
        # Error feedback loses nothing: residual == (gradient + old residual) - decoded.
        residual = x - decoded
        np.testing.assert_array_equal(compressor.residual, residual)
        gradient = generator.normal(0, 0.6, first.size).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
def test_large_gradients_are_the_formulas(name):
    generator = np.random.default_rng(5)
    gradient = generator.normal(0, 1, 100_003).astype(np.float32)
    compressor = hipress.Compressor(name, **FORMATS[name])
    payload, expected = oracle(name, gradient)
    assert compressor.encode(gradient) == payload
    np.testing.assert_array_equal(compressor.decode(payload, gradient.shape), expected)


@pytest.mark.parametrize("name", FORMATS)
def test_a_sum_is_that_of_the_decoded_payloads(name):
    generator = np.random.default_rng(6)
    payloads, total = [], None
    for _ in range(5):
        compressor = hipress.Compressor(name, **FORMATS[name])
        payloads.append(compressor.encode(generator.normal(0, 1, (7, 31)).astype(np.float32)))
        decoded = compressor.decode(payloads[-1], (7, 31))
        total = decoded if total is None else total + decoded
    np.testing.assert_array_equal(compressor.decode_sum(payloads, (7, 31)), total)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FORMATS)
def test_half_precision(name, dtype):
    values = np.random.default_rng(7).normal(0, 1, 1000).astype(np.float16)
    if dtype == "bfloat16":
        halves = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        wide = (halves.astype(np.uint32) << 16).view(np.float32)
    else:
        halves, wide = values, values.astype(np.float32)
    compressor = hipress.Compressor(name, **FORMATS[name])
    payload = compressor.encode(halves, dtype)
    if name == "none":
        assert payload == halves.tobytes()
        np.testing.assert_array_equal(compressor.decode(payload, 1000, dtype), halves)
    else:
        assert payload == oracle(name, wide)[0]
    sums = compressor.decode_sum([payload], 1000, dtype)
    if name == "none":
        np.testing.assert_array_equal(sums, wide)
    else:
        np.testing.assert_allclose(sums + compressor.residual, wide, atol=1e-6)


def test_training_with_error_feedback_sends_everything_in_the_end():
    """A small constant gradient, far under the threshold, still arrives at its full rate."""
    compressor = hipress.Compressor("2bit", threshold=0.5)
    gradient = np.full(64, 0.003, np.float32)
    sent = np.zeros(64)
    for _ in range(1000):
        sent += compressor.decode(compressor.encode(gradient), 64)
    np.testing.assert_allclose(sent, 3.0, atol=0.5)


def test_nan_is_seen_at_once_and_forgotten_after():
    compressor = hipress.Compressor("onebit")
    gradient = np.ones(100, np.float32)
    gradient[17] = np.nan
    assert np.isnan(compressor.decode(compressor.encode(gradient), 100)).all()
    assert np.isfinite(compressor.residual).all()
    assert np.isfinite(compressor.decode(compressor.encode(np.ones(100, np.float32)), 100)).all()


def test_residual_can_be_moved_to_another_compressor():
    old, new = hipress.Compressor("onebit"), hipress.Compressor("2bit")
    assert old.residual is None
    gradient = np.random.default_rng(8).normal(0, 1, 50).astype(np.float32)
    sent = old.decode(old.encode(gradient), 50)
    new.residual = old.residual
    sent = sent + new.decode(new.encode(np.zeros(50, np.float32)), 50)
    np.testing.assert_allclose(sent + new.residual, gradient, atol=1e-6)


def test_registry_documents_every_parameter():
    codecs = hipress.codecs()
    assert set(FORMATS) <= set(codecs)
    for info in codecs.values():
        assert info.summary
        for param in info.params:
            assert param in info.doc


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"type": "4bit"}, 'unknown compression type "4bit"; allowed: 1bit, 2bit'),
        ({"type": "2bit", "threshold": 0}, 'must be a finite number > 0, not "0"'),
        ({"type": "2bit", "threshold": float("nan")}, 'must be a finite number > 0, not "nan"'),
        ({"type": "2bit", "threshold": "1e99"}, 'must be a finite number > 0, not "1e99"'),
        ({"type": "1bit", "scale": -1}, 'must be a finite number > 0, not "-1"'),
        ({"type": "onebit", "rate": 1}, 'has no parameter "rate"; its parameters: none'),
        ({"type": "terngrad", "bitwidth": 3}, 'must be one of 1, 2, 4, 8, not "3"'),
        ({"type": "topk", "ratio": 0}, 'must be a finite number > 0 and <= 1, not "0"'),
        ({"type": "topk", "ratio": "nan"}, 'must be a finite number > 0 and <= 1, not "nan"'),
        ({"type": "maxmin", "bucket": 100}, "a multiple of 64, not"),
        ({"type": "dgc", "rate": 1}, 'has no parameter "rate"; its parameters: ratio (default'),
        ({"type": "tbq", "spec": "00"}, "was compiled from another text elsewhere"),
    ],
)
def test_bad_parameters(params, sentence):
    with pytest.raises(ValueError, match=".") as caught:
        hipress.Compressor(**params)
    assert sentence in str(caught.value)


def test_bad_data():
    compressor = hipress.Compressor("2bit")
    with pytest.raises(ValueError, match="float32, float16 or bfloat16, not float64"):
        compressor.encode(np.zeros(4))
    with pytest.raises(ValueError, match="uint16 cannot hold float32"):
        compressor.encode(np.zeros(4, np.uint16), "float32")
    with pytest.raises(ValueError, match="100 elements must have 28 bytes, not 3"):
        compressor.decode(b"abc", 100)
    with pytest.raises(ValueError, match="1 payload or more"):
        compressor.decode_sum([], 100)
    compressor.encode(np.zeros(100, np.float32))
    with pytest.raises(ValueError, match="gradient of 100 elements, not 99"):
        compressor.encode(np.zeros(99, np.float32))


def encode_in_process(simd: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[3]
    path = os.pathsep.join([str(root / "python"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "encoded_digest.py")],
        env={**os.environ, "HIPRESS_SIMD": simd, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_instruction_sets_can_be_forced_and_agree():
    compiled, used = instruction_sets()
    outcomes = [encode_in_process(isa) for isa in (compiled[-1], used, "")]
    assert [each.returncode for each in outcomes] == [0, 0, 0], outcomes
    assert len({each.stdout for each in outcomes}) == 1
    missing = {"baseline", "avx2", "mmx"} - set(compiled)
    for isa in missing:
        wrong = encode_in_process(isa)
        assert wrong.returncode != 0
        assert "must be an instruction set that this CPU has and that the" in wrong.stderr
