"""Commands of `hipress`, one module each; :mod:`hipress.cli.main` describes how they are found.

Annotations of their parameters are not postponed (no ``from __future__ import annotations``),
because typer could not read them on Python 3.9.
"""

from __future__ import annotations

from typing import NoReturn

import typer


def fail(message: object) -> NoReturn:
    """End the command with a message on standard error and status 1."""
    typer.echo(f"hipress: {message}", err=True)
    raise typer.Exit(1)
