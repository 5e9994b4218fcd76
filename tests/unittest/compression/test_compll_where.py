"""Bits under a mask: the same bytes from every backend, and what is refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import cuda_emulation
from compll_helpers import ISAS, check_equal, from_text, gradient, same_bits
from hipress.compression import compiler
from hipress.compression.compiler.cuda import CudaError
from host_coder import HostCoder, outcome

SIZES = (0, 1, 7, 8, 63, 64, 65, 1000, 4095, 4096, 4097, 100_000)
SENT = """
param float least = 1 in [0, inf);
void Encode(float* g, uint8* c) {
  uint<1>* sent = map(g, [&](float v) -> uint<1> { return abs(v) >= least; });
  c = concat(float(least), sent, pack_where(g < 0, sent));
}
void Decode(uint8* c, float* g) {
  float level;
  uint<1>* sent;
  uint<1>* negative;
  extract(c, level, sent, pack_where(negative, sent));
  require(level >= 0, "must have a level >= 0");
  %s
}
"""
DENSE = """
  g = map(sent, negative, [&](uint<1> s, uint<1> below) -> float {
    return s != 0 ? (below != 0 ? -level : level) : below != 0 ? nan : 0; });
"""
# What a decoder that is several passes does: bits are spread for all elements before the first.
COUNTED = """
  float share = sum(negative);
  g = map(sent, negative, [&](uint<1> s, uint<1> below) -> float {
    return s != 0 ? (below != 0 ? -share : level) : below != 0 ? nan : 0; });
