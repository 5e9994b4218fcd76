"""`hipress compile`: the compiler's own command line."""

from collections.abc import Sequence

from hipress.compression.compiler import cli


def main(arguments: Sequence[str]) -> None:
    """Generate code from an algorithm, or check it, as ``compll`` does."""
    cli.main(arguments, "hipress compile")
