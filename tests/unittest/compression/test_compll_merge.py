"""Sums of several nodes' payloads: one definition for all backends."""

from __future__ import annotations

import numpy as np
import pytest

from compll_helpers import ISAS, from_text, gradient, program, same_bits
from hipress.compression import compiler
from hipress.compression.compiler.passes.analyses import integer_levels
from host_coder import HostCoder


def test_levels_of_many_payloads_are_added_as_integers():
    """Levels of many payloads are added as integers: 0.1 + 0.1 + 0.1 in float32 is not 3 * 0.1."""
    x = np.full(100, 1, np.float32)
    for name, params in (
        ("tbq", {"threshold": 0.1}),
        ("2bit", {"threshold": 0.1}),
        ("1bit", {"scale": 0.1}),
    ):
        coder = compiler.Interpreter(program(name), **params)
        plus, minus = coder.encode(x), coder.encode(-x)
        total = coder.decode_sum([plus, plus, minus, plus, plus], 100)
        assert same_bits(total, np.float32(0.1) * np.full(100, 3, np.float32))
    coder = compiler.Interpreter(program("terngrad"))
    payloads = [coder.encode(gradient(100, k)) for k in range(3)]
    first, second, third = (coder.decode(payload, 100) for payload in payloads)
    assert same_bits(coder.decode_sum(payloads, 100), (first + second) + third)


LEVELS = """
param float threshold = 0.1 in (0, inf);
void Encode(float* gradient, uint8* compressed) {
  uint<2>* code = map(gradient, [&](float v) -> uint<2> { return v > 0 ? 1 : v < 0 ? 2 : 0; });
  uint<1>* large = map(gradient, [&](float v) -> uint<1> { return abs(v) > 1; });
  uint<1>* sign = map(gradient, [&](float v) -> uint<1> { return v > 0; });
  compressed = concat(SENT);
}
void Decode(uint8* compressed, float* gradient) {
  uint<2>* code; uint<1>* large; uint<1>* sign; uint8 kind;
  extract(compressed, SENT);
  int* level = map(FROM, [&](uint<2> c) -> int { return c == 1 ? 1 : c == 2 ? -1 : 0; });
  gradient = threshold * level;
}
"""
PLAIN = LEVELS.replace("SENT", "code").replace("FROM", "code")
COUNTED = PLAIN.replace(
    "  gradient =",
    """
  require(sum(map(code, [&](uint<2> c) -> int { return c == 3 ? 1 : 0; })) == 0, "no code 3");
  gradient =""",
)
MASKED = LEVELS.replace("SENT", "large, pack_where(sign, large)").replace("FROM", "sign")
REQUIRED = PLAIN.replace("concat(code", "concat(uint8(7), code").replace(
    "extract(compressed, code);", 'extract(compressed, kind, code); require(kind == 7, "kind 7");'
)
NEXT = PLAIN.replace(
    "= threshold * level",
    """= map(range(gradient.size), [&](int i) -> float {
    return threshold * level[i + 1];
  })""",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "integers"),
    [
        (PLAIN, True),
        (REQUIRED, True),
        (COUNTED, False),
        (MASKED, False),
        (NEXT, False),
    ],
)
def test_every_backend_merges_alike(text, integers):
    """Every backend merges alike, also where a decoder does more than one pass that adds levels as
    integers."""
    made = from_text(text)
    assert (integer_levels(made.decode) is not None) == integers
    plain = compiler.Interpreter(compiler.read_program(text))
    coders = [compiler.Interpreter(made), compiler.Compiled(made, ISAS[0])]
    if text is not COUNTED:  # `require` checks more than numbers of the payload
        coders.append(HostCoder(made, emulate=True))
    payloads = [plain.encode(np.abs(gradient(300, k)) * (1 if k else 3)) for k in range(7)]
    for count in (1, 2, 3, 7):
        expected = plain.decode_sum(payloads[:count], 300)
        for coder in coders:
            assert same_bits(coder.decode_sum(payloads[:count], 300), expected), count
    wanted = np.float32(0.1) * np.float32(7)
    assert integers == (expected[:290] == wanted).all()
