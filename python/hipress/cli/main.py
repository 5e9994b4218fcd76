"""The `hipress` command. `hipress --help` lists its commands.

Each command is a module of :mod:`hipress.cli`. It has a function `command`, whose parameters typer
reads, or a typer app `app` with commands of its own. The modules of OWN_PARSERS have a function
`main`, which parses all arguments after the command's name. Only the requested command's module is
imported, so that help is fast. A new command is a new module and a line in COMMANDS.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import typer
from typer import Option

COMMANDS = {
    "launch": "Start a distributed job here, or on many hosts.",
    "profile": "Measure this cluster and save what a planner needs.",
    "plan": "Decide per gradient whether to compress it and how to cut it.",
    "simulate": "Predict step time and scaling on a cluster of any size.",
    "explain": "Show the cost of each choice, what was chosen, and what would pay next.",
    "report": "Draw where the time of a recorded job went.",
    "bench": "Measure all-reduces on torch.distributed, compressed and not.",
    "compile": "Generate code of your own compression algorithm, and check it.",
    "codecs": "List the compression types and their parameters.",
    "doctor": "Report what this machine has and lacks, for an issue report.",
    "debug": "Show which node waits for which in a job that hangs.",
}
"""Name and one-line help of each command; its module is hipress.cli.NAME."""
OWN_PARSERS = {"launch": "hipress.launch.cli", "compile": "hipress.compression.compiler.cli"}
"""Commands whose modules parse all arguments, by name."""


def _version(asked: bool) -> None:
    if asked:
        from hipress import __version__

        typer.echo(__version__)
        raise typer.Exit


def _about(
    version: bool = Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Data-parallel training with compressed gradients: planning, measuring, simulating."""


def _later() -> None:
    """Stands for a command in the list; never runs."""


def build_app(wanted: str | None) -> typer.Typer:
    """Return the command line with the requested command imported."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_about)
    for name, summary in COMMANDS.items():
        if name != wanted or name in OWN_PARSERS:
            app.command(name, help=summary)(_later)
            continue
        module = importlib.import_module(f"hipress.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, help=summary)
        else:
            app.command(name)(module.command)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `hipress` command; also for `python -m hipress`."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    wanted = next((a for a in arguments if not a.startswith("-")), None)
    try:
        if arguments[:1] == [wanted] and wanted in OWN_PARSERS:
            module = importlib.import_module(OWN_PARSERS[wanted])
            sys.exit(module.main(arguments[1:], f"hipress {wanted}"))
        build_app(wanted)(args=arguments, prog_name="hipress")
    except ImportError as error:  # a package is missing, or HIPRESS_CODECS names a bad algorithm
        sys.exit(f"hipress: {error}")
