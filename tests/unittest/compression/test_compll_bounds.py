"""Bounds of CompLL programs: no payload or gradient makes one leave its vectors."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
import pytest

from compll_helpers import ISAS, check_equal, from_text, gradient, same_bits
from hipress.compression import compiler
from hipress.compression.compiler.ir import ir
from hipress.compression.compiler.ir.verify import IRError, verify
from host_coder import HostCoder

# One element of each 64 is sent: its place is made of a code of six bits.
BLOCKS = """
state float* residual;
void Encode(float* gradient, uint8* compressed) {
  residual = residual + gradient;
  int* at = random_indices(gradient.size, (gradient.size + 63) / 64);
  uint<6>* code = map(at, [&](int i) -> uint<6> { return i % 64; });
  float* value = gather(residual, at);
  int* sent = map(range(at.size), [&](int i) -> int { return 64 * i + code[i]; });
  residual = scatter(residual, sent, 0);
  compressed = concat(uint32(at.size), code, value);
}
void Decode(uint8* compressed, float* gradient) {
  uint32 count; uint<6> code[count]; float value[count];
  extract(compressed, count, code, value);
  int* at = map(range(count), [&](int i) -> int { return 64 * i + code[i]; });
  gradient = scatter(gradient.size, at, value);
}
"""


@cache
def blocks() -> list:
    """Return its coders: interpreted, compiled, and as emulated CUDA."""
    made = from_text(BLOCKS)
    compiled = [compiler.Compiled(made, isa) for isa in dict.fromkeys((ISAS[0], ISAS[-1]))]
    return [compiler.Interpreter(made), *compiled, HostCoder(made, "grid", emulate=True)]


def sent(codes: list[int]) -> bytes:
    packed = sum(code << 6 * place for place, code in enumerate(codes))
    size = -(-6 * len(codes) // 8)
    values = np.arange(1, 1 + len(codes), dtype=np.float32).tobytes()
    return struct.pack("<I", len(codes)) + packed.to_bytes(size, "little") + values


@pytest.mark.slow
def test_computed_indices_of_a_payload_are_checked():
    n = 1000
    for coder in blocks():
        decoded = coder.decode(sent([3, 0, 63]), n)
        assert np.flatnonzero(decoded).tolist() == [3, 64, 191]
        total = np.ones(n, np.float32)
        coder.decode_add(sent([3, 0, 63]), total)
        assert same_bits(total, decoded + 1)
        for codes in ([0] * 17, [63] * n, [0] * 15 + [63]):  # the last is 1023
            for decode in (coder.decode, lambda data, n: coder.decode_add(data, total)):  # noqa: B023
                with pytest.raises(
                    compiler.PayloadError, match="indices that ascend and are below"
                ):
                    decode(sent(codes), n)


@pytest.mark.slow
def test_an_encoder_leaves_out_places_that_its_state_does_not_have():
    """Encoder skips places outside its state. The last block has 40 elements, and its place may be
    any of 64."""
    coders = blocks()
    for other in coders[1:]:
        states: list[dict] = [{}, {}]
        for step in range(8):
            x = gradient(1000, step)
            payloads = {c.encode(x, s, step) for c, s in zip((coders[0], other), states)}
            assert len(payloads) == 1
            assert same_bits(states[0]["residual"], states[1]["residual"])


WILD = """
state float* residual;
void Encode(float* gradient, uint8* compressed) {
  float* far = map(range(9), [&](int i) -> float { return i < gradient.size ? gradient[i] : 0; });
  int* at = map(far, [&](float v) -> int { return int(v); });
  residual = scatter(residual, at, 1.0);
  compressed = concat(at);
}
"""


def test_an_encoder_writes_nothing_beyond_its_states():
    made = from_text(WILD)
    x = np.array([3, -1, 8, 9, 1e9, -1e9, np.inf, np.nan, 1], np.float32)
    expected = np.float32([1, 1, 0, 1, 0, 0, 0, 0, 1])
    for coder in (compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])):
        guarded = np.zeros(64, np.float32)
        states = {"residual": guarded[27:36]}
        coder.encode(x, states)
        assert same_bits(states["residual"], expected)
        assert not guarded[:27].any() and not guarded[36:].any()


NARROW = """
void Encode(float* gradient, uint8* compressed) {
  %s* at = map(range(5), [&](int i) -> %s { return i; });
  compressed = concat(uint32(at.size), at);
}
void Decode(uint8* compressed, float* gradient) {
  uint32 count; %s at[count];
  extract(compressed, count, at);
  gradient = scatter(gradient.size, at, 1.0);
}
"""


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("type_", "elem"), [("uint16", "<H"), ("uint32", "<I"), ("int", "<i")])
def test_indices_of_a_payload_may_have_16_or_32_bits(type_, elem):
    made = from_text(NARROW % (type_, type_, type_))
    coders = [
        compiler.Interpreter(made),
        compiler.Compiled(made, ISAS[0]),
        HostCoder(made, emulate=True),
    ]
    for coder in coders:
        payload = coder.encode(gradient(9))
        assert coder.decode(payload, 9).tolist() == [1] * 5 + [0] * 4
        bad = struct.pack("<I", 2) + struct.pack(elem, 5) + struct.pack(elem, 4)
        with pytest.raises(compiler.PayloadError, match="indices that ascend"):
            coder.decode(bad, 9)


def test_indices_that_are_packed_codes_are_a_compile_error():
    with pytest.raises(compiler.CompileError, match="indices must be int, uint32 or uint16"):
        from_text(NARROW % (("uint<3>",) * 3))


def test_a_range_of_a_payload_is_at_most_the_gradients():
    """A range of a payload is at most the gradient's; otherwise memory for its result would have
    any size."""
    encode, decode = BLOCKS.split("void Decode")
    decode = decode.replace("range(count)", "range(count + 1)").replace("+ code[i]", "")
    text = f"{encode}void Decode{decode}"
    made = from_text(text.replace("at, value)", "at, 1.0)"))
    for coder in (compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])):
        with pytest.raises(compiler.PayloadError, match="a range must not have more elements"):
            coder.decode(sent([0] * 10), 10)


SHORT = """
void Encode(float* gradient, uint8* compressed) {
  int* large = filter(range(gradient.size), [&](int i) -> bool { return gradient[i] > 0; });
  compressed = concat(uint32(large.size), gather(gradient, large));
}
void Decode(uint8* compressed, float* gradient) {
  uint32 count; float value[count];
  extract(compressed, count, value);
  gradient = map(range(gradient.size), [&](int i) -> float { return value[i]; });
}
"""


@pytest.mark.slow
def test_beyond_a_shorter_vector_its_last_element_is_read():
    made = from_text(SHORT)
    one, two = compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])
    values = np.array([1, 2, 3], np.float32)
    payload = struct.pack("<I", 3) + values.tobytes()
    expected = np.r_[values, np.full(997, 3)].astype(np.float32)
    for coder in (one, two, HostCoder(made, emulate=True)):
        assert same_bits(coder.decode(payload, 1000), expected)
        assert not coder.decode(struct.pack("<I", 0), 1000).any()
    check_equal(one, two, 1000, [gradient(1000), -np.ones(1000, np.float32)])


FEWER_BUCKETS = """
param int bucket = 64 in [64, 1024] multiple 64;
void Encode(float* gradient, uint8* compressed) {
  float* high = bucket_max(gradient, bucket);
  compressed = concat(uint32(high.size), high);
}
void Decode(uint8* compressed, float* gradient) {
  uint32 count; float high[count];
  extract(compressed, count, high);
  gradient = map(range(gradient.size), [&](int i) -> float { return high[i / bucket]; });
}
"""


def test_beyond_the_buckets_that_there_are_the_last_is_read():
    made = from_text(FEWER_BUCKETS)
    for coder in (compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])):
        decoded = coder.decode(struct.pack("<I2f", 2, 5, 7), 1000)
        assert decoded.tolist() == [5] * 64 + [7] * 936
        assert coder.decode(coder.encode(gradient(1000)), 1000).size == 1000


def test_elements_of_16_bits_are_read_in_loops_of_their_size_only():
    text = SHORT.replace("float value[count]", "float16 value[count]")
    with pytest.raises(compiler.CompileError, match="a lambda reads its own element only"):
        from_text(text)


def test_the_verifier_knows_sizes():
    made = from_text(FEWER_BUCKETS)
    loop = next(node for node in made.encode.body if isinstance(node, ir.Loop))
    loop.domain = next(instr for instr in made.encode.instrs() if instr.op == "div")
    with pytest.raises(IRError, match="of gradient in a loop of another size"):
        verify(made)
    made = from_text(SHORT)
    gathered = next(instr for instr in made.decode.instrs() if instr.op == "load_at")
    gathered.op, gathered.args = "load", []
    with pytest.raises(IRError, match="load of value in a loop of another size"):
        verify(made)


TABLE = """
void Encode(float* gradient, uint8* compressed) {
  uint<2>* code = map(gradient, [&](float v) -> uint<2> {
    return v >= 1 ? 3 : v >= 0 ? 2 : v >= -1 ? 1 : 0;
  });
  compressed = concat(code);
}
void Decode(uint8* compressed, float* gradient) {
  uint<2> code[gradient.size];
  extract(compressed, code);
  float* level = map(range(4), [&](int i) -> float { return i - 1.5; });
  gradient = map(code, [&](uint<2> c) -> float { return level[c]; });
}
"""


@pytest.mark.parametrize("n", [0, 1, 3, 100])
def test_a_table_may_be_larger_than_the_gradient(n):
    """A table may be larger than the gradient: its size comes from the text, and no payload can
    make it larger."""
    made = from_text(TABLE)
    values = np.linspace(-2, 2, n).astype(np.float32)
    expected = np.select([values >= 1, values >= 0, values >= -1], [1.5, 0.5, -0.5], -1.5)
    for coder in (compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])):
        found = coder.decode(coder.encode(values), n)
        assert np.array_equal(found, expected.astype(np.float32)), coder
