"""One rank of transactions.py, which times steps of one bucket with and without transactions."""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist

from benchmarks.common.timing import options, report
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings
from hipress.torch.start import start
from hipress.torch.synchronizer import Synchronizer


def main() -> None:
    args = options(type="onebit", mebibytes=64, rounds=20, steps=5)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    count = args.mebibytes << 18
    parameters = [("weight", torch.nn.Parameter(torch.zeros(count)))]
    settings, engine = start(lambda: Settings(args.type), dist.group.WORLD, parameters)
    synchronizers = {
        mode: Synchronizer(settings, engine, dist.group.WORLD, parameters)
        for mode in ("without", "with")
    }
    gradient, first = [Gradient("weight", 0, count)], torch.randn(count)
    flat = first.clone()

    def step(mode: str) -> tuple[float, float]:
        flat.copy_(first)
        dist.barrier()
        wall, processor = time.perf_counter(), time.process_time()
        if mode == "with":
            synchronizers[mode].begin_transaction()
        synchronizers[mode].synchronize(flat, gradient, "bucket").wait()
        return time.perf_counter() - wall, time.process_time() - processor

    found = {mode: {"wall": [], "processor": []} for mode in synchronizers}
    for turn in range(-1, args.rounds):  # one for warm-up
        for mode in synchronizers:
            times = zip(*(step(mode) for _ in range(args.steps)))
            if turn >= 0:
                for what, seconds in zip(("wall", "processor"), times):
                    found[mode][what].append(sum(seconds) / args.steps)
    report(**found)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the result is printed


if __name__ == "__main__":
    main()
