"""Elastic training of type auto; arguments: gradients or rounds, and steps."""

import os
import sys
import time

import torch

import hipress.torch.elastic as elastic
from hipress.autotune import outer_steps
from hipress.elastic.training.session import Session
from hipress.torch.autotune import frontend, synchronizer

MS = {
    "uncompressed": 900.0,
    "lossless": 800.0,
    "bf16": 500.0,
    "maxmin bits=8": 300.0,
    "maxmin bits=4": 3.0,
    "maxminef bits=4": 20.0,
}
kind, steps = sys.argv[1], int(sys.argv[2])
measured = [0]


def seconds_of(step):
    measured[0] += 1
    if measured[0] == 5 and os.environ["HIPRESS_ELASTIC_SLOT"] == os.environ.get("VICTIM"):
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    seconds = work(step)
    return seconds if "WIDTH" in os.environ else MS.get(step.method.name, 1000.0) / 1e3


def timer(self):
    self._controller.seconds.append(MS[self._controller.method.name] / 1e3)
    return lambda: None


def took(self, fragment, seconds):
    self._travel[fragment] = MS[self.method.name] / 1e3


work, frontend.Sample.seconds = frontend.Sample.seconds, seconds_of
if "WIDTH" not in os.environ:
    synchronizer.TunedSynchronizer.timer = timer
    outer_steps.OuterStepController.record_travel = took
outer_steps.OuterStepController._step_seconds = lambda self: 0.1
torch.set_num_threads(1)
torch.seed()
width = int(os.environ.get("WIDTH", 96))
model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))
more = {}
if kind == "rounds":
    optimizer = torch.optim.AdamW(model.parameters(), 0.001)
    outer = torch.optim.SGD(model.parameters(), 0.7, momentum=0.9, nesterov=True)
    more = {"sync_every": 5, "outer_optimizer": outer}
else:
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
state = elastic.State(model, optimizer, "auto", min_size=256, check_every=1, timeout=60, **more)


known_choice = Session.known_choice


def interrupted(self, ranks):
    epoch = self.view.epoch
    if epoch != 2 or "INTERRUPTED" not in os.environ:
        return known_choice(self, ranks)
    self._agent.request_change("a test", epoch)
    while True:
        self.members.check()
        time.sleep(0.01)


Session.known_choice = interrupted


@elastic.run
def train(state):
    while state.step < steps:
        if "INTERRUPTED" in os.environ and (state.rank, state.epoch, state.step) == (0, 1, 10):
            state.session._agent.request_change("a test", 1)
        generator = torch.Generator().manual_seed(state.step)
        inputs = torch.randn(48, 64, generator=generator)
        mine = slice(state.rank, None, state.size)
        state.optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs[mine]), inputs[mine, :4] * 2).backward()
        state.optimizer.step()
        if state.step % 10 == 0:
            said = state.session.compression
            print("step", state.step, said.settings.type, "measured", measured[0], flush=True)
        state.commit()
        time.sleep(0.01)


train(state)
