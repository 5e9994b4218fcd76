"""The commands of `hipress`, one module each; :mod:`hipress.cli.main` finds them.

What belongs here: options, and output for people. What does not: the work itself, which is in the
package that a command calls.

Annotations of parameters are not postponed (no ``from __future__ import annotations``), because
typer cannot read postponed ones on Python 3.9.
"""

from __future__ import annotations

from typing import NoReturn

import typer


def fail(message: object) -> NoReturn:
    """End the command with a message on standard error and status 1."""
    typer.echo(f"hipress: {message}", err=True)
    raise typer.Exit(1)
