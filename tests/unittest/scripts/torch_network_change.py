"""Trains DDP with type auto; the link becomes slow when file "slow" exists."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(350, 350))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
compression = hipress.torch.compress(model, optimizer=optimizer)
settled, said = 0, None
for step in range(10000):
    torch.manual_seed(10 * step + dist.get_rank())
    model.zero_grad()
    model(torch.randn(4, 350)).square().mean().backward()
    optimizer.step()
    settled += compression.is_settled
    print("step", step, "settled for", settled, flush=True)
    if said is None and os.path.exists("slow"):
        said = compression.explain().sentence
    if said not in (None, compression.explain().sentence):
        print("changed in", step, compression.settings.type, compression.explain(), flush=True)
        break
dist.barrier()
