"""Rank 1 forks with a step of DDP in progress."""

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from common import await_worker_1, fork_all, go_on

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(200, 200))
compression = hipress.torch.compress(model, "onebit", min_size=1)


def step():
    model(torch.ones(2, 200)).sum().backward()


step()
step()
if dist.get_rank() == 0:
    await_worker_1()
    step()
else:
    import threading

    last = threading.Thread(target=step)  # waits for rank 0
    last.start()
    time.sleep(0.5)
    fork_all()
    loader = torch.utils.data.DataLoader(
        range(8), num_workers=2, multiprocessing_context="fork", timeout=20
    )
    print("loader:", "ends" if len(list(loader)) == 8 else "lacks data", flush=True)
    go_on.touch()
    last.join()
print("result 2.0", flush=True)
dist.destroy_process_group()
