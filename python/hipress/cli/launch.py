"""`hipress launch`: start a distributed job."""

from collections.abc import Sequence

from hipress.launch import cli


def main(arguments: Sequence[str]) -> int:
    """Runs a job as ``tools/launch.py`` does; returns the exit status."""
    return cli.main(arguments, "hipress launch")
