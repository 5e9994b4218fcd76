"""Trains with DistributedDataParallel; the gradients go uncompressed over HiPress's connections."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from wire_jobs import VALUE
from wire_jobs.pause import pause

torch.set_num_threads(1)
dist.init_process_group("gloo")
print("store at port", os.environ["MASTER_PORT"], flush=True)
model = DistributedDataParallel(torch.nn.Linear(64, 64, bias=False))
hipress.torch.compress(model, "onebit", min_size=1 << 30)
for _ in range(3):
    model.zero_grad()
    (model(torch.eye(64)).sum() * VALUE).backward()
pause()
dist.barrier()
dist.destroy_process_group()
