"""hipress.tensorflow: a NaN or Inf in one worker's gradients reaches all, and no residual."""

from __future__ import annotations

import json

import pytest

from harness.marks import needs_tensorflow
from scripts import SCRIPTS
from test_tensorflow_training import job, same_bits

pytestmark = [needs_tensorflow, pytest.mark.timeout(300)]


@pytest.mark.slow
@pytest.mark.parametrize("op, codec", [("average", "2bit"), ("sum", "tbq"), ("average", "1bit")])
def test_a_nan_or_inf_reaches_all_and_no_residual(op, codec):
    job(SCRIPTS / "tensorflow_training" / "nonfinite.py", args=[op, codec])


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "compression, topology",
    [
        ("maxmin", "ps"),
        # It has no code for Inf, and nothing goes uncompressed.
        ({"type": "2bit", "threshold": 0.05, "min_size": 1}, "ring"),
    ],
)
def test_an_overflow_on_one_worker_is_skipped_by_all(compression, topology):
    same_bits(
        job(
            SCRIPTS / "tensorflow_training" / "overflow.py",
            args=[json.dumps(compression)],
            topology=topology,
        )
    )
