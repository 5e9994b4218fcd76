"""Rank 0 makes one step of DDP less than rank 1, which waits for it."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from common import await_failure, interrupt

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(200, 200))
compression = hipress.torch.compress(model, "onebit", min_size=1)


def step():
    model(torch.ones(2, 200)).sum().backward()


step()
step()  # DDP itself communicates before its second step
if rank == 0:
    await_failure(compression.engine.member.failure)
else:
    interrupt(step)
