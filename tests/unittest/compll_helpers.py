"""Shared code of the CompLL tests: programs, and their compiled form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from hipress.compression import compiler
from hipress.compression.compiler.runtime.native import available_isas

DATA = Path(__file__).parent / "compll"
SIZES = (0, 1, 7, 8, 63, 64, 1000, 65537)
SPECS = sorted(path.stem for path in compiler.SPECS.glob("*.cll"))
ISAS = available_isas()


@cache
def program(name: str) -> compiler.Program:
    """Return the optimized program of a built-in spec."""
    return compiler.compile_file(compiler.SPECS / f"{name}.cll")


def from_text(text: str) -> compiler.Program:
    return compiler.optimize(compiler.read_program(text))


@cache
def seed_program() -> compiler.Program:
    """Return the TernGrad sample that HiPress published, as printed, with a decoder for its
    format."""
    parts = [(DATA / f"TernGrad{half}.pse").read_text() for half in ("Encode", "Decode")]
    return from_text("\n".join(parts))


def marked_by(form: str) -> str:
    """Return the text of a codec that sends where a gradient is not zero.

    Args:
        form: Function that packs the positions, such as "pack_gaps".
    """
    return f"""
void Encode(float* g, uint8* c) {{
  int* sent = filter(range(g.size), [&](int i) -> bool {{ return g[i] != 0; }});
  c = concat(uint32(sent.size), {form}(sent));
}}
void Decode(uint8* c, float* g) {{
  uint32 count;
  int index[count];
  extract(c, count, {form}(index));
  g = scatter(g.size, index, map(index, [&](int i) -> float {{ return 1; }}));
}}
"""


def positions(n: int, count: int, seed: int = 0) -> np.ndarray:
    """Return int64[count]: so many of n positions, ascending."""
    return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))


def gradient(n: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, n).astype(np.float32)


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    return left.dtype == right.dtype and left.tobytes() == right.tobytes()


def same_but_nan(left: np.ndarray, right: np.ndarray) -> bool:
    """Return whether the bits are the same, where all NaNs are equal."""
    nan = np.float32(np.nan)
    return same_bits(*(np.where(np.isnan(x), nan, x) for x in (left, right)))


def check_equal(
    one,
    two,
    n: int,
    inputs: list[np.ndarray],
    before: Callable[[int], object] = lambda step: None,
    same: Callable[[np.ndarray, np.ndarray], bool] = same_bits,
) -> list[bytes]:
    """Compare payloads, states, decoded values and sums of two coders over some steps.

    Args:
        before: Called with each step's number.
        same: Comparison of the decoded values.

    Returns:
        The payloads.
    """
    states: tuple[dict, dict] = ({}, {})
    payloads = []
    for step, x in enumerate(inputs):
        before(step)
        payload = one.encode(x, states[0], step, stream=3)
        assert two.encode(x, states[1], step, stream=3) == payload
        assert len(payload) <= two.max_bytes(n)
        assert len(payload) == two.max_bytes(n) or not two.fixed_size
        for name in states[0]:
            assert same_bits(states[1][name], states[0][name]), name
        assert same(two.decode(payload, n), one.decode(payload, n))
        totals = [gradient(n, 9), gradient(n, 9)]
        one.decode_add(payload, totals[0])
        two.decode_add(payload, totals[1])
        assert same(*totals)
        payloads.append(payload)
    return payloads
