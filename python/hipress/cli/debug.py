"""`hipress debug`: waiting nodes of a hanging job, and their causes."""

import time
from pathlib import Path
from typing import Annotated, Optional

import typer
from typer import Argument, Option

from hipress.cli import fail

_Paths = Optional[list[Path]]  # noqa: UP045 (Python 3.9)


def command(
    places: Annotated[
        _Paths,
        Argument(
            metavar="[FOLDER|FILE]...",
            help="dumps of all nodes (default: HIPRESS_DEBUG_DIR, or the folder of this user's)",
            show_default=False,
        ),
    ] = None,
    now: Annotated[
        bool, Option("--now", help="ask your processes on this machine for dumps first")
    ] = False,
    rows: Annotated[int, Option("--rows", min=1, help="waits to list")] = 20,
    events: Annotated[int, Option("--events", min=0, help="last events of each node to list")] = 0,
) -> None:
    """Show which node waits for which in a job that hangs."""
    from hipress.diagnostics import debug
    from hipress.diagnostics.debug_report import show, show_elastic
    from hipress.diagnostics.elastic_job import gather

    try:
        answered: list = []
        if now:
            answered, sentences = debug.ask()
            for sentence in sentences:
                typer.echo(f"hipress: {sentence}", err=True)
            if not answered and not places:
                fail("no process has answered")
        given = debug.load_all(places or [debug.default_folder()]) if places or not now else []
    except debug.DebugError as error:
        fail(error)
    dumps = [*given, *answered]
    newest = max(dump.time for dump in dumps)
    elastic, others = gather(dumps, newest)
    for job in elastic:
        show_elastic(job, time.time(), rows, events)
    for nodes in debug.latest_jobs(others, newest):
        show(nodes, time.time(), rows, events)
