"""Trains an elastic job of PyTorch; the gradients go uncompressed over HiPress's connections."""

import torch

import hipress.torch.elastic as elastic
from wire_jobs import VALUE
from wire_jobs.pause import pause

torch.set_num_threads(1)
model = torch.nn.Linear(64, 64, bias=False)
optimizer = torch.optim.SGD(model.parameters(), 0.0)
state = elastic.State(model, optimizer, "onebit", min_size=1 << 30, timeout=60)


@elastic.run
def train(state):
    while state.step < 3:
        state.optimizer.zero_grad()
        (model(torch.eye(64)).sum() * VALUE).backward()
        state.optimizer.step()
        state.commit()
    pause()


train(state)
