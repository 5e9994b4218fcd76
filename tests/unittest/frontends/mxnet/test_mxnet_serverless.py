"""MXNet jobs without servers: kvstore, Gluon Trainer, Module; the same weights everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cluster import run_cluster, worker_outputs
from scripts import SCRIPTS

pytest.importorskip("mxnet", reason="MXNet is not installed")


ASYNCHRONOUS = "import mxnet as mx, mxnet_hipress as hp; hp.install(); mx.kv.create('dist_async')"


def run(script: Path, workers: int = 3, **options) -> list[str]:
    results = run_cluster(script, workers=workers, servers=0, timeout=120, **options)
    return worker_outputs(results)


@pytest.mark.slow
def test_kvstore_calls():
    run(SCRIPTS / "mxnet_serverless" / "calls.py")


def test_async_needs_servers():
    outputs = worker_outputs(run_cluster(ASYNCHRONOUS, workers=1, servers=0, check=False))
    assert any("asynchronous training needs servers" in output for output in outputs)


TRAINING = SCRIPTS / "mxnet_serverless" / "training.py"


def digests(outputs: list[str]) -> set[str]:
    return {line for out in outputs for line in out.splitlines() if line.startswith("digest")}


@pytest.mark.slow
def test_gluon_trainer_ends_with_the_same_weights_on_every_worker():
    compression = {"type": "tbq", "threshold": 0.002, "min_size": 0, "topology": "ring"}
    outputs = run(TRAINING, args=[json.dumps(compression), "both"])
    assert len(digests(outputs)) == 2, outputs  # one a mode, the same on all workers


@pytest.mark.slow
def test_a_trainers_plan_is_checked_while_it_trains():
    compression = {"type": "tbq", "threshold": 0.002, "plan": "auto", "topology": "ring"}
    outputs = run(TRAINING, args=[json.dumps(compression), "plan"])
    assert len(digests(outputs)) == 1
    assert any("at step 12" in out for out in outputs), outputs
    assert any("at step 18, steps were tried" in out for out in outputs), outputs


@pytest.mark.slow
def test_colocated_equals_a_server_per_worker_bit_for_bit():
    outputs = []
    for servers, topology in ((0, "colocated"), (2, "ps")):
        compression = {"type": "onebit", "min_size": 0, "topology": topology}
        args = [json.dumps(compression)]
        outputs += worker_outputs(
            run_cluster(TRAINING, workers=2, servers=servers, timeout=120, args=args)
        )
    assert len(digests(outputs)) == 1


def test_optimizer_states_survive_a_restart(tmp_path):
    script = SCRIPTS / "mxnet_serverless" / "states.py"
    run(script, workers=2, args=[str(tmp_path)])


@pytest.mark.slow
def test_module_trains_without_servers():
    outputs = run(SCRIPTS / "mxnet_serverless" / "module.py")
    assert len(digests(outputs)) == 1, outputs


@pytest.mark.slow
def test_an_entropy_stage_changes_no_bit():
    found = set()
    for entropy in (False, True):
        compression = {
            "type": "tbq",
            "threshold": 0.002,
            "min_size": 0,
            "topology": "ring",
            "entropy": entropy,
        }
        found |= digests(run(TRAINING, args=[json.dumps(compression), "entropy"]))
    assert len(found) == 2
