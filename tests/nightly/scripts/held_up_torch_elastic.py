"""Trains an elastic job of PyTorch with the settings in HELD_UP, as JSON."""

import hashlib
import json
import os

import torch

import hipress.torch.elastic as elastic

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Linear(96, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
state = elastic.State(model, optimizer, "onebit", min_size=256, check_every=5, timeout=60)


@elastic.run
def train(state):
    while state.step < json.loads(os.environ["HELD_UP"])["steps"]:
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()


train(state)
found = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
print("result", state.epoch, found.hexdigest(), flush=True)
