"""Type "auto" of MXNet's stores and Gluon; test_store_choice.py has what all stores share."""

from __future__ import annotations

import re

import pytest

from harness import netns
from harness.cluster import run_cluster, worker_outputs
from scripts import SCRIPTS

pytest.importorskip("mxnet")

GLUON = SCRIPTS / "mxnet_choice" / "trainer.py"


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("optimizer", "where", "second"),
    [("sgd", "servers", "maxminef bits=2"), ("adam", "workers", "maxmin bits=8")],
)
def test_a_trainer_follows_the_network_and_knows_its_optimizer(optimizer, where, second):
    servers = int(where == "servers")
    topology = {"HIPRESS_TOPOLOGY": "ps" if servers else "ring"}
    results = run_cluster(GLUON, 2, servers, 90, args=[optimizer, where], env=topology)
    outputs = worker_outputs(results)
    for rank, output in enumerate(outputs):
        assert "auto: uncompressed, the fastest: a step's gradients take" in output, output
        assert f"> {second}" in output and "times as long as they did; from step" in output, output
        assert rank == 0 or "lines 0" in output
    bits = [re.search(r"bits (\w{64})", output)[1] for output in outputs]
    assert bits[0] == bits[1]


SLOW = SCRIPTS / "mxnet_choice" / "slow_link.py"


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_on_a_link_of_50_megabits_it_compresses():
    with netns.ShapedNetwork(3, rate="50mbit", burst="32kb", verify=False) as network:
        outputs = worker_outputs(run_cluster(SLOW, 2, 1, 90, network=network))
    for output in outputs:
        assert "auto: maxmin bits=" in output and "> maxmin bits=" in output, output
    bits = [re.search(r"bits (\w{64})", output)[1] for output in outputs]
    assert bits[0] == bits[1]
