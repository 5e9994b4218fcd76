"""Checks that a script prints the errors that a test expects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.processes import base_environment


def check(script: Path, expected: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    """Run a script, each line of whose output must have its part of ``expected``.

    Args:
        env: Additional environment variables.
    """
    ended = subprocess.run(
        [sys.executable, str(script)],
        env=base_environment(env),
        capture_output=True,
        text=True,
        timeout=90,
    )
    said = ended.stdout.splitlines()
    assert len(said) == len(expected), ended
    assert [line for line, part in zip(said, expected) if part not in line] == []
