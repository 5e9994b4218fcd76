"""Small gradients in shared messages: the same bits as alone, and no worker waits for another."""

from __future__ import annotations

import signal
import sys

import pytest

from harness.cluster import Cluster, run_cluster, worker_outputs
from scripts import SCRIPTS

SAME_BITS = SCRIPTS / "fused" / "same_bits.py"


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ps", "colocated", "ring", "tree", "butterfly"])
def test_together_and_apart_give_the_same_bits(topology):
    results = run_cluster(
        SAME_BITS,
        workers=3,
        servers=2 if topology == "ps" else 0,
        env={"HIPRESS_TOPOLOGY": topology},
        timeout=90,
    )
    for output in worker_outputs(results):
        together, separate = map(int, output.split("sent")[1].split()[:2])
        assert 2 * together <= separate, output  # how many become ready at once is the machine's


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ps", "colocated"])
def test_keys_of_a_group_do_not_wait_for_each_other(topology):
    script = SCRIPTS / "fused" / "missing_key.py"
    servers = 2 if topology == "ps" else 0
    results = run_cluster(
        script, workers=2, servers=servers, env={"HIPRESS_TOPOLOGY": topology}, timeout=60
    )
    worker_outputs(results)


def test_an_optimizer_updates_each_key_of_a_group():
    server = SCRIPTS / "fused" / "server.py"
    script = SCRIPTS / "fused" / "optimizer.py"
    command = (sys.executable, str(server))
    worker_outputs(run_cluster(script, servers=2, server_command=command, timeout=60))


def test_what_cannot_be_a_group_is_said_and_nothing_is_pushed():
    script = SCRIPTS / "fused" / "refused.py"
    results = run_cluster(
        script, workers=2, servers=0, env={"HIPRESS_TOPOLOGY": "colocated"}, timeout=60
    )
    worker_outputs(results)


def test_a_group_ends_with_the_name_of_whoever_died():
    script = SCRIPTS / "fused" / "failure.py"
    with Cluster(script, workers=3, servers=0, env={"HIPRESS_TOPOLOGY": "colocated"}) as cluster:
        for rank in range(3):
            cluster.wait_for(f"worker {rank}", "running")
        cluster.signal("worker 1", signal.SIGKILL)
        for rank in (0, 2):
            cluster.wait_for(f"worker {rank}", "failed: worker 1")
