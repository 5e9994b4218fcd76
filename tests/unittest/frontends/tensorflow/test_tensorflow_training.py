"""hipress.tensorflow: jobs of several workers, in eager mode, in tf.function and in Keras's fit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness import ROOT
from harness.cluster import Cluster, run_cluster, worker_outputs
from harness.launch import run
from harness.marks import needs_tensorflow
from harness.processes import base_environment
from scripts import SCRIPTS

# Importing TensorFlow and Keras takes each worker some seconds of processor time.
pytestmark = [needs_tensorflow, pytest.mark.timeout(300)]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}


def job(
    script: Path, workers: int = 2, topology: str = "ps", args: Sequence[str] = ()
) -> list[str]:
    """Return the workers' outputs."""
    results = run_cluster(
        script,
        workers,
        1 if topology == "ps" else 0,
        args=args,
        timeout=240,
        env={**QUIET, "HIPRESS_TOPOLOGY": topology, "HIPRESS_START_TIMEOUT": "200"},
    )
    return worker_outputs(results)


def same_bits(outputs: list[str]) -> None:
    found = [re.findall(r"bits (\w+)", output) for output in outputs]
    assert found[0] and all(bits == found[0] for bits in found), outputs


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["ps", "ring"])
def test_uncompressed_training_is_that_of_one_process(topology):
    """Uncompressed training of two Keras workers equals training in one process.

    Cost: Two workers import TensorFlow, and each trains two models.
    """
    same_bits(job(SCRIPTS / "tensorflow_training" / "uncompressed.py", topology=topology))


@pytest.mark.slow
def test_compressed_averages_are_those_of_the_codec_with_its_residuals():
    job(SCRIPTS / "tensorflow_training" / "compressed.py")


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["ps", "tree"])
def test_broadcast_keeps_every_bit_of_every_dtype(topology):
    outputs = job(SCRIPTS / "tensorflow_training" / "broadcast.py", workers=3, topology=topology)
    same_bits(outputs)


@pytest.mark.slow
def test_kinds_of_gradients():
    job(SCRIPTS / "tensorflow_training" / "gradients.py")


@pytest.mark.slow
def test_what_workers_would_not_do_alike_is_refused_and_jobs_go_on():
    job(SCRIPTS / "tensorflow_training" / "refused.py")


@pytest.mark.slow
def test_a_job_of_one_checks_its_compression(tmp_path):
    """A job of one worker refuses wrong compression settings like a larger one.

    Cost: One process imports TensorFlow without being forked.
    """
    (tmp_path / "plan").write_text("dense/kernel,y,0\n")
    script = SCRIPTS / "tensorflow_training" / "settings.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "plan")],
        env=base_environment(QUIET),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0 and "all checked" in done.stdout, done.stdout + done.stderr


def test_a_dead_worker_is_named():
    script = SCRIPTS / "tensorflow_training" / "dead_worker.py"
    with Cluster(script, 2, 1, env=QUIET) as cluster:
        results = {result.name: result for result in cluster.wait(240)}
    assert results["worker 1"].returncode == 3
    assert results["worker 0"].returncode == 1
    assert re.search(r"HipressError: .*worker 1", results["worker 0"].output), results


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "onebit"])
def test_the_example_learns_digits(compression):
    """The TensorFlow example learns digits, compressed and uncompressed.

    Cost: The launcher's processes import TensorFlow as a user's do, and train three epochs.
    """
    pytest.importorskip("sklearn")
    script = [sys.executable, str(ROOT / "examples/tensorflow/digits.py")]
    options = ["-n", "2", "-s", "1", "--timeout", "240", "--env", "TF_CPP_MIN_LOG_LEVEL=2"]
    arguments = [*options, *script, "--compression", compression, "--epochs", "3"]
    launch = run(arguments, seconds=250.0)
    assert launch.process.returncode == 0, launch.out + launch.err
    weights = re.findall(r"worker \d: weights (\w+)", launch.out)
    assert len(weights) == 2 and len(set(weights)) == 1, launch.out
    lines = [json.loads(text) for text in re.findall(r"\{.*\}", launch.out)]
    assert len(lines) == 3 and lines[-1]["loss"] < lines[0]["loss"] / 2, lines
    assert lines[-1]["test_accuracy"] > 0.9, lines
    ratio = lines[-1]["pushed_raw_bytes"] / lines[-1]["pushed_bytes"]
    assert ratio > 10 if compression == "onebit" else 0.9 < ratio <= 1, lines


@pytest.mark.slow
def test_a_job_that_loads_its_states_goes_on_with_the_same_bits(tmp_path):
    """A Keras job that loads its states continues with the bits of an uninterrupted job.

    Cost: Three jobs of two workers follow each other, and each worker imports TensorFlow.
    """
    script = SCRIPTS / "tensorflow_training" / "states.py"

    def bits(first: int, last: int) -> str:
        outputs = job(script, args=[str(first), str(last), str(tmp_path)])
        same_bits(outputs)
        return re.findall(r"bits (\w+)", outputs[0])[0]

    whole = bits(0, 8)
    assert bits(0, 4) != whole
    assert sorted(path.name for path in tmp_path.glob("states*")) == [
        "states.worker-0",
        "states.worker-1",
    ]
    assert bits(4, 8) == whole
