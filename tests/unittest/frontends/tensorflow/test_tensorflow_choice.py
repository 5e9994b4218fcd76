"""Type "auto" of Keras and TensorFlow; test_store_choice.py has what all stores share."""

from __future__ import annotations

import pytest

from harness.marks import needs_tensorflow
from scripts import SCRIPTS
from test_tensorflow_training import job, same_bits

pytestmark = [needs_tensorflow, pytest.mark.timeout(300)]


def test_auto_chooses_follows_and_knows_the_optimizer():
    outputs = job(SCRIPTS / "tensorflow_training" / "choice.py")
    same_bits(outputs)
    for rank, output in enumerate(outputs):
        assert "auto: uncompressed, the fastest: a step's gradients take" in output
        assert " bf16 " in output  # whose gradients are float32, for all broadcast dtypes
        assert "> maxminef bits=2" in output and "times as long as they did" in output, output
        assert rank == 0 or "lines 0" in output
