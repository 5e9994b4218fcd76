"""CompLL's algorithms as types of the library: in this process, loaded at run time, in a job."""

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
from compll_helpers import ISAS, SPECS, gradient, program, same_bits
from harness.cluster import run_cluster, worker_outputs
from hipress.compression import compiler
from hipress.compression.compiler.backends.numpy import packing
from hipress.native.library import instruction_sets
from scripts import SCRIPTS

BUILT_IN = SPECS
WITH_ERROR_FEEDBACK = ["1bit", "2bit", "dct", "onebit", "sparseloco", "stc", "ternary"]
WITH_RESIDUAL = [name for name in SPECS if "residual" in hipress.Compressor(name).state_names]
UNDECAYED = {"dgc": {"momentum": 0.0}, "dct": {"decay": 1.0}, "sparseloco": {"decay": 1.0}}
"""Parameters with which a residual is only what was not sent."""
SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")

HALVES = """
// Sends every element halved; the rest stays.
algorithm "halves_%s" "half of everything";
param float share = %s in (0, 1] "of what is sent";
state float* residual;
void Encode(float* gradient, uint8* compressed) {
  float* x = residual + gradient;
  float* sent = share * x;
  residual = x - sent;
  compressed = concat(sent);
}
void Decode(uint8* compressed, float* gradient) {
  float* sent;
  extract(compressed, sent);
  gradient = sent;
}
"""


def gradients() -> st.SearchStrategy[np.ndarray]:
    special = st.sampled_from([0.0, -0.0, 0.5, -0.5, float(np.float32(0.05)), 1.0, 2.0**-140])
    values = st.floats(-1000, 1000, width=32) | special
    return hnp.arrays(np.float32, st.integers(0, 200), elements=values)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("name", WITH_ERROR_FEEDBACK)
@settings(max_examples=30, deadline=None)
@given(first=gradients(), second=st.integers(0, 2**31))
def test_any_gradient_gives_the_interpreters_bytes_and_residual(name, first, second):
    codec, states = hipress.Compressor(name), {}
    coder = compiler.Interpreter(program(name))
    for step, x in enumerate([first, gradient(first.size, second), first]):
        payload = codec.encode(x)
        assert payload == coder.encode(x, states, step)
        assert same_bits(codec.residual, states["residual"])
        assert same_bits(codec.decode(payload, x.size), coder.decode(payload, x.size))


@pytest.mark.parametrize("name", WITH_ERROR_FEEDBACK)
def test_nan_and_inf_are_handled_as_by_the_interpreter(name):
    for value in (np.nan, np.inf, -np.inf):
        codec, states = hipress.Compressor(name), {}
        coder = compiler.Interpreter(program(name))
        x = gradient(500)
        x[77] = value
        for step, g in enumerate([x, gradient(500, 1)]):
            payload = codec.encode(g)
            assert payload == coder.encode(g, states, step)
            np.testing.assert_array_equal(codec.residual, states["residual"])


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_library_gives_the_interpreters_bytes(name):
    codec, states = hipress.Compressor(name), {}
    coder = compiler.Interpreter(program(name))
    for n in (0, 1, 1000, 65537):
        codec, states = hipress.Compressor(name), {}
        for step in range(3):
            x = gradient(n, step)
            payload = codec.encode(x)
            assert payload == coder.encode(x, states, step)
            assert len(payload) <= codec.max_bytes(n)
            decoded = codec.decode(payload, n)
            assert same_bits(decoded, coder.decode(payload, n))
            total = coder.decode_sum([payload] * 3, n)
            assert same_bits(codec.decode_sum([payload] * 3, n), total)


@pytest.mark.parametrize("name", BUILT_IN)
def test_threads_and_unaligned_starts_change_nothing(name):
    n = 100_003
    data = np.zeros(4 * n + 4, np.uint8)
    odd = data[4:].view(np.float32)
    found = set()
    for threads in (1, 2, 5):
        codec = hipress.Compressor(name, threads=threads)
        payloads = []
        for step in range(2):
            odd[:] = gradient(n, step)
            payloads.append(codec.encode(odd))
        total = codec.decode_sum(payloads, n).tobytes()
        decoded = codec.decode(payloads[1], n).tobytes()
        found.add((*payloads, decoded, codec.residual.tobytes(), total))
    assert len(found) == 1


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.parametrize("n", [1000, 20_011])
def test_half_precision_is_converted_exactly(name, n):
    half = gradient(n).astype(np.float16)
    bits = (gradient(n).view(np.uint32) >> 16).astype(np.uint16)
    for narrow, dtype in ((half, "float16"), (bits, "bfloat16")):
        wide = (
            half.astype(np.float32)
            if dtype == "float16"
            else (narrow.astype(np.uint32) << 16).view(np.float32)
        )
        first, second = hipress.Compressor(name), hipress.Compressor(name)
        for _ in range(2):
            payload, other = first.encode(narrow, dtype), second.encode(wide)
            assert payload == other or name == "lossless"  # which contains its type
        decoded = second.decode(payload, n)
        if dtype == "float16":
            with np.errstate(over="ignore"):
                assert same_bits(first.decode(payload, n, dtype), decoded.astype(np.float16))
        else:
            rounded = packing.to_bfloat16(decoded)
            assert same_bits(first.decode(payload, n, dtype), rounded)


