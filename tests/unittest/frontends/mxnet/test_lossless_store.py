"""Sums of the store with the codec lossless: the bits of uncompressed sums, in fewer bytes."""

from __future__ import annotations

import sys

import pytest

from harness.cluster import run_cluster, worker_outputs
from scripts import SCRIPTS

SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")
WORKER = SCRIPTS / "lossless_store.py"


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("topology", "workers", "servers"),
    [("ps", 3, 2), ("colocated", 3, 0), ("ring", 4, 0), ("tree", 5, 0)],
)
def test_sums_are_those_of_uncompressed_gradients(topology, workers, servers):
    env = {"HIPRESS_TOPOLOGY": topology, "HIPRESS_PARTITION_ELEMENTS": "4096"}
    options = {"server_command": SERVER} if servers else {}
    results = run_cluster(WORKER, workers=workers, servers=servers, env=env, **options)
    assert all("equal" in output for output in worker_outputs(results))
