"""Type "auto" in elastic jobs: one choice for all, which outlives its members."""

from __future__ import annotations

import signal
import sys

import pytest

from elastic_choice import WAYS, check_that_the_choice_stays, lines
from harness import netns
from harness.elastic import ElasticJob
from harness.processes import wait_until
from harness.torch_ranks import returned, run_ranks

PROGRAM = """
import os
import sys
import time

import torch

import hipress.torch.elastic as elastic
from hipress.torch.elastic.session import Session
from hipress.torch.autotune import frontend, synchronizer
from hipress.autotune import outer_steps

MS = {"uncompressed": 900.0, "lossless": 800.0, "bf16": 500.0, "maxmin bits=8": 300.0,
      "maxmin bits=4": 3.0, "maxminef bits=4": 20.0}
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
model = torch.nn.Sequential(
    torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))
more = {}
if kind == "rounds":
    optimizer = torch.optim.AdamW(model.parameters(), 0.001)
    outer = torch.optim.SGD(model.parameters(), 0.7, momentum=0.9, nesterov=True)
    more = {"sync_every": 5, "outer_optimizer": outer}
else:
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
state = elastic.State(
    model, optimizer, "auto", min_size=256, check_every=1, timeout=60, **more)


known_choice = Session.known_choice


def interrupted(self, ranks):
    epoch = self.view.epoch
    if epoch != 2 or "INTERRUPTED" not in os.environ:
        return known_choice(self, ranks)
    self._agent.request_change("a test", epoch)
    while True:
        self.check()
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
"""


@pytest.fixture
def job(tmp_path):
    """Starts a job of the program above."""
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    jobs = []

    def start(kind, workers=3, steps=1_000_000, **options):
        jobs.append(ElasticJob([sys.executable, str(script), kind, str(steps)], workers, **options))
        return jobs[-1]

    yield start
    for each in jobs:
        each.close()


KINDS = ["gradients", "rounds"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_who_is_left_and_who_joins_go_on_with_the_choice(job, kind):
    check_that_the_choice_stays(job(kind), WAYS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_that_ends_while_the_choice_is_handed_over(job, kind):
    with job(kind, steps=40, env={"INTERRUPTED": "1"}) as running:
        running.wait(150, succeed=True)
        for slot in range(3):
            epochs = {e["epoch"] for e in running.journal(slot) if e["event"] == "step"}
            assert min(epochs) == 1 and max(epochs) >= 3, epochs


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("kind", KINDS)
def test_a_death_while_they_measure(job, kind, number):
    with job(kind, env={"VICTIM": "2", "SIGNAL": str(int(number))}) as running:
        wait_until(lambda: min(running.step(0), running.step(1)) >= 30, 90, "30 steps of two")
        for slot in (0, 1):
            assert lines(running, slot)[-1][2] == WAYS[kind], lines(running, slot)


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_slow_link_all_have_one_codec(job, kind):
    with (
        netns.ShapedNetwork(3, rate="10mbit", burst="32kb", verify=False) as network,
        job(kind, env={"WIDTH": "4000"}, network=network) as running,
    ):
        wait_until(lambda: running.step(1) >= 12, 120, "12 steps")
        running.kill(1)
        reached = running.step(0)
        wait_until(lambda: running.step(2) >= reached + 12, 90, "12 steps more")
        types = [lines(running, slot)[-1][2] for slot in (0, 2)]
        assert types[0] == types[1] != "none", types


def replaced(rank):
    """A codec is replaced in a step that is put back: its residual goes with the next try."""
    from dataclasses import replace

    from hipress.torch.elastic.carried import Carried
    from test_torch_transaction import Training

    def trained():
        training = Training(rank, "maxminef", params={"bits": 3})
        for step in range(3):
            training.step(step)
        return training, training.synchronizer

    def take(synchronizer):
        settings = replace(synchronizer.settings, type="maxmin", params={"bits": 8})
        synchronizer.replace_codec(settings)

    training, synchronizer = trained()
    take(synchronizer)
    wanted = training.step(3)
    training, synchronizer = trained()
    before = Carried.norm(synchronizer)
    synchronizer.begin_transaction()
    take(synchronizer)
    training.step(7)
    assert Carried.norm(synchronizer) < before / 2  # it was sent
    synchronizer.roll_back()
    assert Carried.norm(synchronizer) > before / 2
    synchronizer.begin_transaction()
    assert training.step(3) == wanted
    return before > 0


@pytest.mark.slow
def test_a_codec_that_is_replaced_in_a_step_that_fails_loses_nothing():
    assert all(returned(run_ranks(replaced, 3)))
