"""Speed of the CUDA codecs on a GPU, and of a copy of the device's memory in the same run.

Figures are GB of float32 gradient per second, the median of many runs. In brackets is the memory
traffic that the program's passes cannot avoid, as a share of a device-to-device copy's in the same
run. Buffers are far larger than the L2 cache, values are normal, and three sets of them take turns.
Also measured: bfloat16 as the 16-bit baseline, dgc against torch.topk if torch sees the GPU, and
200 small gradients one by one and as a batch, with the number of launched kernels.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks.common.options import Quick
from benchmarks.common.results import Record, console
from harness import ROOT
from hipress.compression import compiler
from hipress.compression.compiler.cuda import Algorithm, CudaError, DecodeCall, EncodeCall, Library
from hipress.compression.compiler.ir.ir import Function, Loop

LIBRARY = ROOT / "build/libhipress_cuda.so"
SETS = 3
DENSE = ["bf16", "fp16", "onebit", "1bit", "2bit", "tbq", "terngrad", "maxmin", "natural"]
SPARSE = ["dgc", "graddrop", "topk", "randomk"]


def traffic(function: Function, params: dict) -> float:
    """Return the bytes per element that the passes over whole gradients read and write."""
    total = 0.0
    for node in function.body:
        if not isinstance(node, Loop) or node.domain.op != "n" or node.guard is not None:
            continue
        for ops in (("load", "load_at"), ("store",)):
            for name in {i.vec[0] for i in node.body if i.op in ops}:
                bits = function.vectors[name].bits
                total += (bits if isinstance(bits, int) else params[bits]) / 8
    return total


class Bench:
    """Buffers of one library, and the times of calls.

    Args:
        elements: Elements of each gradient.
        repeat: Number of runs of which the median is taken.
    """

    def __init__(self, library: Library, elements: int, repeat: int) -> None:
        self.library, self.elements, self.repeat = library, elements, repeat
        self.owned: list[int] = []
        normal = np.random.default_rng(0).normal(0, 1, elements).astype(np.float32)
        self.gradients = [self.room(4 * elements, np.roll(normal, 7 * k)) for k in range(SETS)]

    def algorithm(self, name: str) -> Algorithm:
        program = compiler.compile_file(compiler.SPECS / f"{name}.cll")
        return Algorithm(program, LIBRARY, entry=f"hipress_compll_cuda_{program.identifier}")

    def room(self, size: int, values: np.ndarray | None = None) -> int:
        at = self.library.alloc(size)
        self.owned.append(at)
        if values is not None:
            self.library.copy(at, values.ctypes.data, values.nbytes)
        return at

    def free(self, keep: int) -> None:
        while len(self.owned) > keep:
            self.library.free(self.owned.pop())

    def seconds(self, work: Callable[[int], None]) -> float:
        """Return the seconds of one call of work(k): the median over runs of SETS calls."""
        times = []
        for run in range(self.repeat + 2):
            self.wait()
            begin = time.perf_counter()
            for k in range(SETS):
                work(k)
            self.wait()
            if run >= 2:
                times.append((time.perf_counter() - begin) / SETS)
        return statistics.median(times)

    def wait(self) -> None:
        self.library.check(self.library.handle.hipress_cuda_wait(None), "waiting")

    def copy_bandwidth(self) -> float:
        """Return the bytes per second that a device-to-device copy reads and writes."""
        size, keep = 4 * self.elements, len(self.owned)
        targets = [self.room(size) for _ in range(SETS)]
        copy = self.library.handle.hipress_cuda_copy
        seconds = self.seconds(lambda k: copy(targets[k], self.gradients[k], size, None))
        self.free(keep)
        return 2 * size / seconds

    def codec(self, name: str, bandwidth: float) -> dict:
        """Return GB/s of gradient and share of the bandwidth, of encode, decode and decode-add."""
        algorithm = self.algorithm(name)
        program = algorithm.program
        n, keep = self.elements, len(self.owned)
        most = algorithm.max_bytes(n)
        encodes, decodes = [], []
        for k in range(SETS):
            states = [self.room(4 * n, np.zeros(n, np.float32)) for _ in program.states]
            payload, size, status = self.room(most), self.room(8), self.room(16)
            work = self.room(max(algorithm.encode_workspace(n), algorithm.decode_workspace(n)))
            encodes.append(
                algorithm.encode_call(self.gradients[k], n, states, payload, most, size, work)
            )
            decodes.append(DecodeCall(payload, size, most, n, self.room(4 * n), status, work))
        row = {"codec": name}
        runs = {
            "encode": (program.encode, lambda k: algorithm.encode(encodes[k])),
            "decode": (program.decode, lambda k: algorithm.decode(decodes[k])),
            "decode-add": (program.decode, lambda k: algorithm.decode(decodes[k], add=True)),
        }
        for what, (function, run) in runs.items():
            before = self.library.launches
            run(0)
            row[f"{what} launches"] = self.library.launches - before
            seconds = self.seconds(run)
            moved = traffic(function, algorithm.params) + (4 if what == "decode-add" else 0)
            row[what] = 4e-9 * n / seconds
            row[f"{what} share"] = moved * n / seconds / bandwidth
        status = np.zeros(2, np.int64)
        self.library.copy(status.ctypes.data, decodes[0].status, 16)
        if status[0]:
            sys.exit(f"{name}: the payload {algorithm.sentence(status)}")
        self.free(keep)
        return row

    def batch(self, name: str = "dgc", count: int = 200) -> dict:
        """Measure `count` small gradients, one by one and in one call."""
        algorithm = self.algorithm(name)
        calls = []
        for n in np.random.default_rng(1).integers(64, 16384, count):
            n = int(n)
            states = [self.room(4 * n, np.zeros(n, np.float32)) for _ in algorithm.program.states]
            most = algorithm.max_bytes(n)
            calls.append(
                algorithm.encode_call(
                    self.gradients[0],
                    n,
                    states,
                    self.room(most),
                    most,
                    self.room(8),
                    self.room(algorithm.encode_workspace(n)),
                )
            )
        listed = np.frombuffer((EncodeCall * count)(*calls), np.uint8)
        at = self.room(listed.nbytes, listed)
        single = self.seconds(lambda k: [algorithm.encode(call) for call in calls])
        before = self.library.launches
        algorithm.encode_batch(at, count)
        launches = self.library.launches - before
        together = self.seconds(lambda k: algorithm.encode_batch(at, count))
        return {
            "codec": name,
            "gradients": count,
            "one by one ms": 1e3 * single,
            "batch ms": 1e3 * together,
            "batch launches": launches,
        }


def topk_seconds(elements: int, repeat: int, ratio: float = 0.001) -> float | None:
    """Return the seconds of torch.topk on a gradient's magnitudes; None if torch sees no GPU."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    x = torch.randn(elements, device="cuda")
    times = []
    for _ in range(repeat + 2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        _, at = torch.topk(x.abs(), int(np.ceil(ratio * elements)))
        x[at]
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:])


