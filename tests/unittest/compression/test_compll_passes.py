"""Compiler passes, which keep every bit of a program's results; `compll check` would find a
difference."""

from __future__ import annotations

import numpy as np
import pytest
import typer

from compll_helpers import ISAS, from_text, gradient, same_bits
from compll_random import random_encoder
from hipress.compression import compiler
from hipress.compression.compiler import cli
from hipress.compression.compiler.frontend.source_reader import read_program

DECODE = """
void Decode(uint8* compressed, float* gradient) {
  uint32 count; int index[count]; float value[count];
  extract(compressed, count, pack_ascending(index), value);
  gradient = scatter(gradient.size, index, value);
}
"""
# The velocity is written between where u is made of it and where u is read.
WRITTEN_BETWEEN = (
    """
state float* velocity;
void Encode(float* gradient, uint8* compressed) {
  float* u = 0.9 * velocity + gradient;
  velocity = u;
  int* sent = topk(abs(velocity), 5);
  compressed = concat(uint32(sent.size), pack_ascending(sent), gather(u, sent));
  velocity = scatter(u, sent, 0);
}
"""
    + DECODE
)
# What x is made of is the residual's element before, which the loop that stores x may have written.
NEIGHBORS = """
state float* residual;
void Encode(float* gradient, uint8* compressed) {
  float* x = map(range(gradient.size), [&](int i) -> float {
    return residual[max(i - 1, 0)] + gradient[i];
  });
  residual = x;
  compressed = concat(max(x));
}
"""


def assert_agree(coders: list, inputs: list[np.ndarray]) -> None:
    """Check that payloads and states of coders agree over some steps."""
    states: list[dict] = [{} for _ in coders]
    for step, x in enumerate(inputs):
        payloads = [coder.encode(x, has, step) for coder, has in zip(coders, states)]
        for other, has in zip(payloads[1:], states[1:]):
            assert other == payloads[0], step
            assert all(same_bits(has[name], states[0][name]) for name in states[0]), step


@pytest.mark.slow
@pytest.mark.parametrize("text", [WRITTEN_BETWEEN, NEIGHBORS])
def test_what_is_computed_again_reads_what_it_read_before(text):
    coders = [
        compiler.Interpreter(read_program(text)),
        compiler.Interpreter(from_text(text)),
        compiler.Compiled(from_text(text), ISAS[0]),
    ]
    assert_agree(coders, [gradient(10_000, step) for step in range(3)])


def test_passes_change_no_bit_of_random_encoders():
    taken = 0
    for seed in range(100):
        text = random_encoder(seed)
        try:
            plain = read_program(text)
        except compiler.CompileError:
            continue
        taken += 1
        coders = [compiler.Interpreter(plain), compiler.Interpreter(from_text(text))]
        inputs = [gradient(200 if seed % 2 else 4500, seed + step) for step in range(3)]
        assert_agree(coders, inputs)
    assert taken > 70


@pytest.mark.slow
@pytest.mark.parametrize("change", [("0.9 *", "0.8 *"), ("sent, 0);", "sent, 1);")])
def test_a_check_compares_states_with_what_the_text_says(tmp_path, monkeypatch, capsys, change):
    """A check compares states with the program text. A pass seems to have changed what the second
    encode reads first, or what the first one leaves."""
    source = tmp_path / "written.cll"
    source.write_text(WRITTEN_BETWEEN)
    cli.check(source, n=1000)
    monkeypatch.setattr(
        cli, "compile_file", lambda path: from_text(WRITTEN_BETWEEN.replace(*change))
    )
    with pytest.raises(typer.Exit):
        cli.check(source, n=1000)
    assert "differ from the interpreter" in capsys.readouterr().err
