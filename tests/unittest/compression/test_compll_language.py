"""The language: the published sample, errors that point at the source, the printed IR."""

from __future__ import annotations

import numpy as np
import pytest

from compll_helpers import DATA, ISAS, SPECS, from_text, gradient, program, same_bits, seed_program
from hipress.compression import compiler
from hipress.compression.compiler.frontend.source_reader import read_program
from hipress.compression.compiler.ir import ir
from hipress.compression.compiler.ir.printer import print_program
from hipress.compression.compiler.ir.verify import IRError, verify


@pytest.mark.parametrize("bitwidth", [1, 2, 4, 8])
def test_the_published_sample_compiles_as_printed(bitwidth):
    x = gradient(1001)
    coder = compiler.Interpreter(seed_program(), bitwidth=bitwidth)
    payload = coder.encode(x)
    low, high = np.float32(x.min()), np.float32(x.max())
    tail = 1001 % 2**bitwidth
    head = bytes([bitwidth, tail & 255]) + low.tobytes() + high.tobytes()
    assert payload[:10] == head
    assert len(payload) == 10 + -(-1001 * bitwidth // 8)
    gap = (high - low) / np.float32(2**bitwidth - 1)
    assert np.abs(coder.decode(payload, 1001) - x).max() <= gap * 1.001
    with pytest.raises(compiler.PayloadError, match="bitwidth must be the one"):
        compiler.Interpreter(seed_program(), bitwidth=3 - bitwidth % 2).decode(payload, 1001)


ENCODE = "void E(float* g, uint8* c) {\n%s\n}"
ERRORS = [
    ("void E(float* g, uint8* c) { float a = 3 +; }", 1, 43, 'unexpected ";"; expected'),
    ("void E(float* g, uint8* c) { c = concat(g) }", 1, 44, 'unexpected "}"; expected ;'),
    ("void E(float* g", 1, 16, "unexpected the end of the file; expected"),
    ("param floot x = 1;", 1, 7, 'unexpected "floot"; expected'),
    (ENCODE % "c = concat(f);", 2, 12, "f is not declared; known here: c, g"),
    (ENCODE % "float a = g;", 2, 11, "expected a number, but this is a vector"),
    (ENCODE % "float* a = 1;", 2, 12, "needs a vector, but this is a number"),
    (ENCODE % "a = 1;", 2, 1, "a is not declared; write its type first"),
    (ENCODE % "c = g;", 2, 5, "expected concat(...)"),
    (ENCODE % "float a = 1;", 1, 6, "E must assign c = concat(...)"),
    (ENCODE % "c = concat(1.5 % 2);", 2, 16, "% needs integers, not float"),
    (ENCODE % "c = concat(1);", 2, 12, "a field needs a type: write uint32(...)"),
    (ENCODE % "c = concat(foo(g));", 2, 12, "there is no function foo; known: abs, bits"),
    (ENCODE % "c = concat(topk(g));", 2, 12, "topk takes topk(vector, k), not 1"),
    (ENCODE % "uint<9>* q = g;", 2, 6, "uint<b> needs 1 to 8 bits, not 9"),
    (ENCODE % "uint<w>* q = g;", 2, 6, "w must be a parameter or a number"),
    (
        ENCODE % "int* i = topk(g, 3);\nc = concat(gather(g, i) + g);",
        3,
        25,
        "not known to have the same size",
    ),
    (
        ENCODE % "c = concat(map(g, [&](float v) -> float { if (v > 0) { return 1; } }));",
        2,
        19,
        "does not return on every path",
    ),
    (ENCODE % "c = concat(random<float>(0, 1));", 2, 12, "random<float> is for lambdas"),
    (
        ENCODE % "uint<4>* q = map(g, [&](float v) -> uint<4> { return 3; });\n"
        "float* x = map(range(g.size), [&](int i) -> float { return q[i / 64]; });\n"
        "c = concat(x);",
        3,
        60,
        "a lambda reads its own element only",
    ),
    ("void E(float* g) { }", 1, 6, "must take (float* gradient, uint8* compressed, ...)"),
    (
        "param float t = -1 in (0, inf);" + ENCODE % "c = concat(g);",
        1,
        17,
        "the default of t must be a finite number > 0",
    ),
    ("state int* s;", 1, 7, "a state must be a vector of float"),
    ("state float* residual if 1 > 0;\n" + ENCODE % "c = concat(g);", 1, 7, "always kept"),
    (
        "state float* s if step > 0;\n" + ENCODE % "c = concat(g);",
        1,
        24,
        "s can only depend on parameters and numbers",
    ),
    (
        ENCODE % "c = concat(filter(g, [&](float v) -> bool { return v > sum(g); }));",
        2,
        56,
        "sum cannot be used inside a lambda",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), ERRORS)
def test_errors_say_where_and_what_was_expected(text, line, column, message):
    with pytest.raises(compiler.CompileError) as caught:
        read_program(text, "x.cll")
    error = caught.value
    assert message in error.message
    assert (error.pos.line, error.pos.column) == (line, column), error
    shown = str(error).splitlines()
    assert shown[0].startswith(f"x.cll:{line}:{column}: error: ")
    assert shown[2].index("^") - 4 == column - 1


@pytest.mark.parametrize("name", ["onebit", "2bit", "topk", "sparseloco", "dct"])
def test_printed_ir_is_the_golden_file(name):
    """Printed IR equals the golden file. After a wanted change, write print_program(program) of
    each into tests/unittest/compll."""
    assert print_program(program(name)) == (DATA / f"{name}.ir").read_text()


CUT = """
param float scale = 1 in (0, inf) sum {sum};
void Encode(float* g, uint8* c) {{
  c = concat(map(g, [&](float v) -> uint8 {{ uint<{bits}> code = int(v); return code; }}));
}}
void Decode(uint8* c, float* g) {{ uint8* v; extract(c, v); g = scale * v; }}
"""


def test_texts_of_other_meaning_have_other_digests():
    sums = ("scale", "2 * scale")
    texts = [CUT.format(bits=bits, sum=total) for bits in (3, 4) for total in sums]
    assert len({read_program(text).digest for text in texts}) == 4
    assert len({read_program(texts[0] + comment).digest for comment in ("", "// the same")}) == 1


@pytest.mark.parametrize("name", SPECS)
def test_the_printed_ir_has_all_that_an_instruction_says(name):
    made = program(name)
    text = print_program(made)
    for instr in (instr for function in made.functions for instr in function.instrs()):
        for attribute, value in instr.attrs.items():
            other = {"zeros": False, "fields": []}.get(attribute, "other")
            if instr.op not in ("n", "param", "const"):  # in what uses them
                instr.attrs[attribute] = other
                assert print_program(made) != text, (instr.op, attribute)
                instr.attrs[attribute] = value
    for param in (param for param in made.params if param.for_sum is not None):
        param.for_sum, block = None, param.for_sum
        assert print_program(made) != text
        param.for_sum = block


@pytest.mark.parametrize("name", SPECS)
def test_passes_change_no_bit(name):
    plain = read_program((compiler.SPECS / f"{name}.cll").read_text())
    left, right = compiler.Interpreter(plain), compiler.Interpreter(program(name))
    states: tuple[dict, dict] = ({}, {})
    for step in range(3):
        x = gradient(5000, step)
        payload = left.encode(x, states[0], step)
        assert payload == right.encode(x, states[1], step)
        assert same_bits(left.decode(payload, 5000), right.decode(payload, 5000))
    for key in states[0]:
        assert same_bits(states[0][key], states[1][key])


def loops(function: ir.Function) -> list[ir.Loop]:
    return [node for node in function.body if isinstance(node, ir.Loop)]


def test_fusion_leaves_one_pass_where_one_is_enough():
    assert len(loops(program("2bit").encode)) == 1  # map, pack and residual
    assert len(loops(program("2bit").decode)) == 1
    assert len(loops(program("onebit").encode)) == 2  # means, then residual
    assert len(loops(program("terngrad").encode)) == 2
    assert not [v for v in program("onebit").encode.vectors.values() if v.name == "x"]


def vectors(loop: ir.Loop, op: str) -> set[str]:
    return {i.vec[0] for i in loop.body if i.op == op}


def test_what_several_passes_need_is_kept_in_the_residual():
    """Intermediate values of several passes are kept in the residual. Each later pass of ternary
    reads x alone; the velocity is written where it was read."""
    first, second, third = loops(program("ternary").encode)
    assert vectors(first, "load") == {"gradient", "residual", "velocity"}
    assert vectors(first, "store") == {"residual", "velocity"}
    assert vectors(second, "load") == vectors(third, "load") == {"residual"}
    assert vectors(second, "store") == {"large", "negative"}
    assert vectors(third, "store") == {"residual"}


OPTIONAL = """
param float decay = 0 in [0, 1);
state float* mean if decay > 0;
state float* residual;
void Encode(float* g, uint8* c) {
  float* x = residual + g + decay * mean;
  float scale = max(abs(x));
  residual = map(x, %s, [&](float v, float w) -> float { return v / scale + 0 * w; });
  mean = x;
  c = concat(x);
}
"""


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("also", ["x", "g"])
def test_an_optional_state_is_left_alone_where_its_condition_is_false(also):
    text = OPTIONAL % also
    for isa in ISAS:
        for decay in (0.0, 0.5):
            states: list[dict] = [{"mean": gradient(5000, 7)} for _ in range(3)]
            coders = [
                compiler.Interpreter(read_program(text), decay=decay),
                compiler.Interpreter(from_text(text), decay=decay),
                compiler.Compiled(from_text(text), isa, threads=2, decay=decay),
            ]
            for step in range(3):
                x = gradient(5000, step)
                payloads = {c.encode(x, s, step) for c, s in zip(coders, states)}
                assert len(payloads) == 1
                if decay == 0 and step == 0:  # what is left in it is not read, either
                    assert payloads == {x.tobytes()}
            for name in ("mean", "residual"):
                assert same_bits(states[0][name], states[1][name])
                assert same_bits(states[0][name], states[2][name])
            assert same_bits(states[0]["mean"], gradient(5000, 7)) == (decay == 0)


READ_AGAIN = """
param float decay = 0 in [0, 1);
state float* mean if decay > 0;
state float* residual;
void Encode(float* g, uint8* c) {
  mean = decay * mean + g;
  residual = residual + mean;
  c = concat(residual);
}
"""
NEIGHBORS = """
state float* residual;
state float* old;
void Encode(float* g, uint8* c) {
  float* x = residual + g;
  float* y = old + g;
  float edge = sum(map(range(g.size), [&](int i) -> float { return abs(%s[max(i - 1, 0)]); }));
  float scale = edge + sum(x) + sum(y);
  residual = map(x, [&](float v) -> float { return v - scale; });
  old = y;
  c = concat(x);
}
"""


@pytest.mark.parametrize("text", [READ_AGAIN, NEIGHBORS % "residual", NEIGHBORS % "old"])
def test_passes_know_what_a_state_holds_when_it_is_read(text):
    """Passes know what a state holds when it is read: an optional state after it was written, and a
    state's other elements before it is."""
    for params in [{"decay": 0.0}, {"decay": 0.5}] if "decay" in text else [{}]:
        states: list[dict] = [{}, {}]
        coders = [
            compiler.Interpreter(read_program(text), **params),
            compiler.Interpreter(from_text(text), **params),
        ]
        for step in range(3):
            x = gradient(3000, step)
            payloads = {c.encode(x, s, step) for c, s in zip(coders, states)}
            assert len(payloads) == 1
        assert all(same_bits(states[0][name], states[1][name]) for name in states[0])


def test_of_a_filter_the_number_alone_may_be_wanted():
    text = "int* h = filter(range(g.size), [&](int i) -> bool { return g[i] > 0; });\n"
    counted = from_text(ENCODE % (text + "c = concat(uint32(h.size));"))
    x = gradient(1000)
    expected = np.uint32((x > 0).sum()).tobytes()
    assert compiler.Interpreter(counted).encode(x) == expected
    assert compiler.Compiled(counted, ISAS[0]).encode(x) == expected


def test_the_verifier_finds_broken_ir():
    broken = from_text(ENCODE % "c = concat(map(g, [&](float v) -> float { return v + 1; }));")
    loop = loops(broken.encode)[0]
    loop.body.reverse()
    with pytest.raises(IRError, match="before it is made"):
        verify(broken, "reverse")
    broken = from_text(ENCODE % "c = concat(map(g, [&](float v) -> float { return v + 1; }));")
    add = next(i for i in loops(broken.encode)[0].body if i.op == "add")
    add.type = "i32"
    with pytest.raises(IRError, match="add of f32 gives f32, not i32"):
        verify(broken, "retype")


def test_conversions_are_defined_for_every_float():
    text = ENCODE % "uint<2>* q = map(g, [&](float v) -> uint<2> { return v; });\nc = concat(q);"
    x = np.array([np.nan, -np.inf, -1, 0.99, 1, 2.5, 3, 4, np.inf], np.float32)
    payload = compiler.Interpreter(from_text(text)).encode(x)
    codes = [payload[i // 4] >> 2 * (i % 4) & 3 for i in range(x.size)]
    assert codes == [0, 0, 0, 0, 1, 2, 3, 3, 3]


def test_if_at_function_level_selects():
    text = """
    state float* residual;
    void E(float* g, uint8* c) {
      float s = 1;
      if (sum(g) > 0) { s = 2; residual = g * 3; } else { s = 4; }
      c = concat(s);
    }"""
    coder = compiler.Interpreter(from_text(text))
    for sign, value in ((1, 2), (-1, 4)):
        states: dict[str, np.ndarray] = {}
        x = np.full(5, sign, np.float32)
        assert np.frombuffer(coder.encode(x, states), np.float32)[0] == value
        np.testing.assert_array_equal(states["residual"], x * 3 if sign > 0 else x * 0)


def test_random_16_bits():
    text = (
        ENCODE
        % """uint16* q = map(g, [&](float v) -> uint16 { return random<uint16>(); });
    c = concat(q);"""
    )
    payload = compiler.Interpreter(from_text(text)).encode(gradient(100_000))
    draws = np.frombuffer(payload, np.uint16).astype(float)
    assert abs(draws.mean() - 32767.5) < 6 * 65536 / np.sqrt(12 * draws.size)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 6 / np.sqrt(draws.size)
    for size in (1, 64, 1000):  # a draw depends on nothing but its element's index
        assert compiler.Interpreter(from_text(text)).encode(gradient(size)) == payload[: 2 * size]


@pytest.mark.parametrize(
    ("first", "uses"),
    [
        ("filter(range(step), [&](int i) -> bool { return i < gradient.size; })", True),  # a bound
        ("random_indices(gradient.size, step + 1)", True),
        ("random_indices(gradient.size, 1)", True),
        ("filter(range(9), [&](int i) -> bool { return i < gradient.size; })", False),
    ],
)
def test_whether_a_payload_depends_on_the_number_of_encodes(first, uses):
    program = from_text(f"""
algorithm "places" "Sends the places of some elements.";
void PlacesEncode(float* gradient, uint8* compressed) {{
  int* places = {first};
  compressed = concat(uint32(places.size), uint32(places));
}}
void PlacesDecode(uint8* compressed, float* gradient) {{
  uint32 count;
  uint32 places[count];
  extract(compressed, count, places);
  gradient = scatter(gradient.size, places, map(places, [&](uint32 p) -> float {{ return 1; }}));
}}
""")
    assert program.uses_step == uses
    coder = compiler.Interpreter(program)
    payloads = {coder.encode(gradient(50), step=step) for step in range(6)}
    assert (len(payloads) > 1) == uses


@pytest.mark.parametrize("name", ["spec", "entropy"])
def test_a_parameter_has_no_name_that_all_codecs_have(name):
    text = f"void Encode(float* g, uint8* c, int {name}) {{ c = concat(g); }}"
    with pytest.raises(compiler.CompileError, match=f"a parameter cannot be called {name}"):
        compiler.read_program(text)
