"""`hipress report`: activities of a recorded job over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from typer import Argument, Option

from hipress.cli import fail

if TYPE_CHECKING:
    from hipress.diagnostics.report import Timeline

_Path = Optional[Path]  # noqa: UP045 (Python 3.9)


def command(
    timeline: Annotated[
        Path, Argument(help="what HIPRESS_TIMELINE named; of an elastic job all views are shown")
    ],
    predicted: Annotated[
        _Path,
        Option("--predicted", help="what `hipress simulate --timeline` wrote of the same job"),
    ] = None,
    output: Annotated[
        _Path, Option("--output", help="the picture (default: beside the timeline, .png)")
    ] = None,
    picture: Annotated[bool, Option("--picture/--no-picture", help="draw it")] = True,
) -> None:
    """Draw where the time of a recorded job went."""
    from hipress.diagnostics import report

    try:
        found = report.load_all(timeline)
        other = report.load(predicted) if predicted else None
        # A view of an elastic job may end before its first step.
        drawn = [each for each in found if each.steps() or not each.view]
        for each in found:
            typer.echo(
                report.summary(each) if each in drawn else f"view {each.view} came to no step"
            )
        if other:
            typer.echo("\n" + report.summary(other))
    except report.ReportError as error:
        fail(error)
    if not picture:
        return
    for each in drawn:
        target = output or Path(each.path).with_suffix(".png")
        if output and len(drawn) > 1:
            target = output.with_name(f"{output.stem}-view{each.view}{output.suffix}")
        _draw(each, target, other)


def _draw(measured: "Timeline", target: Path, other: "Optional[Timeline]") -> None:
    try:
        from hipress.diagnostics.report import draw

        draw(measured, target, other)
    except ImportError:
        fail("the picture needs matplotlib: pip install 'hipress[report]' (or --no-picture)")
    except (OSError, ValueError) as error:
        fail(f"cannot write the picture {target}: {error}")
    typer.echo(f"\npicture: {target}")