def gpu_name() -> str:
    """Return the name of the first GPU, or an empty string if nvidia-smi reports none."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def main(elements: int = 1 << 26, repeat: int = 20, quick: Quick = False) -> None:
    if quick:
        elements, repeat = 1 << 20, 2
    if not LIBRARY.exists():
        sys.exit("there is no build/libhipress_cuda.so: build it where nvcc is (cmake/cuda.cmake)")
    record = Record("cuda", locals())
    try:
        bench = Bench(Library(LIBRARY), elements, repeat)
    except CudaError as error:
        sys.exit(str(error))
    record["gpu"] = gpu_name()
    bandwidth = record["copy"] = bench.copy_bandwidth()
    rows = record["rows"] = [bench.codec(name, bandwidth) for name in DENSE + SPARSE]
    columns = ("encode", "decode", "decode-add")
    cells = [
        [
            row["codec"],
            *(f"{row[c]:.0f} ({row[f'{c} share']:.0%})" for c in columns),
            "/".join(str(row[f"{c} launches"]) for c in columns),
        ]
        for row in rows
    ]
    title = f"GB/s of gradient (share of the copy's {bandwidth / 1e9:.0f} GB/s read and written)"
    record.table(["codec", *columns, "kernels"], cells, title)
    batch = record["batch"] = bench.batch()
    console.print(
        "{gradients} small gradients with {codec}: {one by one ms:.2f} ms one by one, "
        "{batch ms:.2f} ms in a batch of {batch launches} kernel(s)".format(**batch)
    )
    bench.free(0)
    peer = topk_seconds(elements, repeat)
    if peer is None:
        console.print("torch.topk was not measured: there is no torch that sees this GPU")
    else:
        dgc = next(row for row in rows if row["codec"] == "dgc")
        ratio = record["dgc over torch.topk"] = peer / (4e-9 * elements / dgc["encode"])
        console.print(f"dgc encodes {ratio:.1f} times as fast as torch.topk chooses")
    record.save()
