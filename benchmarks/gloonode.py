"""One rank of a torch.distributed job on Gloo: times all-reduce of one array, as kvnode.py does.

    python gloonode.py --elements 16777216 --dtype bfloat16
"""

from __future__ import annotations

import argparse
import json
import os
import time

RESULT = "@result "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument(
        "--cast", action="store_true", help="count the casts from and to float32 gradients too"
    )
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=10)
    args = parser.parse_args()

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    gradient = torch.randn(args.elements)
    wire = gradient.to(getattr(torch, args.dtype))
    seconds = []
    for _ in range(args.warmup + args.iterations):
        dist.barrier()
        start = time.perf_counter()
        if args.cast:
            wire.copy_(gradient)
        dist.all_reduce(wire)
        if args.cast:
            gradient.copy_(wire)
        seconds.append(time.perf_counter() - start)
        gradient.div_(dist.get_world_size())
        wire.copy_(gradient)
    values = {"rank": rank, "seconds": seconds[args.warmup :], "wrong": 0, "stats": {}}
    print(RESULT + json.dumps(values), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # Gloo's threads may outlive the group; the result is printed


if __name__ == "__main__":
    main()
