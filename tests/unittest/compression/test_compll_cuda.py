"""Generated CUDA against the NumPy interpreter, bit for bit, on a CPU that emulates the GPU.

The emulation runs blocks and threads in random order, so that a missing barrier shows. What only a
GPU can show is in test_compll_gpu.py.
"""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import compll_helpers
import cuda_emulation
from compll_helpers import SIZES, SPECS, from_text, gradient, program, same_bits, seed_program
from hipress import __version__
from hipress.compression import compiler
from hipress.compression.compiler.backends.cuda import program as cuda
from hipress.compression.compiler.cuda import (
    CudaError,
    DecodeCall,
    Library,
    built_in,
    built_in_library,
)
from hipress.compression.compiler.runtime import cuda_build
from hipress.native import library as native_library
from host_coder import HostCoder
from test_compll_codegen import VARIANTS, special

ROOT = Path(__file__).resolve().parents[3]


@cache
def library(name: str) -> Path:
    return cuda_emulation.build(program(name))


def coder(name: str, shape: str = "auto", **params) -> HostCoder:
    return HostCoder(program(name), shape, library=library(name), **params)


def check_equal(one, two: HostCoder, n: int, inputs: list[np.ndarray]) -> None:
    """Check as compll_helpers.check_equal does, with threads and blocks in another order each
    step."""

    def shuffle(step: int) -> None:
        two.emulate(seed=1 + 1000 * n + step, processors=1 + (n + step) % 4)

    compll_helpers.check_equal(one, two, n, inputs, shuffle)