DIGESTS = SCRIPTS / "compll_codecs" / "digests.py"


@pytest.mark.slow
def test_every_instruction_set_gives_the_same_bits():
    outputs = {}
    here = Path(__file__).resolve().parents[1]
    isas = [isa for isa in ISAS if isa in instruction_sets()[0]]
    for isa in isas:
        path = os.pathsep.join([str(here), *sys.path])
        result = subprocess.run(
            [sys.executable, str(DIGESTS)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": path, "HIPRESS_SIMD": isa},
            check=False,
        )
        assert result.returncode == 0, result.stderr
        outputs[isa] = result.stdout.splitlines()
    for isa in isas[1:]:
        assert outputs[isa] == outputs[isas[0]]


@pytest.mark.parametrize("name", WITH_RESIDUAL)
@settings(max_examples=40, deadline=None)
@given(first=gradients(), seed=st.integers(0, 2**31))
def test_residual_is_what_was_not_sent(name, first, seed):
    """The residual is what was not sent: residual == (gradient + old residual) - decoded, in
    float32."""
    codec = hipress.Compressor(name, **UNDECAYED.get(name, {}))
    residual = np.zeros(first.size, np.float32)
    for x in (first, gradient(first.size, seed), first):
        decoded = codec.decode(codec.encode(x), x.size)
        expected = (residual + x) - decoded
        np.testing.assert_array_equal(codec.residual, expected)
        residual = codec.residual


@pytest.mark.parametrize("name", ["stc", "ternary"])
@pytest.mark.parametrize("threshold", [1.0, 2.0, 4.0])
def test_elements_that_are_all_as_large_are_sent(name: str, threshold: float):
    codec = hipress.Compressor(name, threshold=threshold)
    equal = np.full(4096, 0.1, np.float32)  # whose mean, in float32, is above them
    for _ in range(4):
        np.testing.assert_allclose(codec.decode(codec.encode(equal), equal.size), equal, rtol=1e-5)
    assert np.abs(codec.residual).max() < 1e-5


@pytest.mark.parametrize("name", ["stc", "ternary"])
def test_the_mean_of_what_is_large_of_the_running_sum_is_sent(name: str):
    codec = hipress.Compressor(name, threshold=1, momentum=0.5)
    codec.encode(np.array([1, -1, 1, -1], np.float32))  # sent exactly; the momentum stays
    x = np.array([3.5, -2.5, 0.5, 0.5], np.float32)  # the running sum is 4, -3, 1, 0: mean 2
    decoded = codec.decode(codec.encode(x), 4)
    np.testing.assert_array_equal(decoded, [3.5, -3.5, 0, 0])
    np.testing.assert_array_equal(codec.residual, [0.5, 0.5, 1, 0])
    assert "momentum=0 " in hipress.Compressor(name, momentum=0.5).for_sum_of(2).config + " "


def test_sparseloco_sends_the_largest_in_two_magnitudes():
    codec = hipress.Compressor("sparseloco", ratio=0.5, decay=0.5)
    x = np.array([8, -6, 2, -4, 1, 0.5, -1, 0.25], np.float32)  # of the four largest the mean is 5
    payload = codec.encode(x)
    np.testing.assert_array_equal(codec.decode(payload, 8), [7, -7, 3, -3, 0, 0, 0, 0])
    residual = np.array([1, 1, -1, -1, 1, 0.5, -1, 0.25], np.float32)
    np.testing.assert_array_equal(codec.residual, residual)
    codec.encode(np.zeros(8, np.float32))  # the first four, of half the size, in one magnitude
    np.testing.assert_array_equal(codec.residual, [0, 0, 0, 0, 0.5, 0.25, -0.5, 0.125])
    # A sum of several payloads may have as many elements as all of them, and does not decay.
    config = codec.for_sum_of(4).config
    assert "ratio=1 " in config + " " and "decay=1 " in config + " ", config


def test_sparseloco_takes_ten_bits_for_one_element_of_64():
    n = 1 << 20
    codec = hipress.Compressor("sparseloco")
    assert 4 * n / len(codec.encode(gradient(n))) > 204


def test_stc_sends_nothing_of_zeros():
    codec = hipress.Compressor("stc")
    payload = codec.encode(np.zeros(100000, np.float32))
    assert len(payload) == 8
    assert not codec.decode(payload, 100000).any()


def test_terngrad_is_unbiased():
    x = gradient(2000)
    total = np.zeros(2000)
    for seed in range(400):
        codec = hipress.Compressor("terngrad", bitwidth=1, seed=seed)
        total += codec.decode(codec.encode(x), 2000)
    gap = float(x.max() - x.min())
    # The mean of 400 roundings by at most one gap: standard deviation below gap / 2 / sqrt(400).
    assert np.abs(total / 400 - x).max() < 6 * gap / 40
    assert abs((total / 400 - x).mean()) < 6 * gap / 40 / np.sqrt(2000)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("stochastic", [0, 1])
def test_maxmin_error_is_within_a_level(bits, stochastic):
    x = gradient(5000) * np.repeat([1e-3, 1, 50, 1e4, 1], 1000).astype(np.float32)
    codec = hipress.Compressor("maxmin", bits=bits, bucket=128, stochastic=stochastic)
    error = np.abs(codec.decode(codec.encode(x), 5000) - x)
    for start in range(0, 5000, 128):
        part = slice(start, start + 128)
        level = (x[part].max() - x[part].min()) / (2**bits - 1)
        assert error[part].max() <= level * (1.001 if stochastic else 0.501)
    assert len(codec.encode(x)) == 40 * 8 + 5000 * bits // 8
    constant = np.full(300, 0.1, np.float32)
    assert same_bits(codec.decode(codec.encode(constant), 300), constant)


@pytest.mark.parametrize("what", ["small", "large", "a misleading sample", "equal"])
def test_topk_is_numpys(what):
    n = 10_000 if what == "small" else 100_000
    x = gradient(n)
    if what == "a misleading sample":  # large where topk searches first, and hardly anywhere else
        lines = (n // 16) // 64
        start = np.arange(lines) * ((n - 64) // 16) // lines * 16
        x[(start[:, None] + np.arange(16)).ravel()] *= 100
        assert 16 * lines > 15 * n // 1000
    elif what == "equal":
        x = np.where(x > 1, np.float32(-3), np.float32(2))
    codec = hipress.Compressor("topk", ratio=0.01)
    decoded = codec.decode(codec.encode(x), n)
    largest = np.sort(np.argsort(-np.abs(x), kind="stable")[: n // 100])
    assert (np.flatnonzero(decoded) == largest).all()
    assert (decoded[largest] == x[largest]).all()


@pytest.mark.parametrize("n", [2000, 65536, 300_000])
def test_the_sample_of_dgc_loses_none_of_the_largest(n):
    for seed in range(20):
        x = gradient(n, seed)
        codec = hipress.Compressor("dgc", ratio=0.001, seed=seed)
        decoded = codec.decode(codec.encode(x), n)
        k = -(-n // 1000)
        largest = np.sort(np.argsort(-np.abs(x), kind="stable")[:k])
        assert (np.flatnonzero(decoded) == largest).all()


@pytest.mark.parametrize("name", ["1bit", "2bit", "tbq"])
@pytest.mark.parametrize("count", [2, 127, 128, 200])
def test_sums_of_levels_are_exact_whatever_their_number(name, count):
    n = 1000
    codec = hipress.Compressor(name, **{"scale" if name == "1bit" else "threshold": 0.5})
    payloads = [codec.encode(np.full(n, 9, np.float32)) for _ in range(count // 2)]
    payloads += [codec.encode(gradient(n, seed)) for seed in range(count - len(payloads))]
    total = sum(codec.decode(payload, n) for payload in payloads)
    assert same_bits(codec.decode_sum(payloads, n), total)


def test_dgc_follows_the_paper():
    """DGC follows the paper: u = m u + g; v += u; the largest of v are sent, and zeroed in u
    and v."""
    n, m = 1000, np.float32(0.9)
    codec = hipress.Compressor("dgc", ratio=0.05)
    u, v = np.zeros(n, np.float32), np.zeros(n, np.float32)
    for step in range(5):
        g = gradient(n, step)
        u = m * u + g
        v = v + u
        sent = np.argsort(-np.abs(v), kind="stable")[:50]
        expected = np.zeros(n, np.float32)
        expected[sent] = v[sent]
        assert same_bits(codec.decode(codec.encode(g), n), expected)
        u[sent] = v[sent] = 0


def test_dgc_warm_up_and_the_cap_of_graddrop():
    codec = hipress.Compressor("dgc", ratio=0.001, warmup=8)
    counts = [sent(codec.encode(gradient(4096, s))) for s in range(9)]
    assert counts[0] == counts[1] == 1024 and counts[2] == 256 and counts[4] == 64
    assert counts[8] == 5
    codec = hipress.Compressor("graddrop", drop=0.99)
    assert sent(codec.encode(np.ones(5000, np.float32))) == 2 * 50


def sent(payload: bytes) -> int:
    """Return how many elements a sparse payload has."""
    return int(np.frombuffer(payload[:4], np.uint32)[0])


def test_halves_and_casts():
    x = gradient(1000, scale=100.0)
    codec = hipress.Compressor("fp16")
    assert codec.encode(x) == x.astype(np.float16).tobytes()
    half = x.astype(np.float16)
    assert codec.encode(half) == half.tobytes()
    assert same_bits(codec.decode(codec.encode(half), 1000, "float16"), half)
    ternary = hipress.Compressor("tbq", threshold=10.0)
    assert ternary.encode(half) == hipress.Compressor("tbq", threshold=10.0).encode(
        half.astype(np.float32)
    )


def test_malformed_payloads_name_what_is_wrong():
    with pytest.raises(ValueError, match="must have 33 bytes, not 2"):
        hipress.Compressor("terngrad").decode(b"ab", 100)
    index = bytes([0b10, 100 - 64])  # 64 and 36: one element of 100 has 6 lower bits
    bad = np.array([1], np.uint32).tobytes() + index + bytes(4)
    with pytest.raises(ValueError, match="indices that ascend and are below 100"):
        hipress.Compressor("graddrop", drop=0.5).decode(bad, 100)


@pytest.mark.slow
def test_load_makes_a_type(tmp_path):
    path = tmp_path / "halves.cll"
    path.write_text(HALVES % ("load", "0.5"))
    assert compiler.load(path) == "halves_load"
    assert compiler.load(path) == "halves_load", "the same text again does nothing"
    codec = hipress.Compressor("halves_load", share=0.25)
    x = gradient(100)
    assert same_bits(codec.decode(codec.encode(x), 100), np.float32(0.25) * x)
    path.write_text(HALVES % ("load", "0.75"))
    with pytest.raises(ValueError, match="halves_load is loaded already, from another text"):
        compiler.load(path)
    path.write_text("algorithm 3;")
    with pytest.raises(compiler.CompileError, match="expected a text in quotes"):
        compiler.load(path)


@pytest.mark.slow
def test_the_tutorials_algorithm_works(tmp_path):
    text = (Path(__file__).resolve().parents[3] / "docs/guides/write-a-codec.md").read_text()
    path = tmp_path / "signmean.cll"
    path.write_text(text.split("```c\n")[1].split("```")[0])
    codec = hipress.Compressor(compiler.load(path))
    x = np.array([1, -2, 3], np.float32)
    np.testing.assert_array_equal(codec.decode(codec.encode(x), 3), [2, -2, 2])
    np.testing.assert_array_equal(codec.residual, [-1, 0, 1])


WORKER = SCRIPTS / "compll_codecs" / "worker.py"


def job(type_: str, path: Path | None) -> list[str]:
    env = {} if path is None else {"HIPRESS_CODECS": str(path)}
    results = run_cluster(WORKER, server_command=SERVER, env=env, args=[type_])
    outputs = worker_outputs(results)
    assert all("finished" in output for output in outputs)
    return outputs


@pytest.mark.parametrize("name", ["dgc", "terngrad", "maxmin", "graddrop"])
def test_a_job_trains_with_a_built_in(name):
    """A job of two workers and two servers trains with a built-in codec; every worker pulls the
    same values."""
    first, second = job(name, None)
    assert first == second and float(first.split()[-2]) > 0


def test_workers_keys_and_partitions_round_with_numbers_of_their_own():
    outputs = worker_outputs(
        run_cluster(
            SCRIPTS / "compll_codecs" / "random_numbers.py",
            server_command=SERVER,
            env={"HIPRESS_PARTITION_ELEMENTS": "4096"},
        )
    )
    assert all("finished" in output for output in outputs)


@pytest.mark.slow
def test_a_job_loads_an_algorithm_on_every_node(tmp_path):
    path = tmp_path / "halves.cll"
    path.write_text(HALVES % ("job", "0.5"))
    first, second = job("halves_job", path)
    assert first == second and float(first.split()[-2]) > 0


def test_a_wrong_file_in_hipress_codecs_is_an_error(tmp_path):
    path = tmp_path / "wrong.cll"
    path.write_text("void f() {}")
    result = subprocess.run(
        [sys.executable, "-c", "import hipress; hipress.codecs()"],
        env={**os.environ, "HIPRESS_CODECS": str(path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode != 0
    assert f"{path}:1:6: error: f must take (float* gradient" in result.stderr
