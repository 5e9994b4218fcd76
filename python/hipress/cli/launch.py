"""`hipress launch`: start a distributed job."""

from collections.abc import Sequence

from hipress.launch import cli


def main(arguments: Sequence[str]) -> int:
    """Run a job as ``tools/launch.py`` does, and return the exit status."""
    return cli.main(arguments, "hipress launch")
