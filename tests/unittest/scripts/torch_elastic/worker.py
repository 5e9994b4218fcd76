"""Trains to a step; arguments: steps, codec, and 'seeded'.

DIES: slots whose first processes are killed, and the step after which ("1@20 3@30").
"""

import os
import signal
import sys
import time

import torch

import hipress.torch.elastic as elastic

slot, dies = os.environ.get("HIPRESS_ELASTIC_SLOT"), None
if os.environ.get("HIPRESS_ELASTIC_RESTART") == "0":
    dies = dict(each.split("@") for each in os.environ.get("DIES", "").split()).get(slot)
steps, compression = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
torch.seed()  # others' weights are copied
model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 4))
if len(sys.argv) > 3:
    torch.manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0, 0.1)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.9)
state = elastic.State(
    model, optimizer, compression, min_size=256, check_every=1, timeout=60, scheduler=scheduler
)


@elastic.run
def train(state):
    while state.step < steps:
        if state.step == 20 and slot == os.environ.get("FAILS"):
            raise RuntimeError("it cannot go on")
        generator = torch.Generator().manual_seed(state.step)
        inputs = torch.randn(48, 64, generator=generator)
        targets = inputs[:, :4] * 2
        mine = slice(state.rank, None, state.size)
        state.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine])
        loss.backward()
        if str(state.step) == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        state.optimizer.step()
        scheduler.step()
        state.commit(loss=loss.item())
        time.sleep(0.01)


train(state)
loss = torch.nn.functional.mse_loss(model(torch.eye(64)), torch.eye(64)[:, :4] * 2).item()
weights = sum(p.double().abs().sum().item() for p in model.parameters())
rate = scheduler.get_last_lr()[0]
print(f"loss {loss:.6f}, weights {weights:.6f}, rate {rate:.6f}, size {state.size}")
