"""Speed limits by computation alone: parts of codecs, written in CompLL and timed in the cache.

A codec with much computation per element cannot reach memcpy's speed in the cache. Each row
compares a codec with separate programs of its parts: random numbers alone, the range of each bucket
alone, the codec without random numbers. "reached" is the time of the parts, one after the other,
divided by the codec's. All are timed in turns, the fastest of many runs, on one thread with the
best instruction set (HIPRESS_SIMD chooses another).
"""

from __future__ import annotations

import ctypes
import time
from typing import Annotated

import numpy as np
import typer

from benchmarks.common.options import Quick, Rounds
from benchmarks.common.results import Record, console
from hipress.compression import compiler
from hipress.compression.compiler.runtime.native import Compiled

DRAWS = """
algorithm "draws"; param uint32 seed = 0;
void Encode(float* gradient, uint8* compressed) {
  float* drawn = map(range(gradient.size), [&](int i) -> float { return random<uint16>(); });
  compressed = concat(max(drawn));
}
"""
RANGES = """
algorithm "ranges"; param int bucket = 1024 in [64, 1048576] multiple 64;
void Encode(float* gradient, uint8* compressed) {
  float* low = bucket_min(gradient, bucket);
  float* known = map(gradient, [&](float v) -> float { return isnan(v) ? inf : v; });
  float* high = bucket_max(known, bucket);
  compressed = concat(low, high);
}
"""
RANGE = """
algorithm "range";
void Encode(float* gradient, uint8* compressed) {
  float* known = map(gradient, [&](float v) -> float { return isnan(v) ? inf : v; });
  compressed = concat(min(gradient), max(known));
}
"""
PICKS = """
algorithm "picks"; param uint32 seed = 0; param int tries = 1024 in [1, 1048576];
state float* residual;
void Encode(float* gradient, uint8* compressed) {
  float* size = abs(residual + gradient);
  compressed = concat(quantile(sample(size, tries), 0.99));
}
"""
WITHIN = """
algorithm "within"; state float* residual;
void Encode(float* gradient, uint8* compressed) {
  float* x = residual + gradient;
  int* hot = filter(range(gradient.size), [&](int i) -> bool { return !(abs(x[i]) < 1.28); });
  residual = x;
  residual = scatter(residual, hot, 0);
  compressed = concat(uint32(hot.size));
}
"""


class Timed:
    """Encoder, its inputs, and the fastest of its runs."""

    def __init__(self, text: str, gradient: np.ndarray, **params: float) -> None:
        if text.endswith(".cll"):
            program = compiler.compile_file(compiler.SPECS / text)
        else:
            program = compiler.optimize(compiler.read_program(text))
        self.coder = Compiled(program, **params)
        self.states = [np.zeros_like(gradient) for _ in program.states]
        self.lazy = np.zeros(8, np.float32)
        self.payload = np.zeros(self.coder.max_bytes(gradient.size) + 4096, np.uint8)
        self.pointers = pointers = (ctypes.c_void_p * max(len(self.states), 1))(
            *(state.ctypes.data for state in self.states)
        )
        self.call = self.coder._abi.CompllEncodeCall(
            gradient.ctypes.data,
            0,
            gradient.size,
            self.coder._params,
            pointers,
            pointers,
            0,
            self.lazy.ctypes.data,
            0,
            0,
            1,
            None,
            self.payload.ctypes.data,
        )
        self.best = float("inf")

    def run(self, seconds: float) -> None:
        call, encode = ctypes.byref(self.call), self.coder.algorithm.encode
        end = time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end:
            encode(call)
            self.call.step += 1
            self.best = min(self.best, time.perf_counter() - begin)


def main(
    seconds: Annotated[float, typer.Option(help="For each program.")] = 0.3,
    rounds: Rounds = 5,
    elements: int = 65536,
    quick: Quick = False,
) -> None:
    if quick:
        seconds, rounds = 0.01, 1
    record = Record("codec_bounds", locals())
    x = np.random.default_rng(1).normal(0, 0.5, elements).astype(np.float32)
    timed = {
        "16 random bits": Timed(DRAWS, x),
        "ranges of buckets": Timed(RANGES, x),
        "one range": Timed(RANGE, x),
        "sample of n / 32": Timed(PICKS, x, tries=max(1, elements // 32)),
        "filter and residual": Timed(WITHIN, x),
        "maxmin, 8 bits": Timed("maxmin.cll", x, bits=8),
        "maxmin, 8 bits, nearest": Timed("maxmin.cll", x, bits=8, stochastic=0),
        "terngrad, 8 bits": Timed("terngrad.cll", x, bitwidth=8),
        "terngrad, 8 bits, nearest": Timed("terngrad.cll", x, bitwidth=8, stochastic=0),
        "maxminef, 8 bits": Timed("maxminef.cll", x, bits=8),
        "graddrop, 1%": Timed("graddrop.cll", x, drop=0.99),
    }
    for _ in range(rounds):
        for each in timed.values():
            each.run(seconds / rounds)
    record["seconds"] = {name: each.best for name, each in timed.items()}
    cells = [
        [name, f"{4e-9 * elements / each.best:.1f}", f"{1e6 * each.best:.2f}"]
        for name, each in timed.items()
    ]
    record.table(["program", "GB/s", "us"], cells)
    for name, parts in (
        ("maxmin, 8 bits", ("maxmin, 8 bits, nearest", "16 random bits")),
        ("terngrad, 8 bits", ("terngrad, 8 bits, nearest", "16 random bits")),
        ("graddrop, 1%", ("sample of n / 32", "filter and residual")),
    ):
        bound = sum(timed[part].best for part in parts)
        reached = f"{1e6 * bound:.2f} us, reached {bound / timed[name].best:.0%}"
        console.print(f"{name}: {' + '.join(parts)} = {reached}", highlight=False)
    record.save()
