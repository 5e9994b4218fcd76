"""Trains DDP with type auto on a slow link and prints the choice."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch

torch.set_num_threads(1)
dist.init_process_group("gloo")


def train(model, optimizer, compression):
    for step in range(12):
        optimizer.zero_grad()
        torch.manual_seed(10 * step + dist.get_rank())
        model(torch.randn(4, 350)).square().sum().backward()
        optimizer.step()
    mine = torch.cat([p.detach().flatten() for p in model.parameters()])
    same = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(same, mine)
    print("equal", all(torch.equal(same[0], each) for each in same))
    print("type", compression.settings.type)
    print(compression.explain())


torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(350, 350))
train(model, torch.optim.Adam(model.parameters(), lr=1e-4), hipress.torch.compress(model))
torch.manual_seed(0)
model = torch.nn.Linear(350, 350)
optimizer = hipress.torch.DistributedOptimizer(
    torch.optim.Adam(model.parameters(), lr=1e-4), model.named_parameters(), "auto"
)
train(model, optimizer, optimizer.compression)
dist.barrier()
dist.destroy_process_group()
