"""DiLoCo with MXNet: every worker has the weights of a reference in NumPy after each outer step."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.cluster import run_cluster, worker_outputs
from scripts import SCRIPTS

pytest.importorskip("mxnet", reason="MXNet is not installed")


COMPARED = SCRIPTS / "mxnet_diloco" / "compared.py"


H = 4


def run(
    script: Path, options: dict, workers: int = 2, servers: int = 0, args: tuple = ()
) -> list[str]:
    return worker_outputs(
        run_cluster(
            script,
            workers,
            servers,
            timeout=120,
            args=[json.dumps(options), *args],
            env={"OMP_NUM_THREADS": "1"},
        )
    )


def same(outputs: list[str], count: int) -> None:
    """Check that all workers printed the same digests."""
    found = [re.findall(r"^digest (\w+)", output, re.MULTILINE) for output in outputs]
    assert len(found[0]) == count and all(each == found[0] for each in found), outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "servers", "topology", "type_", "more"),
    [
        (2, 0, "ring", "none", {}),
        (3, 0, "colocated", "sparseloco", {}),
        (
            2,
            1,
            "ps",
            "onebit",
            {"fragments": 2, "fragment_sync_delay": 3, "fragment_update_alpha": 0.25},
        ),
        (2, 0, "colocated", "onebit", {"early_steps": 5, "early_sync_every": 2}),
    ],
    ids=["uncompressed", "sparseloco", "onebit, servers, two fragments, delayed", "early steps"],
)
def test_weights_after_each_round_are_those_of_a_reference(workers, servers, topology, type_, more):
    compression = {"type": type_, "topology": topology, "min_size": 1024}
    options = {"compression_params": compression, **more}
    if type_ != "none":  # MXNet's SGD of length 1 rounds as NumPy does, its "nag" does not
        options |= {"outer_optimizer": "sgd", "outer_optimizer_params": {"learning_rate": 1.0}}
    same(run(COMPARED, options, workers, servers), 2 if "early_steps" in more else 3)


@pytest.mark.slow
def test_a_job_goes_on_from_its_files_bit_for_bit(tmp_path):
    options = {
        "compression_params": {"type": "sparseloco", "min_size": 64},
        "fragments": 2,
        "fragment_sync_delay": 1,
        "fragment_update_alpha": 0.5,
    }
    script = SCRIPTS / "mxnet_diloco" / "resumed.py"
    found = [run(script, options, args=(str(tmp_path), str(first))) for first in (0, 2 * H + 2)]
    same([*found[0], *found[1]], 1)
    names = ["states.diloco-0", "states.diloco-1", "states.worker-0", "states.worker-1"]
    assert sorted(path.name for path in tmp_path.glob("states*")) == names


def test_a_nan_takes_all_back_and_what_is_wrong_is_said():
    run(SCRIPTS / "mxnet_diloco" / "refused.py", {})
