"""Trains to the step that is the argument.

Environment variables:

- LATE: a slot and a view ("2 2") in which the worker stops for 100 s, or SECONDS, in its eighth
  step, or before step AT. HOLDS: meanwhile it holds the interpreter's lock. JOINER: it stops at
  most until a process asks to join; UNTIL_EXPELLED: until all others have continued
- TIMEOUT: timeout of the state
- DIES: a slot whose first process is killed before step 20
- SAVE: seconds to sleep after training
"""

import ctypes
import os
import signal
import sys
import time

import torch

import hipress.torch.elastic as elastic

torch.set_num_threads(1)
slot = os.environ.get("HIPRESS_ELASTIC_SLOT", os.environ.get("RANK"))
dies = os.environ.get("DIES") == slot and os.environ["HIPRESS_ELASTIC_RESTART"] == "0"
model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Linear(96, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
timeout, seconds = float(os.environ.get("TIMEOUT", 60)), int(os.environ.get("SECONDS", 100))
state = elastic.State(model, optimizer, "onebit", min_size=256, check_every=5, timeout=timeout)


def over(state):
    agent = state.session._agent
    if "JOINER" in os.environ:
        status = agent.status()
        return status["joins"] or status["epoch"] > state.epoch
    return "UNTIL_EXPELLED" in os.environ and (agent.expelled or agent._thread.evicted)


def stop(state):
    if "HOLDS" in os.environ:
        return ctypes.PyDLL(None).sleep(seconds)  # PyDLL: with the interpreter's lock
    if not {"JOINER", "UNTIL_EXPELLED"} & set(os.environ):
        return time.sleep(seconds)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not over(state):
        time.sleep(0.02)


@elastic.run
def train(state):
    begin = state.step
    while state.step < int(sys.argv[1]):
        at = int(os.environ.get("AT", begin + 8)) - 1
        if os.environ.get("LATE") == f"{slot} {state.epoch}" and state.step == at:
            print("late", flush=True)
            stop(state)
        if dies and state.step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()
        time.sleep(0.01)


train(state)
print("trained to step", state.step, flush=True)
time.sleep(float(os.environ.get("SAVE", 0)))
