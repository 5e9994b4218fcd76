"""DiLoCo with Keras: in fit and in a loop, against a reference in NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.cluster import run_cluster, worker_outputs
from harness.marks import needs_tensorflow
from scripts import SCRIPTS

# Importing TensorFlow and Keras takes each worker some seconds of processor time.
pytestmark = [needs_tensorflow, pytest.mark.timeout(300)]


def run(
    script: Path, servers: int = 0, topology: str = "auto", args: Sequence[str] = ()
) -> list[str]:
    return worker_outputs(
        run_cluster(
            script,
            2,
            servers,
            timeout=240,
            args=args,
            env={
                "TF_CPP_MIN_LOG_LEVEL": "2",
                "HIPRESS_TOPOLOGY": topology,
                "HIPRESS_START_TIMEOUT": "200",
            },
        )
    )


def digests(outputs: list[str]) -> list[str]:
    """Return the digests that all workers printed alike."""
    found = [re.findall(r"^digest (\w+)", output, re.MULTILINE) for output in outputs]
    assert found[0] and all(each == found[0] for each in found), outputs
    return found[0]


def test_fit_has_the_weights_of_a_reference_and_takes_a_nan_back():
    """Keras's fit with DiLoCo has the weights of a reference, and rolls back a NaN.

    Cost: Two workers import TensorFlow and trace several models.
    """
    outputs = run(SCRIPTS / "tensorflow_diloco" / "fit.py")
    digests(outputs)


@pytest.mark.slow
def test_a_loop_has_the_bits_of_a_reference_and_of_a_job_that_goes_on(tmp_path):
    """A training loop with DiLoCo has the bits of a reference, also when it continues from files.

    Cost: Two jobs follow each other, and their workers import TensorFlow.
    """
    script = SCRIPTS / "tensorflow_diloco" / "loop.py"
    found = run(script, 1, "ps", [str(tmp_path), "0"]) + run(script, 1, "ps", [str(tmp_path), "10"])
    assert len(digests(found)) == 1
    names = ["states.diloco-0", "states.diloco-1", "states.worker-0", "states.worker-1"]
    assert sorted(path.name for path in tmp_path.glob("states*")) == names
