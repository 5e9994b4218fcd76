"""One rank of a torch.distributed job on Gloo, which times the all-reduce of one array.

Steps are timed alone, as in kvstore/node.py, and in a row, as in graphs/node.py. ``cast`` includes
the casts from and to float32 gradients.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from benchmarks.common.timing import options, report, time_blocks


def main() -> None:
    args = options(dtype="float32", cast=False, warmup=3, iterations=10, blocks=0, in_a_row=10)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    gradient = torch.randn(args.elements)
    wire = gradient.to(getattr(torch, args.dtype))
    first = gradient.clone()

    def reset() -> None:  # repeated sums would end in infinity
        gradient.copy_(first)
        wire.copy_(first)

    def step() -> None:
        if args.cast:
            wire.copy_(gradient)
        dist.all_reduce(wire)
        if args.cast:
            gradient.copy_(wire)

    time_blocks(step, dist.barrier, args.warmup, 1, reset)
    report(
        rank=rank,
        seconds=time_blocks(step, dist.barrier, args.iterations, 1, reset),
        in_a_row=time_blocks(step, dist.barrier, args.blocks, args.in_a_row, reset),
        wrong=0,
        stats={},
    )
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # Gloo's threads may outlive the group; the result is printed


if __name__ == "__main__":
    main()
