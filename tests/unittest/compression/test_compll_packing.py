"""Packed codes of 1 to 8 bits: NumPy's bytes on every instruction set."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

from compll_helpers import DATA, ISAS, gradient, program, same_bits
from hipress.compression import compiler
from hipress.compression.compiler.backends.numpy.packing import pack, unpack
from hipress.compression.compiler.runtime import native

TILE = 64
SIZES = (1, 7, 8, 9, 63, 64, 65, 120, 127, 128, 129, 191, 200, 4095, 4096, 4097)
WIDTHS = range(1, 9)


@cache
def probe(isa: str) -> ctypes.CDLL:
    """Return packing.h, compiled for an instruction set."""
    include = native.include_directory()
    headers = [
        *(include / "operator/contrib/compll").glob("*.h"),
        include / "operator/contrib/half.h",
    ]
    source = (DATA / "packing_probe.cc").read_text()
    flags = [*native.FLAGS[isa], f"-I{include}"]
    return ctypes.CDLL(str(native.compile_cached("packing_probe", source, flags, headers)))


def whole_tiles(codes: np.ndarray, shift: int = 0) -> np.ndarray:
    """Return int32 codes << shift, followed by zeros up to a whole number of tiles."""
    padded = np.zeros(-(-codes.size // TILE) * TILE, np.int32)
    padded[: codes.size] = codes << shift
    return padded


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("order", ["lsb", "msb"])
@pytest.mark.parametrize("bits", WIDTHS)
def test_codes_of_every_width_have_the_bytes_of_the_reference(bits, order, isa):
    library, msb = probe(isa), int(order == "msb")
    random = np.random.default_rng(bits)
    for n in SIZES:
        for codes in (random.integers(0, 2**bits, n), np.full(n, 2**bits - 1)):
            expected = pack(codes, bits, order, 1)
            # The upper half of a lane holds the code; the lower half is what its rounding left.
            rest = random.integers(0, 2**16, n)
            inputs = [(0, whole_tiles(codes)), (1, whole_tiles(codes, 16) | whole_tiles(rest))]
            for high, lanes in inputs:
                out = np.zeros(len(expected), np.uint8)
                library.PackCodes(bits, msb, high, lanes.ctypes, ctypes.c_int64(n), out.ctypes)
                assert out.tobytes() == expected
            found = np.full(-(-n // TILE) * TILE, -1, np.int32)
            data = np.frombuffer(expected, np.uint8)
            library.UnpackCodes(bits, msb, data.ctypes, ctypes.c_int64(n), found.ctypes)
            assert (found[:n] == unpack(expected, n, bits, order)).all()


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("bits", WIDTHS)
def test_maxmin_of_every_width_equals_the_interpreter(bits, isa):
    one = compiler.Interpreter(program("maxmin"), bits=bits, bucket=64)
    two = compiler.Compiled(program("maxmin"), isa, bits=bits, bucket=64)
    for n in SIZES:
        payload = one.encode(gradient(n, bits), step=1)
        assert two.encode(gradient(n, bits), step=1) == payload
        assert same_bits(two.decode(payload, n), one.decode(payload, n))


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("name", "params"), [("onebit", {}), ("terngrad", {"bitwidth": 1})])
def test_sums_of_one_bit_codes_equal_the_interpreter(name, params, isa):
    one = compiler.Interpreter(program(name), **params)
    two = compiler.Compiled(program(name), isa, **params)
    for n in (1, 33, 64, 127, 4096, 4100):
        payloads = [one.encode(gradient(n, k), {}, k) for k in range(3)]
        assert same_bits(two.decode_sum(payloads, n), one.decode_sum(payloads, n))
        assert same_bits(two.decode(payloads[0], n), one.decode(payloads[0], n))


@pytest.mark.skipif("avx2" not in ISAS, reason="AVX2 is missing")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is missing")
@pytest.mark.parametrize("name", ["maxmin", "terngrad", "onebit"])
def test_avx2_code_of_dense_codecs_has_no_pext_or_pdep(name):
    # Processors with AVX2 but without AVX-512 may take hundreds of cycles for one.
    command = ["objdump", "-d", "--no-show-raw-insn", str(native.build(program(name), "avx2"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert re.search(r"\bvmulps\b|\bvaddps\b", done.stdout)
    assert not re.search(r"\b(pext|pdep)\b", done.stdout)
