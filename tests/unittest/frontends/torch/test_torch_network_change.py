"""Type "auto" on a network that changes while a model trains."""

from __future__ import annotations

import re
import sys

import pytest

from harness import netns
from harness.processes import base_environment
from harness.torch_job import TorchJob
from harness.torch_ranks import returned, run_ranks, torch
from known_times import logged
from scripts import SCRIPTS
from test_torch_ddp import loss_of, network

SLOW = {"uncompressed": 100.0, "bf16": 50.0, "maxmin bits=8": 30.0, "powersgd rank=4": 5.0}
FAST = {"uncompressed": 4.0, "bf16": 5.0, "maxmin bits=8": 6.0, "powersgd rank=4": 4.9}
SLOWEST = {"uncompressed": 900.0, "bf16": 450.0, "maxmin bits=8": 250.0, "powersgd rank=4": 12.0}
CHANGE = 50


def trained(rank, before, after, optimizer, count):
    """Train while gradients take the given milliseconds with each method (other methods 5 times the
    most), and others from step 50 on. Return the types of all steps, the messages and the sum of
    the last gradients."""

    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.autotune import trial as trials
    from hipress.torch.autotune import frontend, synchronizer

    now, lines = dict(before), logged()

    def ms(method_name):
        return now.get(method_name.name, 5 * max(now.values())) * (1 if rank else 0.8)

    frontend.Sample.seconds = lambda step: ms(step.method) / 1e3
    trials.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)

    def at_known_times(self):
        self._controller.seconds.append(ms(self._controller.method) / 1e3)
        return lambda: None

    synchronizer.TunedSynchronizer.timer = at_known_times
    ddp = DistributedDataParallel(network())
    optimizer = getattr(torch.optim, optimizer)(ddp.parameters(), lr=0.01)
    compression = hipress.torch.compress(ddp, min_size=1000, optimizer=optimizer)
    method_names = []
    for step in range(count):
        if step == CHANGE:
            now.clear()
            now.update(after)
        ddp.zero_grad()
        loss_of(ddp, rank, step).backward()
        optimizer.step()
        method_names.append(compression._controller.method.name)
    return method_names, lines, b"".join(p.grad.numpy().tobytes() for p in ddp.parameters())


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("before", "after", "optimizer", "first", "second"),
    [
        (FAST, SLOW, "SGD", "uncompressed", "powersgd rank=4"),
        (FAST, SLOW, "Adam", "uncompressed", "maxmin bits=8"),
        (SLOW, FAST, "Adam", "maxmin bits=8", "uncompressed"),
        (SLOW, SLOWEST, "SGD", "powersgd rank=4", "powersgd rank=4"),
    ],
)
def test_within_20_steps_there_is_another_choice(before, after, optimizer, first, second):
    found = returned(run_ranks(trained, 2, before, after, optimizer, CHANGE + 30))
    method_names, lines, gradients = found[0]
    assert method_names == found[1][0] and gradients == found[1][2] and not found[1][1]
    assert set(method_names[:CHANGE]) == {first} and set(method_names[CHANGE + 20 :]) == {second}
    said = [line for line in lines if "times as long as they did" in line]
    assert len(said) == 1 and f"{second}, " in said[0], lines


SCRIPT = SCRIPTS / "torch_network_change.py"


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_a_link_that_becomes_slow_gets_a_codec():
    with (
        netns.ShapedNetwork(2, rate="10gbit", burst="256kb", verify=False) as network,
        TorchJob([sys.executable, str(SCRIPT)], 2, base_environment(), network=network) as job,
    ):
        job.wait_for("rank 0", "settled for 25\n")
        network.reshape("20mbit")
        (job.path / "slow").touch()
        changed = int(re.findall(r"^step (\d+)", job.output("rank 0"), re.MULTILINE)[-1])
        outputs = [result.output for result in job.wait(90, succeed=True)]
    for output in outputs:
        step, type = re.search(r"^changed in (\d+) (\w+)", output, re.MULTILINE).groups()
        assert type == "maxmin" and int(step) <= changed + 20, output
