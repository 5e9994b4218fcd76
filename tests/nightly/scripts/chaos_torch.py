"""Trains DDP with the settings in CHAOS, as JSON."""

import datetime
import json
import os
import time

import torch
import torch.distributed as dist

import hipress.torch

settings = json.loads(os.environ["CHAOS"])
width = settings["width"]


def batches():
    while settings["forks"]:  # workers of a data loader, created again while the engine runs
        data = torch.randn(64, width)
        yield from torch.utils.data.DataLoader(data, batch_size=4, num_workers=1)
    while True:
        yield torch.randn(4, width)


torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(os.environ["TIMEOUT"])))
layers = [torch.nn.Linear(width, width) for _ in range(settings["layers"])]
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(*layers), bucket_cap_mb=settings["bucket_cap_mb"]
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
print("joining", flush=True)
try:
    hipress.torch.compress(
        model,
        settings["type"],
        topology=settings["topology"],
        min_size=settings["min_size"],
        **settings["more"],
    )
    print("running", flush=True)
    for step, batch in zip(range(settings["steps"]), batches()):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if settings["nap"]:
            time.sleep(settings["nap"])
            print("step", step, flush=True)
    print("done", flush=True)
except hipress.torch.HipressError as error:
    print("failed:", str(error).splitlines()[0], flush=True)
    if settings["raises"]:
        raise
if settings["destroys"]:
    dist.destroy_process_group()
