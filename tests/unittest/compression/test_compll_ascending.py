"""Ascending indices in few bytes: against entropy, between backends, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compll_helpers import ISAS, from_text, marked_by, positions
from hipress.compression import compiler
from hipress.compression.compiler.backends.numpy.packing import (
    ascending_bytes,
    pack_ascending,
    unpack_ascending,
)

MARKED = marked_by("pack_ascending")


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 64, 100])
def test_every_number_of_indices_comes_back(n):
    for count in range(n + 1):
        for index in (positions(n, count), np.arange(count), np.arange(n - count, n)):
            data = pack_ascending(index, n)
            assert len(data) == ascending_bytes(count, n)
            np.testing.assert_array_equal(unpack_ascending(data, count, n), index)


@pytest.mark.parametrize("density", [0.5, 0.25, 0.1, 0.03, 0.01, 0.001])
def test_an_index_takes_little_more_than_its_entropy(density):
    n = 1 << 20
    count = int(density * n)
    rest = 1 - density
    entropy = -n * (density * math.log2(density) + rest * math.log2(rest))
    assert 8 * ascending_bytes(count, n) < entropy + max(0.62 * count, 0.25 * n * (density > 0.2))


def test_more_indices_take_no_less_memory():
    """More indices take no less memory, on which bounds of sizes count, except for a byte where two
    parts are rounded up."""
    for n in (5, 100, 1000, 4097):
        sizes = [ascending_bytes(count, n) for count in range(n + 1)]
        most = np.maximum.accumulate(sizes)
        assert (most - sizes).max() <= 1


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("n", [1, 63, 1000, 70000])
def test_compiled_code_has_the_interpreters_bytes(isa, n):
    program = from_text(MARKED)
    compiled, reference = compiler.Compiled(program, isa), compiler.Interpreter(program)
    counts = {0, 1, n // 3, n // 4, (n + 3) // 4, n // 5, n // 40, n // 999, n}
    for count in sorted(counts):
        for index in (positions(n, count), np.arange(n - count, n)):
            gradient = np.zeros(n, np.float32)
            gradient[index] = 1
            payload = compiled.encode(gradient)
            assert payload == reference.encode(gradient)
            assert payload[4:] == pack_ascending(index, n)
            np.testing.assert_array_equal(compiled.decode(payload, n), gradient)


def test_a_variable_may_have_the_name_that_the_bytes_would_have():
    text = MARKED.replace("pack_ascending(sent)", "pack_ascending(sent), g > 2")
    text = text.replace("int index[count];", "int index[count]; uint<1>* index_packed;")
    program = from_text(
        text.replace("pack_ascending(index)", "pack_ascending(index), index_packed")
    )
    x = np.zeros(100, np.float32)
    x[[3, 50, 99]] = 1
    for coder in (compiler.Interpreter(program), compiler.Compiled(program, ISAS[0])):
        np.testing.assert_array_equal(coder.decode(coder.encode(x), x.size), x)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("count", "upper"), [(3, 6), (40, 40 + 62), (300, 1000)])
def test_bytes_that_no_indices_have_are_refused(isa, count, upper):
    """Bytes that no indices have are refused. With any bit flipped, both coders agree: other
    indices, or none."""
    n = 1000
    program = from_text(MARKED)
    compiled, reference = compiler.Compiled(program, isa), compiler.Interpreter(program)
    packed = pack_ascending(positions(n, count), n)
    payload = bytearray(np.array([count], np.uint32).tobytes() + packed)
    refused = 0
    for bit in range(32, 8 * len(payload)):
        turned = bytearray(payload)
        turned[bit // 8] ^= 1 << bit % 8
        seen = []
        for coder in (compiled, reference):
            try:
                seen.append(coder.decode(bytes(turned), n).tobytes())
            except compiler.PayloadError as error:
                assert "must have indices that ascend and are below 1000" in str(error)
                seen.append(None)
        assert seen[0] == seen[1]
        refused += seen[0] is None
    assert refused >= 8 * -(-upper // 8), "one more or less in the mask, or in the unary parts"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "int* at = topk(g, 3); c = concat(pack_ascending(gather(at, filter(range(9), "
            "[&](int i) -> bool { return i > 3; }))));",
            "pack_ascending takes indices of g",
        ),
        (
            "c = concat(pack_ascending(map(g, [&](float v) -> int { return 1; })));",
            "pack_ascending takes indices of g",
        ),
        (
            "c = concat(pack_ascending(filter(range(7), [&](int i) -> bool { return i > 3; })));",
            "pack_ascending takes indices of g",
        ),
        ("c = concat(pack_ascending(g, 2));", "pack_ascending takes"),
        (
            "c = concat(pack_gaps(map(g, [&](float v) -> int { return 1; })));",
            "pack_gaps takes indices of g",
        ),
        ("c = concat(pack_gaps(g, 2));", "pack_gaps takes"),
    ],
)
def test_only_what_surely_ascends_is_packed(text, message):
    with pytest.raises(compiler.CompileError, match=message):
        from_text("void Encode(float* g, uint8* c) { " + text + " }")


@pytest.mark.parametrize("form", ["pack_ascending", "pack_gaps"])
def test_what_was_packed_is_a_vector_of_int(form):
    with pytest.raises(compiler.CompileError, match="index must be a vector of int: indices"):
        from_text(marked_by(form).replace("int index[count]", "float index[count]"))
