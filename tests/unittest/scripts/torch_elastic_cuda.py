"""Elastic training on a GPU; arguments: steps, and steps, rounds or 'delayed rounds'."""

import sys
import time

import torch

import hipress.torch.elastic as elastic

steps, kind = int(sys.argv[1]), sys.argv[2]
rounds = kind != "steps"
torch.seed()  # others' weights are copied
model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 4))
model.cuda()
optimizer = torch.optim.AdamW(model.parameters(), 0.01)
more = (
    {
        "sync_every": 4,
        "outer_optimizer": torch.optim.SGD(model.parameters(), 0.7, momentum=0.9, nesterov=True),
        "fragment_sync_delay": 2 if kind == "delayed rounds" else 0,
    }
    if rounds
    else {}
)
compression = {"type": "maxmin", "bits": 8} if rounds else "onebit"
state = elastic.State(
    model, optimizer, compression, min_size=256, check_every=1, timeout=60, **more
)


@elastic.run
def train(state):
    while state.step < steps:
        generator = torch.Generator().manual_seed(state.step)
        inputs = torch.randn(48, 64, generator=generator).cuda()[state.rank :: state.size]
        state.optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), inputs[:, :4] * 2).backward()
        state.optimizer.step()
        state.commit()
        time.sleep(0.01)


train(state)
inputs = torch.eye(64).cuda()
loss = torch.nn.functional.mse_loss(model(inputs), inputs[:, :4]).item()
weights = sum(p.double().abs().sum().item() for p in model.parameters())
print(f"loss {loss:.6f}, weights {weights:.6f}")
