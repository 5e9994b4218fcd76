"""Trains DDP; rank 1 stops. Arguments: what is trained, and the timeout."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch

late, groups = sys.argv[1] == "late", sys.argv[1] == "groups"
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()


def trainer(group):
    net = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.Linear(300, 10))
    model = DistributedDataParallel(net, process_group=group)
    hipress.torch.compress(model, type="onebit", timeout=float(sys.argv[2]))
    return model


def step(model):
    model.zero_grad()
    model(torch.ones(8, 300)).sum().backward()


models = [trainer(dist.group.WORLD)]
if groups:
    models.append(trainer(dist.new_group([0, 1])))
for _ in range(3):
    for model in models:
        step(model)
print(f"ready {rank} {os.getpid()}", flush=True)
if late and rank == 1:
    time.sleep(100)
try:
    step(models[0])
except RuntimeError as error:
    print(f"failed: {error}", flush=True)
    sys.exit(3)
print("done", flush=True)
dist.destroy_process_group()
