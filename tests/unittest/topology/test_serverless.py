"""Jobs without servers: real processes on loopback against the NumPy reference, bit for bit."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from harness.cluster import Cluster, run_cluster, worker_outputs
from scripts import SCRIPTS
from survivors import TRAIN_UNTIL_FAILURE, check_that_survivors_name_the_dead


def run(script: Path, workers: int, topology: str, env: dict | None = None, **options) -> list[str]:
    env = {"HIPRESS_TOPOLOGY": topology, "HIPRESS_DEVICES_PER_HOST": "2", **(env or {})}
    results = run_cluster(script, workers=workers, servers=0, env=env, timeout=90, **options)
    return worker_outputs(results)


EQUALS_THE_REFERENCE = SCRIPTS / "store" / "reference_serverless.py"


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("topology", "workers"),
    [
        ("ring", 4),
        ("ring", 8),
        ("colocated", 4),
        ("colocated", 8),
        ("tree", 5),
        ("butterfly", 6),
        ("star", 3),
        ("hierarchical", 5),
    ],
)
def test_results_equal_the_numpy_reference_bit_for_bit(topology, workers):
    run(
        EQUALS_THE_REFERENCE,
        workers,
        topology,
        env={"HIPRESS_PARTITION_ELEMENTS": "640", "HIPRESS_NUM_THREADS": "2"},
    )


def test_values_without_compression():
    run(
        SCRIPTS / "store" / "values_serverless.py",
        3,
        "ring",
        env={"HIPRESS_PARTITION_ELEMENTS": "65536"},
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_float16(workers):
    run(
        SCRIPTS / "store" / "float16_serverless.py",
        workers,
        "tree",
    )


def test_compression_can_change_in_mid_training_and_nothing_is_lost():
    # Workers switch at different iterations, so a ring's hops use different codecs.
    run(
        SCRIPTS / "store" / "change_compression.py",
        3,
        "ring",
        env={"HIPRESS_PARTITION_ELEMENTS": "1024"},
    )


def test_pull_none_leaves_the_way_back_uncompressed():
    run(
        SCRIPTS / "store" / "uncompressed_pull_serverless.py",
        3,
        "colocated",
    )


def test_what_cannot_be_is_one_sentence():
    run(
        SCRIPTS / "store" / "refused_serverless.py",
        2,
        "auto",
        env={"HIPRESS_DEVICES_PER_HOST": ""},
    )


def test_a_topology_without_servers_may_leave_servers_idle():
    results = run_cluster(
        SCRIPTS / "store" / "idle_servers.py",
        workers=3,
        servers=1,
        server_command=(
            sys.executable,
            "-c",
            "from hipress.runtime.node import Node; Node().serve()",
        ),
    )
    assert len(results) == 5


def test_a_plan_decides_per_key(tmp_path):
    plan = tmp_path / "SeCoPaPlan.txt"
    plan.write_text("big,8192,y,3\nother,n,2\n")
    run(
        SCRIPTS / "store" / "plan_per_key.py",
        2,
        "ring",
        args=[str(plan)],
    )


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("topology", "victim", "number"),
    [
        ("ring", "worker 2", signal.SIGKILL),
        ("ring", "worker 0", signal.SIGSTOP),
        ("ring", "scheduler", signal.SIGKILL),
        ("colocated", "worker 0", signal.SIGKILL),
        ("tree", "worker 1", signal.SIGKILL),
    ],
)
def test_every_survivor_names_the_dead(topology, victim, number):
    env = {"HIPRESS_TOPOLOGY": topology}
    with Cluster(TRAIN_UNTIL_FAILURE, workers=4, servers=0, env=env) as cluster:
        check_that_survivors_name_the_dead(cluster, 4, victim, number)


def wait_in_vain(behavior: str, workers: int, topology: str, env: dict) -> list[str]:
    return worker_outputs(
        run_cluster(
            SCRIPTS / "store" / "worker_stops.py",
            workers=workers,
            servers=0,
            env={"HIPRESS_TOPOLOGY": topology, **env},
            args=[behavior],
            check=False,
        )
    )


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ring", "colocated", "butterfly"])
def test_a_worker_that_leaves_early_is_named_by_all(topology):
    outputs = wait_in_vain("leave", 4, topology, {})
    assert "error" not in outputs[1]
    for rank in (0, 2, 3):
        # One worker detects it and informs the other workers; its own end must not be what they
        # name.
        assert "worker 1 left the job while iteration 4 of key 'weight'" in outputs[rank], outputs


# In the ring worker 1 receives from its neighbor, so it knows that it is late; colocated, only
# other workers know.
@pytest.mark.slow
@pytest.mark.parametrize("topology", ["ring", "colocated"])
def test_a_worker_that_stops_pushing_is_named_by_all(topology):
    outputs = wait_in_vain("sleep", 4, topology, {"HIPRESS_TIMEOUT": "5"})
    for output in outputs:
        assert "waited 5 s for worker 1 to push iteration 4 of key 'weight'" in output, outputs


def test_who_leaves_in_peace_has_done_its_part_for_the_others():
    # Only worker 0 pulls the last iteration, and it does so late.
    run(
        SCRIPTS / "store" / "last_pull.py",
        4,
        "ring",
    )
