"""Every built-in codec on 2^24 elements against the interpreter, bit for bit. Minutes, not for CI.

make nightly        (HIPRESS_SIMD chooses the instruction set)
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import hipress
from hipress.compression import compiler


def differences(name: str, n: int) -> list[str]:
    """Return what differs between the interpreter and the library, on one thread and on two."""
    program = compiler.compile_file(compiler.SPECS / f"{name}.cll")
    oracle, states = compiler.Interpreter(program), {}
    codecs = {threads: hipress.Compressor(name, threads=threads) for threads in (1, 2)}
    found = []
    for step in range(2):
        x = np.random.default_rng(step).normal(0, 0.5, n).astype(np.float32)
        expected = oracle.encode(x, states, step)
        for threads, codec in codecs.items():
            if codec.encode(x) != expected:
                found.append(f"payload of step {step}, {threads} threads")
    decoded = oracle.decode(expected, n)
    for threads, codec in codecs.items():
        if codec.decode(expected, n).tobytes() != decoded.tobytes():
            found.append(f"decoded values, {threads} threads")
        if "residual" in states and codec.residual.tobytes() != states["residual"].tobytes():
            found.append(f"residual, {threads} threads")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="codecs; by default all")
    parser.add_argument("-n", type=int, default=2**24, help="elements")
    args = parser.parse_args()
    names = args.names or sorted(path.stem for path in compiler.SPECS.glob("*.cll"))
    wrong = 0
    for name in names:
        start = time.perf_counter()
        found = differences(name, args.n)
        wrong += bool(found)
        verdict = "differs: " + ", ".join(found) if found else "equal"
        print(f"{name:10} {verdict} ({time.perf_counter() - start:.0f} s)", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
