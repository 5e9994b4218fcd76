"""Trains by DiLoCo of type auto on a slow link and prints the choice."""

import time

import torch
import torch.distributed as dist

import hipress.torch

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(350, 700), torch.nn.Linear(700, 350))
inner = torch.optim.AdamW(model.parameters(), lr=1e-4)
outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
with hipress.torch.DiLoCo(model, inner, outer, sync_every=12, compression="auto") as diloco:
    for step in range(36):
        torch.manual_seed(10 * step + dist.get_rank())
        model(torch.randn(4, 350)).square().sum().backward()
        time.sleep(0.03)
        inner.step()
        inner.zero_grad()
mine = torch.cat([w.flatten() for k, w in diloco.state_dict().items() if k[:6] == "outer/"])
same = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
dist.all_gather(same, mine)
print("equal", all(torch.equal(same[0], each) for each in same))
print("type", diloco.compression.settings, "delay", diloco._scheduler.schedule.delay)
print(diloco.compression.explain())
dist.barrier()
dist.destroy_process_group()
