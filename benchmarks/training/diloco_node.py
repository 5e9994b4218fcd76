"""One rank of diloco.py: trains a GPT with some methods in turn, and reports seconds of a step.

Forward and backward pass of a GPU are played by sleeping, ``compute`` seconds in all, before each
block's own pass on a short text. A method is "alone" (nothing is sent), "float32" (DDP),
TYPE:NAME=VALUE,... (DDP with this compression), or "diloco TYPE:..." with DiLoCo's ``fragments``
and ``delay`` among the values.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from benchmarks.common.timing import options, report, time_blocks
from harness import ROOT

sys.path.insert(0, str(ROOT / "examples" / "torch"))

import text  # noqa: E402

from common import number  # noqa: E402

ALONE, DDP, DILOCO = "alone", "float32", "diloco "


def main() -> None:
    args = options()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for method in args.methods:
        report(method=method, rank=dist.get_rank(), **run(method, args))
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def run(method: str, args) -> dict:
    torch.manual_seed(0)
    data = text.Text()
    model = text.make("gpt", len(data.characters), width=args.width, layers=4)
    blocks = [m for m in model.modules() if type(m).__name__ == "Block"]
    for block in blocks:  # a third of the time is the forward pass
        pause = args.compute / len(blocks) / 3
        block.register_forward_pre_hook(lambda *_, pause=pause: time.sleep(pause))
        block.register_full_backward_pre_hook(lambda *_, pause=pause: time.sleep(2 * pause))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(dist.get_rank())
    sizes = [p.numel() for p in model.parameters()]
    name, _, rest = method.removeprefix(DILOCO).partition(":")
    values = dict(item.split("=") for item in filter(None, rest.split(",")))
    values = {key: number(value) for key, value in values.items()}
    synchronising: contextlib.AbstractContextManager = contextlib.nullcontext()
    if method.startswith(DILOCO):
        outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
        fragments, delay = values.pop("fragments", 1), values.pop("delay", 0)
        synchronising = hipress.torch.DiLoCo(
            model, optimizer, outer, args.sync_every, fragments=fragments,
            fragment_sync_delay=delay, compression={"type": name, **values},
        )  # fmt: skip
    elif method != ALONE:
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        if method != DDP:
            hipress.torch.compress(model, name, **values)

    def step() -> None:
        optimizer.zero_grad()
        text.loss_of(model, data.batch(1, generator)[:, :17]).backward()
        optimizer.step()

    rounds = method.startswith(DILOCO)
    steps = args.sync_every if rounds else args.steps
    with synchronising:
        time_blocks(step, dist.barrier, 1, steps if rounds else 2)
        seconds = time_blocks(step, dist.barrier, args.blocks, steps)
    return {"seconds": seconds, "sizes": sizes}


if __name__ == "__main__":
    main()
