"""One worker of an elastic PyTorch job of a few steps."""

import torch

import hipress.torch.elastic as elastic

STEPS = 200

torch.set_num_threads(1)
model = torch.nn.Linear(64, 32)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
state = elastic.State(model, optimizer, "onebit", min_size=256, timeout=30)


@elastic.run
def train(state):
    while state.step < STEPS:
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()


train(state)