"""


@cache
def program(decoder: str = DENSE) -> compiler.Program:
    return from_text(SENT % decoder)


def emulated(decoder: str = DENSE, shape: str = "grid") -> HostCoder:
    library = cuda_emulation.build(program(decoder))
    return HostCoder(program(decoder), shape, library=library)


def by_hand(x: np.ndarray, least: float = 1.0) -> bytes:
    sent = np.abs(x) >= least
    level = np.float32(least).tobytes()
    planes = [np.packbits(bits, bitorder="little").tobytes() for bits in (sent, x[sent] < 0)]
    return level + b"".join(planes)


def inputs(n: int) -> list[np.ndarray]:
    """Return gradients of which about a third, all, nearly all, none and few reach 1."""
    whole = np.copysign(np.float32(2), gradient(n))
    most, few = whole.copy(), np.zeros(n, np.float32)
    most[::61] = 0
    few[::97] = -2
    return [gradient(n), whole, most, np.zeros(n, np.float32), few]


@pytest.mark.parametrize("n", SIZES)
def test_one_bit_for_each_element_and_one_for_each_that_is_sent(n):
    coder = compiler.Interpreter(program())
    for x in inputs(n):
        payload = coder.encode(x)
        assert payload == by_hand(x)
        expected = np.where(np.abs(x) >= 1, np.sign(x), 0).astype(np.float32)
        np.testing.assert_array_equal(coder.decode(payload, n), expected)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("decoder", [DENSE, COUNTED], ids=["dense", "counted"])
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("threads", [1, 3])
def test_compiled_code_equals_the_interpreter(isa, threads, decoder):
    one = compiler.Interpreter(program(decoder))
    two = compiler.Compiled(program(decoder), isa, threads=threads)
    assert not two.fixed_size
    for n in SIZES:
        payloads = check_equal(one, two, n, inputs(n))
        for count in (1, 2, 4, 11):  # more than eight have their places in separate memory
            some = [payloads[k % len(payloads)] for k in range(count)]
            assert same_bits(two.decode_sum(some, n), one.decode_sum(some, n))


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("decoder", [DENSE, COUNTED], ids=["dense", "counted"])
@pytest.mark.parametrize("shape", ["grid", "block"])
def test_kernels_equal_the_interpreter(shape, decoder):
    one = compiler.Interpreter(program(decoder))
    two = emulated(decoder, shape)
    for n in SIZES:
        if shape == "block" and n > 5000:
            continue
        payloads = check_equal(one, two, n, inputs(n))
        assert same_bits(two.decode_sum(payloads, n), one.decode_sum(payloads, n))


@pytest.mark.parametrize("seed", [0, 5])
def test_several_blocks_of_kernels_equal_the_interpreter(seed):
    n = 600_000  # a block of what counts and spreads bits takes 262,144
    one, two = compiler.Interpreter(program()), emulated()
    two.emulate(seed)
    try:
        payloads = check_equal(one, two, n, [gradient(n), inputs(n)[2]])
        assert same_bits(two.decode_sum(payloads, n), one.decode_sum(payloads, n))
    finally:
        two.emulate(0)


@pytest.mark.parametrize("n", [1, 8, 77, 200])
def test_what_no_encoder_makes_is_refused_by_all(n):
    coders = [compiler.Compiled(program(), isa) for isa in ISAS] + [emulated()]
    reference = compiler.Interpreter(program())
    payload = reference.encode(gradient(n) * np.float32(1.5))
    hostile = [payload[:size] for size in range(len(payload))]
    hostile += [payload + bytes(1), payload + b"\1", payload + bytes(70), b""]
    for bit in range(32, 8 * len(payload)):
        turned = bytearray(payload)
        turned[bit // 8] ^= 1 << bit % 8
        hostile.append(bytes(turned))
    seen = [outcome(reference, data, n) for data in hostile]
    assert all(result is None for result in seen[: len(payload) + 4])
    for coder in coders:
        assert [outcome(coder, data, n) for data in hostile] == seen
    # A payload has one form: the encoder's payload of the decoded values is the same.
    for data, result in zip(hostile, seen):
        if result is not None:
            assert reference.encode(np.frombuffer(result, np.float32)) == data


@pytest.mark.parametrize("threads", [1, 3])
def test_bits_that_are_turned_in_other_blocks_are_seen_by_all_threads(threads):
    n = 9000
    coders = [compiler.Compiled(program(), isa, threads=threads) for isa in ISAS]
    reference = compiler.Interpreter(program())
    payload = reference.encode(gradient(n) * np.float32(1.5))
    hostile = [payload[:-1], payload[: len(payload) // 2], payload + bytes(1)]
    for bit in range(32, 8 * len(payload), 173):
        turned = bytearray(payload)
        turned[bit // 8] ^= 1 << bit % 8
        hostile += [bytes(turned), bytes(turned) + b"\1", bytes(turned[:-1])]
    seen = [outcome(reference, data, n) for data in hostile]
    assert None in seen[3:] and any(seen)
    for coder in coders:
        assert [outcome(coder, data, n) for data in hostile] == seen


def changed(*changes: tuple[str, str]) -> compiler.Program:
    text = SENT % DENSE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return from_text(text)


UNDER, SPREAD = "pack_where(g < 0, sent)", "pack_where(negative, sent)"
UNUSUAL = {
    "bits are a field too, packed otherwise": changed(
        ("  c = concat", "  uint<1>* below = g < 0;\n  c = concat"),
        (UNDER, "pack_where(below, sent), pack_msb(below, 8)"),
        ("uint<1>* negative;", "uint<1>* negative; uint<1>* signs;"),
        (SPREAD, f"{SPREAD}, pack_msb(signs, 8)"),
    ),
    "a mask is a field too, packed otherwise": changed(
        (UNDER, f"{UNDER}, pack_msb(sent, 8)"),
        ("uint<1>* negative;", "uint<1>* negative; uint<1>* again;"),
        (SPREAD, f"{SPREAD}, pack_msb(again, 8)"),
    ),
    "spread bits alone": changed(
        (DENSE, "g = map(negative, [&](uint<1> b) -> float { return b != 0 ? -level : level; });"),
    ),
    "spread bits alone, as numbers": changed(
        (DENSE, "g = map(negative, [&](uint<1> b) -> float { return level * (b + 1); });"),
    ),
    "a variable with a name like a hidden one": changed(
        (UNDER, f"{UNDER}, g > 2"),
        ("uint<1>* negative;", "uint<1>* negative; uint<1>* negative_packed;"),
        (SPREAD, f"{SPREAD}, negative_packed"),
    ),
    "indices behind": changed(
        (UNDER, f"uint32(at.size), {UNDER}, at"),
        (
            "  c = concat",
            "  int* at = filter(range(g.size), [&](int i) -> bool { "
            "return g[i] > 2; });\n  c = concat",
        ),
        ("uint<1>* negative;", "uint<1>* negative; uint32 count; int at[count];"),
        (SPREAD, f"count, {SPREAD}, at"),
        (
            DENSE,
            "float share = sum(negative);\n"
            "g = scatter(g.size, at, map(at, [&](int i) -> float { return share; }));",
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_programs_are_the_same_on_all_backends(name):
    """Programs that no built-in codec resembles give the interpreter's bits on every backend.

    Cost: The C++ compiler compiles each program for each instruction set and for the emulated GPU.
    """
    one = compiler.Interpreter(UNUSUAL[name])
    library = cuda_emulation.build(UNUSUAL[name])
    coders = [HostCoder(UNUSUAL[name], "grid", library=library)]
    coders += [compiler.Compiled(UNUSUAL[name], isa, threads=2) for isa in ISAS]
    for two in coders:
        for n in (0, 1, 65, 9000):
            payloads = check_equal(one, two, n, inputs(n))
            assert same_bits(two.decode_sum(payloads, n), one.decode_sum(payloads, n))


def test_bits_that_are_a_field_too_are_those_of_the_gradient():
    x = gradient(77)
    payload = compiler.Interpreter(UNUSUAL["bits are a field too, packed otherwise"]).encode(x)
    assert payload == by_hand(x) + np.packbits(x < 0).tobytes()


@pytest.mark.parametrize("order", [[5, 3], [3, 3], [3, 77], [-1, 3]])
def test_indices_behind_bits_under_a_mask_are_checked_by_kernels(order):
    built = UNUSUAL["indices behind"]
    x = np.zeros(77, np.float32)
    x[[3, 5]] = 4
    payload = compiler.Interpreter(built).encode(x)
    bad = payload[:-8] + np.array(order, np.int32).tobytes()
    coder = HostCoder(built, "grid", library=cuda_emulation.build(built))
    assert outcome(coder, payload, 77) is not None
    with pytest.raises(compiler.PayloadError, match="ascend"):
        coder.decode(bad, 77)


@pytest.mark.parametrize("place", ["mask", "bits"])
def test_bits_that_pad_a_byte_are_zero(place):
    n = 77
    coders = [compiler.Interpreter(program()), emulated()]
    coders += [compiler.Compiled(program(), isa) for isa in ISAS]
    x = np.zeros(n, np.float32)
    x[:3] = 5
    payload = bytearray(by_hand(x))
    payload[4 + n // 8 if place == "mask" else -1] |= 0x80
    for coder in coders:
        with pytest.raises((compiler.PayloadError, CudaError), match="zeros where bits pad a byte"):
            coder.decode(bytes(payload), n)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "sent, pack_where(g < 0, sent)",
            "pack_where(g < 0, sent), sent",
            "the mask of pack_where must be a field before it",
        ),
        (
            "sent, pack_where(g < 0, sent)",
            "pack_lsb(sent, 32), pack_where(g < 0, sent)",
            "the mask of pack_where must be a field before it",
        ),
        (
            "pack_where(g < 0, sent)",
            "pack_where(g, sent)",
            "pack_where takes a vector of uint<1> of the gradient's size",
        ),
        (
            "pack_where(g < 0, sent)",
            "pack_where(filter(g, [&](float v) -> bool { return v > 0; }) < 0, sent)",
            "pack_where takes a vector of uint<1> of the gradient's size",
        ),
        ("pack_where(g < 0, sent)", "pack_where(sent)", "pack_where takes 2 arguments, not 1"),
        (
            "sent, pack_where(negative, sent)",
            "pack_where(negative, sent), sent",
            "the mask of pack_where must be a field before it",
        ),
        (
            "sent, pack_where(negative, sent)",
            "pack_msb(sent, 8), pack_where(negative, sent)",
            "the mask of pack_where must be a field before it",
        ),
        (
            "pack_where(negative, sent)",
            "pack_where(negative, level)",
            "the mask of pack_where must be a field before it",
        ),
        (
            "pack_where(negative, sent)",
            "pack_where(negative, sent < 1)",
            "the mask of pack_where must be a field before it",
        ),
        ("uint<1>* negative;", "uint<2>* negative;", "negative must be a vector of uint<1> of the"),
        ("uint<1>* negative;", "float negative;", "negative must be a vector of uint<1> of the"),
        (
            "uint<1>* negative;",
            "uint<1> negative[3];",
            "negative must be a vector of uint<1> of the",
        ),
        (
            "require(level >= 0",
            "require(negative[0] >= 0",
            "an element of a vector of uint<N> can be read in a lambda only",
        ),
        (
            "require(level >= 0",
            "require(sent[0] >= 0",
            "an element of a vector of uint<N> can be read in a lambda only",
        ),
    ],
)
def test_misuse_is_an_error_of_the_compiler(old, new, message):
    text = SENT % DENSE
    assert old in text
    with pytest.raises(compiler.CompileError, match=message):
        from_text(text.replace(old, new))
