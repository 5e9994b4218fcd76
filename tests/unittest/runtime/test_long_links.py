"""Transport over wide-area networks: sums are right, and bulk data does not delay heartbeats."""

from __future__ import annotations

import sys

import pytest

from harness import wan
from harness.cluster import run_cluster, worker_outputs
from scripts import SCRIPTS

pytestmark = pytest.mark.skipif(bool(wan.unavailable()), reason=wan.unavailable() or "can run")

SUMS = SCRIPTS / "long_links.py"


def sums(description: str, size: int, steps: int, **env: str) -> list[str]:
    """Sum an array over TLS with two workers, each on a separate node."""
    with wan.WideAreaNetwork(2, description) as network:
        results = run_cluster(
            SUMS,
            workers=2,
            servers=0,
            network=network,
            timeout=100,
            args=[str(size), str(steps)],
            server_command=[
                sys.executable,
                "-c",
                "from hipress.runtime.node import Node; Node().serve()",
            ],
            env={"HIPRESS_TOPOLOGY": "colocated", **env},
            node_of=lambda role, rank: rank,
        )
    return [output.strip() for output in worker_outputs(results)]


def test_sums_over_a_long_link_that_loses_packets_are_right():
    # Long enough for several sockets, whose stripes arrive in another order than they left.
    assert sums("rate=200mbit,delay=20ms,loss=1%", 1 << 20, 2) == ["right", "right"]


@pytest.mark.slow
def test_heartbeats_are_not_starved_by_bulk_data():
    # 12 MiB at 20 Mbit/s keep the link full for longer than the silence that is death.
    """Bulk data does not delay heartbeats: no rank is reported while the link is full.

    Cost: 12 MiB fill a link of 20 Mbit/s for 5 s, longer than the heartbeat timeout of 4 s.
    """
    times = {"HIPRESS_HEARTBEAT_INTERVAL_MS": "200", "HIPRESS_HEARTBEAT_TIMEOUT_MS": "4000"}
    assert sums("rate=20mbit,delay=20ms", 3 << 20, 1, **times) == ["right", "right"]
