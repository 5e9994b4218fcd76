"""Trains six steps.

With argument 'die' the first process of rank or slot 1 is killed after its third.
"""

import os
import signal
import sys
import time

import torch

import hipress.torch.elastic as elastic

torch.set_num_threads(1)
model = torch.nn.Linear(64, 32)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
state = elastic.State(model, optimizer, "onebit", min_size=256, timeout=60)
slot = os.environ.get("HIPRESS_ELASTIC_SLOT", os.environ.get("RANK"))
first = not os.path.exists("died") and slot == "1" and "die" in sys.argv


def say(text):
    os.write(1, (text + "\n").encode())  # at once: others write to the same pipe


@elastic.run
def train(state):
    say(f"view of {state.size} after step {state.step}")
    while state.step < (10_000 if "die" in sys.argv else 6):
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()
        if first and state.step == 3:
            open("died", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        if state.size == 2 and os.path.exists("died") and state.step % 100 == 0:
            break  # all are in the same step


train(state)
say(f"trained to step {state.step} on {state.size}")
