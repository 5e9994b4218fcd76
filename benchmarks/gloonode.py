"""One rank of a torch.distributed job on Gloo: times all-reduce of one array.

Steps are timed alone, as kvnode.py does, and in a row, as graphnode.py does.

    python gloonode.py --elements 16777216 --dtype bfloat16
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from jobs import report, time_blocks  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument(
        "--cast", action="store_true", help="count the casts from and to float32 gradients too"
    )
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=10, help="steps alone")
    parser.add_argument("--blocks", type=int, default=0)
    parser.add_argument("--in-a-row", type=int, default=10, help="steps of a block")
    args = parser.parse_args()

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    gradient = torch.randn(args.elements)
    wire = gradient.to(getattr(torch, args.dtype))
    first = gradient.clone()

    def reset() -> None:  # sums of sums would end in infinity
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
