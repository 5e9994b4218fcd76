"""Trains until a file "end" appears; rank 0 looks for it, and all see it in the same step."""

import os
import time

import torch

import hipress.torch.elastic as elastic

torch.set_num_threads(1)
model = torch.nn.Linear(64, 32)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
state = elastic.State(model, optimizer, "onebit", min_size=256, timeout=60)
steps = 0


@elastic.run
def train(state):
    global steps
    print("view of", state.size, "after step", state.step, flush=True)
    while True:
        end = torch.tensor([float(state.rank == 0 and os.path.exists("end"))])
        torch.distributed.all_reduce(end)
        if end.item():
            return
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()
        steps += 1
        if steps == 5:
            print("five steps", flush=True)
        time.sleep(0.02)


train(state)
print("trained to step", state.step, "on", state.size, flush=True)
