"""Small elastic training for tests that watch a job from outside: its dumps, lines, timelines."""

import sys

from scripts import SCRIPTS


def command(steps=100_000):
    """Return the command of a worker that trains ``steps`` steps."""
    return [sys.executable, str(SCRIPTS / "elastic_training.py"), str(steps)]
