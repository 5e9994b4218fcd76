"""Tables of README.md and docs/, written from the results in benchmarks/results.

A table is between `<!-- table: NAME -->` and `<!-- /table -->`. It is that of
benchmarks/results/NAME.json, or, as NAME/KEY, one of several there. A run's file, moved there from
output/benchmarks, is such a result; its `tables` are those that the run printed. A cell may take a
number from another result, and round it: {NAME:ROW:COLUMN}. A value with a sign is not rounded.
"""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer

from benchmarks.common.results import PUBLISHED
from harness import ROOT

MARKED = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- /table -->)", re.DOTALL)
TAKEN = re.compile(r"\{([^{}:]+):([^{}:]+):([^{}:]+)\}")


def table(name: str) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of a result's table."""
    file, _, key = name.partition("/")
    path = PUBLISHED / f"{file}.json"
    if not path.exists():
        raise SystemExit(f"there is no {path.relative_to(ROOT)}")
    found = json.loads(path.read_text(encoding="utf-8"))["tables"][key]
    return found["heads"], [[TAKEN.sub(taken, cell) for cell in row] for row in found["rows"]]


def taken(reference: re.Match[str]) -> str:
    """Return a value from another result."""
    heads, rows = table(reference[1])
    (row,) = (row for row in rows if row[0] == reference[2])
    value = row[heads.index(reference[3])]
    return value if value[0] in "+-" else f"{float(value):.0f}"


def markdown(name: str) -> str:
    """Return a result's table as Markdown."""
    heads, rows = table(name)
    lines = [heads, ["---"] * len(heads), *rows]
    first, line, *rest = (
        "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) for cells in lines
    )
    return "\n".join([first, line.replace(" ", ""), *rest]) + "\n"


def written(text: str) -> str:
    """Return a page with the tables of the present results."""
    return MARKED.sub(lambda found: found[1] + markdown(found[2]) + found[3], text)


def main(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if one differs.")
    ] = False,
) -> None:
    different = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        if written(text) != text:
            different.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(written(text), encoding="utf-8")
    if different:
        print("differ:" if check else "written:", *different)
    raise typer.Exit(check and bool(different))
