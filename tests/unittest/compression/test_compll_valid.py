"""Valid programs compile to the interpreter's bits; invalid ones are refused with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compll_helpers import ISAS, check_equal, from_text, gradient
from compll_random import random_encoder
from hipress.compression import compiler
from host_coder import HostCoder

SPARSE = """
param float ratio = 0.01 in (0, 1];
param uint32 seed = 0;
state float* residual;
void Encode(float* gradient, uint8* compressed) {
  int k = int(ceil(ratio * gradient.size));
  %s
}
void Decode(uint8* compressed, float* gradient) {
  uint32 count; int index[count];
  extract(compressed, count, pack_ascending(index));
  gradient = scatter(gradient.size, index, 1.0);
}
"""
NOISE_RANKED = (
    SPARSE
    % """
  residual = map(residual, gradient, [&](float r, float g) -> float {
    return r + g + random<float>(-0.001, 0.001);
  });
  int* sent = topk(abs(residual), k);
  residual = scatter(residual, sent, 0);
  compressed = concat(uint32(sent.size), pack_ascending(sent));"""
)
TWO_RANKED = (
    SPARSE
    % """
  int* up = topk(UP, k);
  int* down = topk(DOWN, k);
  residual = scatter(residual, down, sum(gather(gradient, up)));
  compressed = concat(uint32(up.size), pack_ascending(up));"""
)
DITHERED = """
param uint8 bits = 4 in {2, 4, 8};
param int bucket = 1024 in [64, 1048576] multiple 64;
param uint32 seed = 0;
void Encode(float* gradient, uint8* compressed) {
  float top = (1 << bits) - 1;
  float* x = map(gradient, [&](float v) -> float { return v + random<float>(-0.001, 0.001); });
  float* low = bucket_min(x, bucket);
  float* high = bucket_max(x, bucket);
  float* unit = map(low, high, [&](float a, float b) -> float { return (b - a) / top; });
  uint<bits>* code = map(range(x.size), [&](int i) -> uint<bits> {
    return (x[i] - low[i / bucket]) / unit[i / bucket] + random<float>(0, 1);
  });
  compressed = concat(low, unit, code);
}
void Decode(uint8* compressed, float* gradient) {
  float low[(gradient.size + bucket - 1) / bucket];
  float unit[(bucket - 1 + gradient.size) / bucket];
  uint<bits>* code;
  extract(compressed, low, unit, code);
  gradient = map(range(gradient.size), [&](int i) -> float {
    return low[i / bucket] + code[i] * unit[i / bucket];
  });
}
"""
FIRST = """
void Encode(float* gradient, uint8* compressed) {
  float first = gradient[0];
  float last = gradient[gradient.size + 5];
  compressed = concat(first, last);
}
void Decode(uint8* compressed, float* gradient) {
  float first; float last;
  extract(compressed, first, last);
  gradient = map(range(gradient.size), [&](int i) -> float { return first; });
}
"""
CODECS = {
    "noise that is ranked": NOISE_RANKED,
    "two rankings of the gradient": TWO_RANKED.replace("UP", "gradient").replace(
        "DOWN", "-gradient"
    ),
    "two rankings in one pass": TWO_RANKED.replace("UP", "max(gradient, 0.0)").replace(
        "DOWN", "max(-gradient, 0.0)"
    ),
    "noise before buckets, and in them": DITHERED,
    "elements of the gradient": FIRST,
}


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("what", CODECS)
def test_a_valid_codec_has_the_interpreters_bits(what):
    made = from_text(CODECS[what])
    one = compiler.Interpreter(made)
    for n in (1, 1000, 20_000):
        inputs = [gradient(n, step) for step in range(3)]
        check_equal(one, compiler.Compiled(made, ISAS[0], threads=2), n, inputs)
    check_equal(one, HostCoder(made, emulate=True), 1000, [gradient(1000, s) for s in range(2)])


# What is in an encoder that sends y.
NUMBERS = {
    "abs": "bool plus = sum(gradient) > 0; int a = abs(plus) + abs(-3);"
    "uint32* y = map(gradient, [&](float v) -> uint32"
    " { return abs(bits(v)) + abs(v > 0) + a; });",
    "constants": "uint32* y = map(gradient, [&](float v) -> uint32"
    " { return int(inf) + int(nan) + int(0xffffffff) + bits(v) + (bits(v) & -4) + uint32(1e10)"
    " + uint32(-1.5) + int(-1e30); });",
    "constants outside of lambdas": "float far = inf; int a = int(-inf) / 2 + int(nan);"
    "uint32 y = uint32(inf) + uint32(a) + uint32(int(far));",
    "uint32": "uint32 n = uint32(gradient.size) + uint32(4000000000);"
    "uint32 y = n / uint32(7) + n % uint32(100) + (n << uint32(2)) + (n >> uint32(1));",
    "joined uint32": "uint32* b = map(gradient, [&](float v) -> uint32 { return bits(v); });"
    "uint32 y = reduce(b, 0, [&](uint32 a, uint32 c) -> uint32"
    " { return (a > c ? a : c) / 3 * 3 ^ 5 << 1; });",
    "joined int": "int* b = map(gradient, [&](float v) -> int { return int(v * 9); });"
    "uint32 y = uint32(reduce(b, 0, [&](int a, int c) -> int"
    " { return (abs(a) / 3 > abs(c) % 7 ? a : c) >> 1 << 1; }));",
    "joined float": "float y = reduce(gradient, 0, [&](float a, float c) -> float"
    " { return a > c ? 1 : int(bits(a) ^ bits(c)); });",
    "codes joined": "float y = reduce(gradient, 0, [&](float a, float c) -> float"
    " { uint<3> b = a; uint<3> d = int(c); return b + d; });",
}


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("what", NUMBERS)
def test_numbers_of_each_type_compile(what):
    head, body = "void E(float* gradient, uint8* compressed)", NUMBERS[what]
    text = f"{head} {{ {body} compressed = concat(y); }}"
    x = np.r_[gradient(300, 1, 3.0), np.float32([np.nan, np.inf, -np.inf, -0.0, 1e-42, 3e38])]
    plain = compiler.Interpreter(compiler.read_program(text)).encode(x)
    assert compiler.Interpreter(from_text(text)).encode(x) == plain
    for isa in dict.fromkeys((ISAS[0], ISAS[-1])):
        assert compiler.Compiled(from_text(text), isa).encode(x) == plain


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("seed", range(12))
def test_random_encoders_compile(seed):
    made = from_text(random_encoder(1000 + seed))
    one, two = compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])
    states: tuple[dict, dict] = ({}, {})
    for step in range(3):
        x = gradient(4500, step)
        payload = one.encode(x, states[0], step)
        assert two.encode(x, states[1], step, new_states=bool(seed % 2)) == payload
        assert all(np.array_equal(states[1][k], v, equal_nan=True) for k, v in states[0].items())


HEAD = "void E(float* g, uint8* c) { %s c = concat(g); }"
REFUSED = {
    "param int b = 64 multiple 0; " + HEAD % "": "a multiple must be 1 at least",
    HEAD % "float y = reduce(g, 0, [&](float a, float b) -> float"
    " { return a + random<float>(0, 1); });": "may use its two values and constants only",
    HEAD
    % "float y = reduce(g, 0, [&](float a, float b) -> float { return a + step; });": "may use its two values and constants only",
    "param float p = 1; " + HEAD % "float y = reduce(g, 0, [&](float a, float b) -> float"
    " { return p; });": "may use its two values and constants only",
    HEAD
    % "float16* h = map(g, [&](float v) -> float16 { return v; }); float a = h[0];": "of a vector of elements of 16 bits a lambda reads",
    "param int b = 1024 multiple 64; "
    + HEAD
    % "float* x = bucket_max(g, b);": "a bucket must be an int parameter that is a multiple of 64, and 64 at least",
    "param int b = 64 in [0, 1024] multiple 64; "
    + HEAD
    % "float* x = bucket_max(g, b);": "a bucket must be an int parameter that is a multiple of 64, and 64 at least",
    "param int b = 64 in {0, 64} multiple 64; "
    + HEAD
    % "float* x = bucket_max(g, b);": "a bucket must be an int parameter that is a multiple of 64, and 64 at least",
    "param int b = 64 in {64, 100} multiple 64; "
    + HEAD
    % "float* x = bucket_max(g, b);": "a bucket must be an int parameter that is a multiple of 64, and 64 at least",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_allowed_is_a_sentence_with_its_place(text):
    with pytest.raises(compiler.CompileError) as caught:
        compiler.read_program(text)
    assert REFUSED[text] in caught.value.message and caught.value.pos is not None


@pytest.mark.parametrize("bounds", ["in (0, 8192] multiple 64", "in {64, 128, 8192}"])
def test_a_bucket_may_have_any_bounds_that_leave_none_empty(bounds):
    made = from_text(
        DITHERED.replace("in [64, 1048576] multiple 64", bounds).replace(
            "bucket = 1024", "bucket = 64"
        )
    )
    assert compiler.Interpreter(made, bucket=8192).encode(gradient(100))
    with pytest.raises(ValueError, match="bucket of"):
        compiler.Interpreter(made, bucket=0)


def test_whatever_is_wrong_with_a_codec_import_says_which(tmp_path):
    """Import error of a codec names the codec, even if the compiler fails in an unexpected way."""
    path = tmp_path / "odd.cll"
    path.write_text(HEAD % "")
    code = (
        "import hipress.compression.compiler as c\ndef odd(path): raise KeyError('odd')\nc.load = odd\n"
        "import hipress.compression.user_codecs"
    )
    root = Path(__file__).resolve().parents[3] / "python"
    env = {**os.environ, "HIPRESS_CODECS": str(path), "PYTHONPATH": str(root)}
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert f"ImportError: HIPRESS_CODECS names {path}: KeyError('odd')" in result.stderr
