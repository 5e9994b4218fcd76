"""Trains DDP by topology `end` and checks its settings."""

import torch
import torch.distributed as dist

import hipress.torch
from hipress.torch.settings import Settings

dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(100, 50, bias=False))
compression = hipress.torch.compress(model, "bf16", topology="end", min_size=0)
model(torch.full((1, 100), rank + 1.0)).sum().backward()
assert (model.module.weight.grad == 2).all()
settings = compression.settings
graph = settings.graph(5000, 3, home=0)
assert all(t.peer.rank == 2 for t in graph.tasks[next(iter(graph.tasks))] if t.peer)
assert Settings("ternary", {"momentum": 0.9}, "end").encodes_each
try:
    Settings("ternary", {"momentum": 0.9}, "ring").check_momentum()
except ValueError as error:
    assert "star, hierarchical with one device for each host or end)" in str(error), error
else:
    raise AssertionError("a ring encodes sums")
print(f"trained {rank}\n", end="", flush=True)
dist.destroy_process_group()
