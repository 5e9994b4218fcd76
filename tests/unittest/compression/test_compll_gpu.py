"""The CUDA backend on a GPU: bits, batches, compute-sanitizer. Skipped where there is no GPU.

On a GPU every NaN that arithmetic makes is 0x7fffffff, so NaNs are compared as NaNs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import compll_helpers
from compll_helpers import SIZES, SPECS, gradient, program, same_but_nan
from hipress.compression import compiler
from hipress.compression.compiler.cuda import CudaError, Library
from host_coder import HostCoder
from scripts import SCRIPTS
from test_compll_codegen import VARIANTS, special

LIBRARY = Path(__file__).resolve().parents[3] / "build/libhipress_cuda.so"


@cache
def why_not() -> str:
    if not LIBRARY.exists():
        return "there is no build/libhipress_cuda.so: no nvcc, or HIPRESS_CUDA=off"
    try:
        Library(LIBRARY)
    except CudaError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


def coder(name: str, shape: str = "auto", **params) -> HostCoder:
    entry = f"hipress_compll_cuda_{program(name).identifier}"
    return HostCoder(program(name), shape, library=LIBRARY, entry=entry, **params)


def check_equal(one, two: HostCoder, n: int, inputs: list[np.ndarray]) -> None:
    payloads = compll_helpers.check_equal(one, two, n, inputs, same=same_but_nan)
    assert same_but_nan(two.decode_sum(payloads, n), one.decode_sum(payloads, n))


@pytest.mark.parametrize("shape", ["grid", "block"])
@pytest.mark.parametrize("name", SPECS)
def test_a_gpu_equals_the_interpreter(name, shape):
    one, two = compiler.Interpreter(program(name)), coder(name, shape)
    for n in SIZES:
        check_equal(one, two, n, [gradient(n, k, scale) for k, scale in enumerate((1, 0.05, 100))])
    check_equal(one, two, 1000, [special(1000), gradient(1000, 3, 1e-40)])


@pytest.mark.parametrize("name", SPECS)
def test_a_large_gradient_equals_the_interpreter(name):
    n = 1 << 24
    check_equal(compiler.Interpreter(program(name)), coder(name), n, [gradient(n)])


@pytest.mark.parametrize(
    ("name", "params"),
    [(name, params) for name, many in VARIANTS.items() for params in many],
    ids=lambda value: str(value),
)
def test_parameters_on_a_gpu(name, params):
    one, two = compiler.Interpreter(program(name), **params), coder(name, **params)
    for n in (1, 100, 20000):
        check_equal(one, two, n, [gradient(n, k) for k in range(2)])


@pytest.mark.parametrize("name", SPECS)
def test_nan_and_inf_on_a_gpu(name):
    one, two = compiler.Interpreter(program(name)), coder(name)
    for value in (np.nan, np.inf, -np.inf):
        x = gradient(9000)
        x[::100] = value
        states: tuple[dict, dict] = ({}, {})
        expected = one.decode(one.encode(x, states[0]), 9000)
        np.testing.assert_array_equal(two.decode(two.encode(x, states[1]), 9000), expected)
        for name_ in states[0]:
            np.testing.assert_array_equal(states[1][name_], states[0][name_])


def test_a_batch_on_a_gpu_is_one_launch():
    one, two = compiler.Interpreter(program("dgc")), coder("dgc")
    inputs = [gradient(int(n), k) for k, n in enumerate(np.linspace(0, 60_000, 200))]
    states: tuple[list, list] = ([{} for _ in inputs], [{} for _ in inputs])
    before = two.library.launches
    payloads = two.encode_many(inputs, states[1])
    assert two.library.launches == before + 1
    for x, payload, state in zip(inputs, payloads, states[0]):
        assert payload == one.encode(x, state)


SANITIZED = SCRIPTS / "compll_gpu_sanitized.py"


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
@pytest.mark.parametrize("name", ["dgc", "terngrad", "maxmin", "onebit", "topk"])
def test_compute_sanitizer_finds_nothing(name, tool):
    sanitizer = shutil.which("compute-sanitizer") or shutil.which(
        "/usr/local/cuda/bin/compute-sanitizer"
    )
    if sanitizer is None:
        pytest.skip("there is no compute-sanitizer")
    command = [
        sanitizer,
        "--tool",
        tool,
        "--error-exitcode",
        "9",
        sys.executable,
        str(SANITIZED),
        name,
        *sys.path,
    ]
    result = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, timeout=170, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
