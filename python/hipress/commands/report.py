"""`hipress report`: where the time of a job went."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from hipress.commands import fail

_Path = Optional[Path]  # noqa: UP045 (Python 3.9)


def command(
    timeline: Annotated[Path, typer.Argument(help="the file that HIPRESS_TIMELINE named")],
    predicted: Annotated[
        _Path,
        typer.Option(
            "--predicted", help="what `hipress simulate --timeline` wrote of the same job"
        ),
    ] = None,
    output: Annotated[
        _Path, typer.Option("--output", help="the picture (default: beside the timeline, .png)")
    ] = None,
    picture: Annotated[bool, typer.Option("--picture/--no-picture", help="draw it")] = True,
) -> None:
    """Draw where the time of a recorded job went."""
    from hipress import report

    try:
        measured = report.load(timeline)
        other = report.load(predicted) if predicted else None
        typer.echo(report.summary(measured))
        if other:
            typer.echo("\n" + report.summary(other))
    except report.ReportError as error:
        fail(error)
    if not picture:
        return
    target = output or timeline.with_suffix(".png")
    try:
        from hipress.report_picture import draw

        draw(measured, target, other)
    except ImportError:
        fail("the picture needs matplotlib: pip install 'hipress[report]' (or --no-picture)")
    except (OSError, ValueError) as error:
        fail(f"cannot write the picture {target}: {error}")
    typer.echo(f"\npicture: {target}")