def with_values(n: int, values: list[float]) -> np.ndarray:
    x = gradient(n)
    x[:: max(n // 7, 1)] = np.resize(np.array(values, np.float32), x[:: max(n // 7, 1)].size)
    return x


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("shape", ["grid", "block"])
@pytest.mark.parametrize("name", SPECS)
def test_kernels_equal_the_interpreter(name, shape):
    one, two = compiler.Interpreter(program(name)), coder(name, shape)
    for n in SIZES:
        check_equal(one, two, n, [gradient(n, 0), gradient(n, 1, 0.05), gradient(n, 2, 100.0)])
    spread = gradient(65537) * np.logspace(-30, 30, 65537, dtype=np.float32)
    check_equal(one, two, 65537, [spread, np.zeros(65537, np.float32)])
    check_equal(one, two, 1000, [special(1000), gradient(1000, 3, 1e-40)])
    for values in ([np.nan], [np.inf], [-np.inf, np.nan, 0.0, -0.0]):
        check_equal(one, two, 9000, [with_values(9000, values), gradient(9000, 1)])


@pytest.mark.parametrize(("shape", "batch"), [("grid", 0), ("block", 0), ("block", 1)])
def test_an_encode_that_is_to_be_skipped_changes_nothing(shape, batch):
    algorithm, n = coder("dgc").algorithm, 9000
    most = algorithm.max_bytes(n)
    x = gradient(n)
    for skip in (0, 7):
        flag, size = np.array([skip]), np.full(1, -1)
        states = [gradient(n, k + 1) for k in range(2)]
        payload = np.full(most, 0xA5, np.uint8)
        work = np.zeros(algorithm.encode_workspace(n) // 8 + 1)
        before = [array.copy() for array in (*states, payload, size)]
        call = algorithm.encode_call(
            x.ctypes.data,
            n,
            [s.ctypes.data for s in states],
            payload.ctypes.data,
            most,
            size.ctypes.data,
            work.ctypes.data,
            skip=flag.ctypes.data,
        )
        if batch:
            algorithm.encode_batch(ctypes.addressof(call), 1)
        else:
            algorithm.encode(call, shape=shape)
        same = [np.array_equal(a, b) for a, b in zip(before, (*states, payload, size))]
        assert all(same) if skip else not any(same)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("name", "params"),
    [(name, params) for name, many in VARIANTS.items() for params in many]
    + [("maxmin", {"bits": b, "bucket": 64}) for b in (2, 4, 6, 7)],
    ids=lambda value: str(value),
)
def test_parameters_reach_the_kernels(name, params):
    one, two = compiler.Interpreter(program(name), **params), coder(name, **params)
    for n in (1, 100, 20000):
        check_equal(one, two, n, [gradient(n, k) for k in range(3)])


def test_the_published_sample_runs_on_the_gpu():
    one = compiler.Interpreter(seed_program(), bitwidth=2)
    two = HostCoder(seed_program(), emulate=True, bitwidth=2)
    for n in (1, 8, 1001):
        check_equal(one, two, n, [gradient(n, k) for k in range(2)])


HARD = """
algorithm "hard" "what the built-in algorithms do not use";
param float limit = 0.5 in [0, 1] "of the mask";
state float* residual;
void Encode(float* gradient, uint8* compressed) {
  float* x = residual + gradient;
  float* up = sort(x);
  lambda_func join = [&](float a, float b) -> float { return abs(a) > abs(b) ? a : 0.75 * b; };
  int whole = sum(map(x, [&](float v) -> int { return int(v * 1000) * 3; }));
  int* kept = filter(range(gradient.size), [&](int i) -> bool { return x[i] > limit; });
  uint16* cut = map(x, [&](float v) -> uint16 { return int(abs(v) * 100); });
  float16* half = gather(x, kept);
  bool* plus = map(x, [&](float v) -> bool { return v > 0; });
  residual = map(range(x.size), [&](int i) -> float { return x[i] - up[x.size - 1 - i]; });
  uint32 count = uint32(kept.size);
  float span = reduce(x, 0.0, join);
  compressed = concat(uint8(7), count, span, uint32(whole), plus, kept, cut, half, up);
}
"""


def test_sorting_joining_in_order_and_fields_at_odd_places():
    hard = from_text(HARD)
    one, two = compiler.Interpreter(hard), HostCoder(hard, "grid", emulate=True)
    three = HostCoder(hard, "block", emulate=True)
    for n in (0, 1, 65, 5001, 40000):
        states: list[dict] = [{}, {}, {}]
        for step in range(2):
            x = with_values(n, [0.0, -0.0, 1e-42, np.inf]) if n else gradient(n)
            expected = one.encode(x, states[0], step)
            for k, other in ((1, two), (2, three)):
                other.emulate(seed=n + step + k, processors=2)
                assert other.encode(x, states[k], step) == expected
                assert same_bits(states[k]["residual"], states[0]["residual"])


ORDERS = """
algorithm "orders" "numbers that show in which order blocks were joined";
void Encode(float* gradient, uint8* compressed) {
  float* squares = gradient * gradient;
  compressed = concat(float(sum(gradient)), min(gradient), max(gradient), float(sum(squares)));
}
"""


def in_blocks(*values: float) -> np.ndarray:
    """Return zeros except for the first element of each block of 4096."""
    x = np.zeros(4096 * len(values) - 5, np.float32)
    x[::4096] = values
    return x


@pytest.mark.parametrize("shape", ["grid", "block"])
def test_blocks_are_joined_in_order(shape):
    orders = from_text(ORDERS)
    one, two = compiler.Interpreter(orders), HostCoder(orders, shape, emulate=True)
    nan, inf = np.nan, np.inf
    inputs = [
        in_blocks(1e20, 1, -1e20, 3),  # in order 3, otherwise 4
        in_blocks(1e-45, 3e38, -3e38, 1e-45, 1),
        in_blocks(-1, 5, nan, 3, 2),
        in_blocks(nan),
        in_blocks(inf, -inf, 1),
        np.full(9000, -0.0, np.float32),
        gradient(300_000),
    ]
    for each in ((0.0, -0.0, 0.0), (-0.0, 0.0, -0.0, -0.0), (5, nan, 3), (2, nan, nan, 7, 1)):
        inputs.append(np.repeat(np.array(each, np.float32), 4096))
    for k, x in enumerate(inputs):
        two.emulate(seed=k + 1, processors=2)
        assert two.encode(x) == one.encode(x), k


# Batches and launches ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["terngrad", "dgc", "onebit"])
def test_two_hundred_small_gradients_are_one_launch(name):
    sizes = [int(n) for n in np.random.default_rng(0).integers(0, 3000, 200)]
    one, two = compiler.Interpreter(program(name)), coder(name)
    states: tuple[list, list] = ([{} for _ in sizes], [{} for _ in sizes])
    for step in range(2):
        inputs = [gradient(n, k + step) for k, n in enumerate(sizes)]
        two.emulate(seed=step + 1, processors=5)
        before = two.library.launches
        payloads = two.encode_many(inputs, states[1], step)
        assert two.library.launches == before + 1
        for k, x in enumerate(inputs):
            assert payloads[k] == one.encode(x, states[0][k], step), k
            for state in states[0][k]:
                assert same_bits(states[1][k][state], states[0][k][state])


def test_dense_codecs_are_two_launches_and_small_gradients_one():
    for name, encodes in (("tbq", 1), ("onebit", 2), ("terngrad", 2)):
        two = coder(name)
        for n, launches in ((1000, 1), (20000, encodes)):
            before = two.library.launches
            payload = two.encode(gradient(n))
            assert two.library.launches == before + launches
            two.decode(payload, n)
            assert two.library.launches == before + launches + 1


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("name", SPECS)
def test_many_payloads_are_merged_as_defined(name):
    params = {"threshold": 0.1} if name in ("tbq", "2bit") else {}
    one, two = compiler.Interpreter(program(name), **params), coder(name, **params)
    for n, count in ((0, 2), (300, 1), (1000, 5), (9001, 3), (200, 35)):
        payloads = [one.encode(gradient(n, k), step=k) for k in range(count)]
        two.emulate(seed=n + 1, processors=2)
        assert same_bits(two.decode_sum(payloads, n), one.decode_sum(payloads, n))
    # Sparse payloads, and those of which parts must be counted before the rest is read: one by one.
    several = (
        "dct",
        "dgc",
        "graddrop",
        "lossless",
        "randomk",
        "sparseloco",
        "stc",
        "ternary",
        "topk",
    )
    if name not in several:
        before = two.library.launches
        two.decode_sum(payloads[:16], 200)
        assert two.library.launches == before + 1
    with pytest.raises(compiler.PayloadError, match="must have"):
        two.decode_sum([payloads[0], payloads[1][:-1], payloads[2]], 200)


# Hostile payloads ------------------------------------------------------------------


class Guarded:
    """Memory whose end (to 3 bytes) is the end of what may be read."""

    def __init__(self, data: bytes) -> None:
        page = mmap.PAGESIZE
        room = -(-max(len(data), 1) // page) * page
        self.memory = mmap.mmap(-1, room + page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(base + room), ctypes.c_size_t(page), 0) == 0
        self.at = base + (room - len(data)) // 4 * 4
        ctypes.memmove(self.at, data, len(data))


def decode_guarded(two: HostCoder, data: bytes, n: int, shape: str) -> tuple[np.ndarray, str]:
    """Return what is decoded, and the message, from memory with nothing behind it."""
    guarded, out = Guarded(data), np.full(n, 7, np.float32)
    size, status = np.array([len(data)], np.int64), np.full(2, -1, np.int64)
    workspace = np.zeros(two.algorithm.decode_workspace(n) // 8 + 2, np.int64)
    start = -(-workspace.ctypes.data // 16) * 16
    call = DecodeCall(
        guarded.at, size.ctypes.data, len(data), n, out.ctypes.data, status.ctypes.data, start
    )
    two.algorithm.decode(call, shape=shape)
    return out, "" if status[0] == 0 else two.algorithm.sentence(status)


def hostile(payload: bytes, n: int, generator: np.random.Generator) -> list[bytes]:
    """Return the payload cut, extended, with its counts and bytes changed, and noise."""
    many = [b"", payload[:-1], payload + b"\0", payload[: len(payload) // 2], payload[:3]]
    for count in (0, 1, n, n + 1, 2**31 - 1, 2**31, 2**32 - 1):
        many.append(int(count).to_bytes(4, "little") + payload[4:])
    words = np.frombuffer(payload[4 : len(payload) // 4 * 4], np.uint32)
    for changed in (words[::-1], np.repeat(words[:1], words.size)):  # also of indices
        many.append(payload[:4] + changed.tobytes())
    count = int.from_bytes(payload[:4], "little")
    if 4 + 8 * count == len(payload):
        descending = np.concatenate([words[:count][::-1], words[count:]])
        many += [payload[:4] + part.tobytes() for part in (descending, np.full_like(words, 0))]
    for _ in range(12):
        changed = bytearray(payload)
        for at in generator.integers(0, max(len(changed), 1), 3):
            if changed:
                changed[at] = generator.integers(0, 256)
        many.append(bytes(changed))
        many.append(generator.bytes(int(generator.integers(0, 2 * len(payload) + 2))))
    return many


@pytest.mark.parametrize("name", SPECS)
def test_malformed_payloads_are_refused_and_never_read_beyond(name):
    one, two = compiler.Interpreter(program(name)), coder(name)
    generator = np.random.default_rng(3)
    required = [i.attrs["message"] for i in program(name).decode.instrs() if i.op == "require"]
    refused = 0
    for n in (1, 7, 300):
        for data in hostile(one.encode(gradient(n)), n, generator):
            try:
                expected = one.decode(data, n)
            except compiler.PayloadError as error:
                expected, refused = None, refused + 1
                wanted = str(error).removeprefix("the payload ").split(", not ")[0]
            for shape in ("grid", "block"):
                out, sentence = decode_guarded(two, data, n, shape)
                if expected is None:
                    assert (out == 7).all(), "a refused payload changes nothing"
                    # Requirements of numbers are checked before the indices are.
                    assert sentence == wanted or (sentence in required and "indices" in wanted)
                else:
                    assert sentence == "" and out.tobytes() == expected.tobytes()
    assert refused > 10


def test_a_size_beyond_the_memory_is_an_error():
    two = coder("tbq")
    size, status = np.array([100], np.int64), np.zeros(2, np.int64)
    out, workspace = np.zeros(16, np.float32), np.zeros(64, np.int64)
    start = -(-workspace.ctypes.data // 16) * 16
    call = DecodeCall(
        out.ctypes.data, size.ctypes.data, 4, 16, out.ctypes.data, status.ctypes.data, start
    )
    two.algorithm.decode(call)
    assert two.algorithm.sentence(status) == ("is said to have 100 bytes, more than its memory has")


def test_bad_calls_are_one_sentence():
    two = coder("onebit")
    with pytest.raises(CudaError, match="the payload's memory is smaller than max_bytes"):
        two.algorithm.encode(two.algorithm.encode_call(4096, 100, [8192], 4096, 3, 8, 16))
    with pytest.raises(CudaError, match="a pointer is not aligned"):
        two.algorithm.encode(two.algorithm.encode_call(4097, 0, [8192], 4096, 100, 8, 16))
    with pytest.raises(CudaError, match="a pointer is null"):
        two.algorithm.encode(two.algorithm.encode_call(4096, 0, [8192], 4096, 100, 0, 16))
    with pytest.raises(ValueError, match="onebit has the states residual, not 2"):
        two.algorithm.encode_call(4096, 0, [1, 2], 4096, 100, 8, 16)
    with pytest.raises(compiler.CompileError, match="can have 4 states at most"):
        states = "".join(f"state float* s{k};" for k in range(5))
        cuda.generate(from_text(f"{states} void E(float* g, uint8* c) {{ c = concat(g); }}"))


# The emulation itself ------------------------------------------------------------------

KERNEL = r"""
#include "operator/contrib/compll/cuda/exports.cuh"
#include "operator/contrib/compll/cuda/team.cuh"
using namespace hipress::compll;
__global__ void Reverse(int* data) {
  COMPLL_SHARED(Shared, shared);
  shared.histogram[threadIdx.x] = data[threadIdx.x];
  %s
  data[threadIdx.x] = shared.histogram[kThreads - 1 - threadIdx.x];
}
COMPLL_EXPORT void reverse(int* data) { Launch<int*>(Reverse, 1, nullptr, data); }
"""


def kernel(tmp_path: Path, barrier: str) -> Path:
    path = tmp_path / "kernel.so"
    source = KERNEL % barrier
    include = f"-I{ROOT / 'src'}"
    subprocess.run(
        ["g++", *cuda_emulation.FLAGS, include, "-", "-o", str(path)],
        input=source,
        text=True,
        check=True,
        timeout=100,
    )
    return path


def test_the_emulation_finds_a_missing_barrier(tmp_path):
    wrong = []
    for barrier in ("__syncthreads();", ""):
        folder = tmp_path / (barrier[:4] or "none")
        folder.mkdir()
        loaded = Library(kernel(folder, barrier))
        data = np.arange(256, dtype=np.int32)
        cuda_emulation.emulate(loaded, seed=5)
        loaded.handle.reverse(ctypes.c_void_p(data.ctypes.data))
        wrong.append(int((data != np.arange(256)[::-1]).sum()))
    assert wrong[0] == 0 and wrong[1] > 0


@pytest.mark.parametrize(
    ("barrier", "message"),
    [
        ("if (threadIdx.x < 40) __syncthreads();", "threads wait for others"),
        ("if (Lane() < 7) __ballot_sync(kAll, 1);", "threads wait for others"),
        ("if (Lane() < 7) __ballot_sync(kAll, 1); else __syncwarp();", "different functions"),
    ],
)
def test_the_emulation_names_a_wait_without_end(tmp_path, barrier, message):
    path = kernel(tmp_path, barrier)
    script = f"import ctypes; ctypes.CDLL('{path}').reverse(ctypes.create_string_buffer(2048))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode != 0 and message in result.stderr


def test_the_benchmark_runs():
    """The benchmark runs on the emulation, whose times say nothing: only the numbers need a GPU."""
    from benchmarks.cuda import speed

    class Emulated(speed.Bench):
        def algorithm(self, name):
            return coder(name).algorithm

    bench = Emulated(Library(library("onebit")), 10_000, 1)
    row = bench.codec("onebit", bench.copy_bandwidth())
    assert row["encode launches"] == 2 and row["decode launches"] == 1
    assert speed.traffic(program("onebit").encode, {}) == 8 + 0.125 + 12
    assert bench.batch("onebit", 3)["batch launches"] == 1
    bench.free(0)


# Without a GPU ------------------------------------------------------------------


def test_no_nvcc_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("NVCC", str(tmp_path / "nvcc"))
    with pytest.raises(compiler.BuildError, match="there is no CUDA compiler: nvcc is neither in"):
        cuda_build.build(program("tbq"))


def test_a_library_that_cannot_be_loaded_is_none(tmp_path):
    path = tmp_path / "libhipress_cuda.so"
    path.write_bytes(b"no library")
    assert built_in(program("tbq"), path) is None


@pytest.fixture
def cuda12(monkeypatch, tmp_path):
    """Provide an installed hipress-cuda12 without code; return a function that sets its version."""
    package = tmp_path / "site" / "hipress_cuda12"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "libhipress_cuda.so").touch()
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(native_library, "library_path", lambda: tmp_path / "libhipress.so")

    def set_version(version: str) -> Path:
        information = package.parent / f"hipress_cuda12-{version}.dist-info"
        information.mkdir()
        text = f"Metadata-Version: 2.1\nName: hipress-cuda12\nVersion: {version}\n"
        (information / "METADATA").write_text(text)
        return package / "libhipress_cuda.so"

    return set_version


def test_library_of_the_cuda_distribution_is_found(cuda12, tmp_path):
    path = cuda12(__version__)
    assert built_in_library() == path
    (tmp_path / "libhipress_cuda.so").touch()  # of a source tree
    assert built_in_library() == tmp_path / "libhipress_cuda.so"


def test_cuda_distribution_of_another_version_is_one_sentence(cuda12):
    cuda12("0.0.9")
    with pytest.raises(CudaError) as raised:
        built_in_library()
    assert str(raised.value) == (
        f"hipress-cuda12 is version 0.0.9, but hipress is version {__version__}: "
        f"pip install hipress-cuda12=={__version__}"
    )


def test_the_built_library_has_every_algorithm():
    path = ROOT / "build/libhipress_cuda.so"
    if not path.exists():
        pytest.skip("there is no build/libhipress_cuda.so: no nvcc, or HIPRESS_CUDA=off")
    handle = ctypes.CDLL(str(path))
    find = handle.hipress_cuda_algorithm
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    assert all(find(name.encode()) for name in SPECS) and not find(b"none of ours")
    for name in SPECS:
        assert hasattr(handle, built_in(program(name), path))
    assert built_in(from_text(HARD), path) is None and built_in(program("tbq"), ROOT / "no") is None
    try:
        Library(path)
    except CudaError as error:
        assert str(error).startswith("there is no GPU for CUDA code: ")
