"""A worker that copies a large state over a slow link is waited for, however long that takes."""

import sys

import pytest

from harness.elastic import ElasticJob
from harness.marks import needs_namespaces
from harness.netns import ShapedNetwork
from harness.processes import wait_until

pytest.importorskip("torch")

#: The copy takes longer than the timeout, a part of it does not.
PROGRAM = """
import torch

import hipress.torch.elastic as elastic

torch.set_num_threads(1)
model = torch.nn.Linear(64, 32)
model.register_buffer("table", torch.ones(12 << 20))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
state = elastic.State(model, optimizer, "onebit", min_size=256, check_every=100_000, timeout=5)


@elastic.run
def train(state):
    while state.step < 100_000:
        state.optimizer.zero_grad()
        model(torch.ones(8, 64)).square().mean().backward()
        state.optimizer.step()
        state.commit()


train(state)
"""


@needs_namespaces
def test_a_copy_that_takes_longer_than_the_timeout(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    with ShapedNetwork(3, rate="50mbit") as network, ElasticJob(
        [sys.executable, str(script)], 3, network=network
    ) as job:  # fmt: skip
        wait_until(lambda: job.step(2) > 0, 90, "steps")
        begin = {e["event"]: e["time"] for e in job.journal(2) if e["event"] in ("view", "start")}
        assert begin["view"] - begin["start"] > 10
        views = [e["epoch"] for e in job.journal(0) if e["event"] == "view"]
        assert views == [1], job.report()
