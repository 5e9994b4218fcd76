"""Trains with a state whose copy takes longer than its timeout; a part of it does not."""

import torch

import hipress.torch.elastic as elastic

torch.set_num_threads(1)
model = torch.nn.Linear(64, 32)
model.register_buffer("table", torch.ones(6 << 20))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
state = elastic.State(model, optimizer, "onebit", min_size=256, check_every=100_000, timeout=3)


@elastic.run
def train(state):
    while state.step < 100_000:
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()


train(state)
