"""`hipress compile`: the compiler's own command line."""

from collections.abc import Sequence

from hipress.compression.compiler import cli


def main(arguments: Sequence[str]) -> None:
    """Generates code from an algorithm, or checks it, as ``compll`` does."""
    cli.main(arguments, "hipress compile")
