"""The commands of `hipress`, one module each; :mod:`hipress.cli.main` tells how they are found.

Their parameters' annotations are not postponed (no ``from __future__ import annotations``): typer
could not read them on Python 3.9.
"""

from __future__ import annotations

from typing import NoReturn

import typer


def fail(message: object) -> NoReturn:
    """Ends the command with a sentence on standard error and status 1."""
    typer.echo(f"hipress: {message}", err=True)
    raise typer.Exit(1)
