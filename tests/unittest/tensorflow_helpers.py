"""What the tests of TensorFlow share. TensorFlow itself is imported by processes of their own."""

from __future__ import annotations

import importlib.util

import pytest

needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None,
    reason="TensorFlow is not installed; make test-python installs it if the package index has it",
)
