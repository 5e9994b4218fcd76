"""Scopes of names, as in C++: in blocks, and in lambdas that are written with [&]."""

from __future__ import annotations

import numpy as np
import pytest

from compll_helpers import ISAS, from_text
from hipress.compression import compiler
from hipress.compression.compiler.frontend.source_reader import read_program

# What is in an encoder before `compressed = concat(y);`, and y of the gradient 1, 2, 3.
MEANINGS = {
    "a lambda's names are those where it is written": (
        "float v = 3; lambda_func plus = [&](float a) -> float { return a + v; };"
        "float* y = map(gradient, [&](float v) -> float { return plus(v); });",
        [4, 5, 6],
    ),
    "it sees what they stand for when it is called": (
        "float c = 2; lambda_func f = [&](float v) -> float { return v * c; }; c = 10;"
        "float* y = map(gradient, f);",
        [10, 20, 30],
    ),
    "a name of another block is another variable": (
        "float c = 2; lambda_func f = [&](float v) -> float { return v * c; };"
        "float t = sum(gradient); if (t > 0) { float c = 5; t = f(c); }"
        "float* y = gradient * t + c;",
        [12, 22, 32],
    ),
    "what a block declares ends with it": (
        "float s = 1; float t = sum(gradient); if (t > 0) { float s = 5; t = s; }"
        "float* y = gradient * s + t;",
        [6, 7, 8],
    ),
    "what it assigns stays": (
        "float s = 1; if (sum(gradient) > 0) { float t = 4; s = t; } else { s = 3; }"
        "float* y = gradient * s;",
        [4, 8, 12],
    ),
    "blocks of a lambda end, too": (
        "float* y = map(gradient, [&](float v) -> float { float t = 1;"
        " if (v > 1) { float t = 2; if (v > 2) { return 9; } } return t; });",
        [1, 1, 9],
    ),
    "and what they assign stays": (
        "float* y = map(gradient, [&](float v) -> float { float t = 1; float u = 0;"
        " if (v > 1) { t = 2; float u = 7; if (v > 2) { return 9; } u = 8; } else { t = 5; }"
        " return t + u; });",
        [5, 2, 9],
    ),
    "a side of an if does not see what the other assigns": (
        "float* y = map(gradient, [&](float v) -> float { float t = 1;"
        " if (v > 2) { t = 7; if (v > 5) { return 0; } } else { t = t + 1; } return t; });",
        [2, 2, 7],
    ),
    "a lambda may assign what it has": (
        "float* y = map(gradient, [&](float v) -> float { float t = v; v = 1; t = t + v;"
        " return t; });",
        [2, 3, 4],
    ),
    "a constant joins a reduction": (
        "float half = 0.5; lambda_func larger = [&](float a, float b) -> float"
        " { return a > b ? a : b; };"
        "float most = reduce(gradient, 0, [&](float a, float b) -> float"
        " { return larger(larger(a, b), half); }); float* y = gradient * half + most;",
        [3.5, 4, 4.5],
    ),
}


def encoder(body: str) -> str:
    return f"void E(float* gradient, uint8* compressed) {{ {body} compressed = concat(y); }}"


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("what", MEANINGS)
def test_names_mean_what_they_mean_in_cpp(what):
    body, expected = MEANINGS[what]
    x = np.float32([1, 2, 3])
    for coder in (
        compiler.Interpreter(read_program(encoder(body))),
        compiler.Compiled(from_text(encoder(body)), ISAS[0]),
    ):
        assert np.frombuffer(coder.encode(x), np.float32).tolist() == expected


REFUSED = {
    "float s = 1; float* y = map(gradient, [&](float v) -> float { s = s + v; return v; });": "s is declared outside of this lambda, so the lambda cannot assign it",
    "float s = 1; float* y = map(gradient, [&](float v) -> float"
    " { if (v > 0) { s = v; } return v; });": "s is declared outside of this lambda, so the lambda cannot assign it",
    "lambda_func f = [&](float a) -> float { return a + v; };"
    " float* y = map(gradient, [&](float v) -> float { return f(v); });": "v is not declared",
    "lambda_func f = [&](float a) -> float { return a + later; }; float later = 1;"
    " float* y = map(gradient, f);": "later is not declared",
    "lambda_func f = [&](float a) -> float { return f(a); }; float* y = map(gradient, f);": "there is no function f",
    "float t = sum(gradient); if (t > 0) { float u = 5; } float* y = gradient * u;": "u is not declared",
    "float t = 1; float t = 2; float* y = gradient * t;": "t is declared already",
    "float gradient = 2; float* y = gradient;": "gradient is declared already",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_cpp_refuses_or_would_do_otherwise_is_refused(body):
    with pytest.raises(compiler.CompileError) as caught:
        read_program(encoder(body))
    assert REFUSED[body] in caught.value.message and caught.value.pos is not None


@pytest.mark.parametrize("statement", ['require(a > 0, "must be positive");', "extract(c, b);"])
def test_what_is_done_in_any_case_cannot_be_inside_an_if(statement):
    text = """void D(uint8* c, float* g) {
      float a; float b; extract(c, a); if (a > 1) { %s } g = %s;
    }"""
    with pytest.raises(compiler.CompileError, match=r"(require|extract) must not be inside an if"):
        read_program(text % (statement, "map(range(g.size), [&](int i) -> float { return a; })"))
