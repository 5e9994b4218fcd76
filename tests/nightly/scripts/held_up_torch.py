"""Trains PyTorch with the settings in HELD_UP, as JSON."""

import datetime
import hashlib
import json
import os

import torch
import torch.distributed as dist

import hipress.torch

settings = json.loads(os.environ["HELD_UP"])
torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=200))
width = settings["width"]
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(settings["layers"])])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
options = dict(topology=settings["topology"], min_size=settings["min_size"], **settings["more"])
if settings["front"] == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    hipress.torch.compress(model, settings["type"], **options)
else:
    optimizer = hipress.torch.DistributedOptimizer(
        optimizer, model.named_parameters(), settings["type"], **options
    )
torch.manual_seed(dist.get_rank())
for _step in range(settings["steps"]):
    optimizer.zero_grad()
    model(torch.randn(4, width)).square().mean().backward()
    optimizer.step()
found = hashlib.sha256()
for p in model.parameters():
    found.update(p.detach().numpy().tobytes())
print("result", found.hexdigest(), flush=True)
dist.destroy_process_group()
