"""Trains outer steps with the settings and faults that are the argument, a Python literal.

With a further argument, broken, it fails in its first step.
"""

import os
import signal
import sys
import time

import torch

import hipress.torch.elastic as elastic
from elastic_rounds import inject
from test_torch_elastic_diloco import batch_of, parts

compression, sync_every, steps, faults, load, save, more = eval(sys.argv[1])
slot = int(os.environ["HIPRESS_ELASTIC_SLOT"])
restarted = os.environ["HIPRESS_ELASTIC_RESTART"] != "0"
torch.set_num_threads(1)
model, inner, outer, scheduler = parts(slot)  # slot 0's weights are everybody's
state = elastic.State(
    model,
    inner,
    compression,
    sync_every=sync_every,
    outer_optimizer=outer,
    min_size=64,
    check_every=1,
    timeout=60,
    scheduler=scheduler,
    **more,
)
if load and slot == 0:
    state.load_state_dict(torch.load(load, weights_only=True))

if not restarted:
    inject(faults.get(slot), state)


@elastic.run
def train(state):
    while state.step < steps:
        if faults.get(slot) == state.step and not restarted:
            os.kill(os.getpid(), signal.SIGKILL)
        inputs, targets = batch_of(slot, state.step)
        state.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        state.optimizer.step()
        if "broken" in sys.argv:
            raise OSError("no disk")
        scheduler.step()
        state.commit(loss=loss.item())
        time.sleep(0.01)


train(state)
if save and slot == 0:
    torch.save(state.state_dict(), save)
