"""Marks of tests with requirements that some machines do not meet."""

from __future__ import annotations

import importlib.util

import pytest

from harness import netns

# TensorFlow itself is imported only by the tests' processes.
needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None,
    reason="TensorFlow is not installed; make test-python installs it if the package index has it",
)
needs_namespaces = pytest.mark.skipif(
    bool(netns.available()), reason=netns.available() or "can run"
)
