"""All-reduce times in nccl-tests' table: compressed, in float32 and in bfloat16.

algbw and busbw refer to the bytes that are reduced: the row's elements in the column's type.
Compressed payloads have fewer bytes, which depend on the reduced values. So the effective bandwidth
of compressed all-reduces is that of the gradient in the row's type.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping

import torch
import torch.distributed as dist

from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings
from hipress.torch.start import start
from hipress.torch.synchronizer import Synchronizer

DTYPES = {"float": torch.float32, "half": torch.float16, "bfloat16": torch.bfloat16}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    """Return the bytes of "4", "64K", "1M" or "1G", as in nccl-tests."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isdigit() or unit not in _UNITS:
        raise ValueError(f"a size is a number and K, M or G or nothing, not {text!r}")
    return int(number) * _UNITS[unit]


def sizes(first: int, last: int, factor: int) -> Iterator[int]:
    """Return ``first``, ``first * factor``, ... up to ``last`` bytes."""
    if factor < 2 or not 0 < first <= last:
        raise ValueError(
            f"sizes go from -b up to -e by a factor -f of 2 or more, not from {first} to {last} "
            f"by {factor}"
        )
    while first <= last:
        yield first
        first *= factor


class AllReduceBench:
    """Benchmark of all-reduces of every size on the default process group.

    Gradients of ``dtype`` are compressed. ``warmup`` all-reduces come before the timed ones.
    """

    def __init__(self, settings: Settings, dtype: str, iterations: int, warmup: int) -> None:
        if dtype not in DTYPES:
            raise ValueError(f"-d must be one of {', '.join(DTYPES)}, not {dtype!r}")
        if iterations < 1 or warmup < 0:
            raise ValueError(f"-n must be 1 or more and -w 0 or more, not {iterations}, {warmup}")
        self._settings, self._name, self._dtype = settings, dtype, DTYPES[dtype]
        self._iterations, self._warmup = iterations, warmup
        _, self._engine = start(lambda: settings, dist.group.WORLD)

    def table(self, wanted: Iterator[int]) -> Iterator[str]:
        """Yield the table's lines when they are measured. All ranks must consume it."""
        title = f"{self._settings.type}, {self._settings.topology}"
        yield f"# {dist.get_world_size()} ranks, {self._settings.config}"
        yield f"#{'float32':>66}{'bfloat16':>25}{title:>26}"
        head = f"# {'size':>10} {'count':>11} {'type':>8} {'redop':>5}"
        head += " " + " ".join(f"{name:>8}" for name in ("time", "algbw", "busbw"))
        head += " " + " ".join(f"{name:>7}" for name in ("time", "algbw", "busbw"))
        yield head + " " + " ".join(f"{n:>8}" for n in ("time", "effbw", "error"))
        units = f"# {'(B)':>10} {'(elements)':>11}" + " " * 15
        yield units + 2 * f" {'(us)':>8}   (GB/s)  (GB/s)" + f" {'(us)':>8}   (GB/s)"
        for size in wanted:
            count = size // self._dtype.itemsize
            if count:
                yield self._row(size, count)

    def _row(self, size: int, count: int) -> str:
        generator = torch.Generator().manual_seed(dist.get_rank())
        gradient = torch.randn(count, generator=generator).to(self._dtype)
        columns, ranks = [], dist.get_world_size()
        for dtype in (torch.float32, torch.bfloat16):
            wire = torch.zeros(count, dtype=dtype)
            seconds = self._time(lambda w=wire: dist.all_reduce(w))
            bandwidth = wire.nbytes / seconds / 1e9
            bus = bandwidth * 2 * (ranks - 1) / ranks  # what each rank's link carries
            columns.append(f"{seconds * 1e6:>8.1f} {bandwidth:>7.3f} {bus:>7.3f}")
        exact = gradient.to(torch.float32, copy=True)
        dist.all_reduce(exact)
        exact /= ranks
        synchronizer = Synchronizer(self._settings, self._engine, dist.group.WORLD, ())
        result, gradients = gradient.clone(), [Gradient(f"{count}", 0, count)]

        def compressed() -> None:  # in place; means, because sums would grow
            synchronizer.synchronize(result, gradients, "all-reduce").wait()

        compressed()
        error = (result.float() - exact).abs().max() / exact.abs().max()
        seconds = self._time(compressed)
        columns.append(f"{seconds * 1e6:>8.1f} {size / seconds / 1e9:>7.3f}")
        row = f"  {size:>10} {count:>11} {self._name:>8} {'avg':>5}"
        return f"{row} {' '.join(columns)} {error:>8.1e}"

    def _time(self, run: Callable[[], object]) -> float:
        """Time one run, and return the seconds of the slowest rank."""
        for _ in range(self._warmup):
            run()
        dist.barrier()
        start = time.perf_counter()
        for _ in range(self._iterations):
            run()
        slowest = torch.tensor((time.perf_counter() - start) / self._iterations)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        return slowest.item()


def run(
    first: str,
    last: str,
    factor: int,
    dtype: str,
    iterations: int,
    warmup: int,
    type: str,
    params: Mapping[str, object],
    topology: str,
    write: Callable[[str], object] = print,
) -> None:
    """Run ``hipress bench allreduce`` as a rank of a job that torchrun started."""
    wanted = list(sizes(parse_size(first), parse_size(last), factor))
    settings = Settings(type, params, topology, min_size=0)
    settings.refuse_auto()
    settings.refuse_low_rank("this benchmark")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if "RANK" not in os.environ:
        raise ValueError(
            "this runs under torchrun: torchrun --nproc-per-node=4 -m hipress bench allreduce"
        )
    dist.init_process_group("gloo")
    for line in AllReduceBench(settings, dtype, iterations, warmup).table(iter(wanted)):
        if dist.get_rank() == 0:
            write(line)
    dist.destroy_process_group()
