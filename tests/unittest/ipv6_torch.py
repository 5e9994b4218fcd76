"""One rank of a PyTorch job that compresses gradients: prints its engine's traffic as JSON."""

import datetime
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch

torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
del os.environ["GLOO_SOCKET_IFNAME"]  # the engine finds its address by MASTER_ADDR alone
model = DistributedDataParallel(torch.nn.Linear(512, 512))
compression = hipress.torch.compress(model, "onebit", min_size=256)
for _ in range(3):
    model(torch.ones(8, 512)).square().mean().backward()
digest = float(sum(parameter.grad.double().abs().sum() for parameter in model.parameters()))
print(json.dumps({"digest": digest, **compression.engine.member.stats()}))
dist.barrier()
dist.destroy_process_group()
