"""Why gradients are synchronised as they are: a sentence and a table of what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """What was measured of one way."""

    way: str
    gradients_ms: float
    """Milliseconds of a step's gradients alone, on the slowest rank."""
    sample: float
    """The share of the model's gradients that was measured; the rest by their number."""
    step_ms: float | None = None
    """Milliseconds of a whole step of training, if any were timed."""
    chosen: bool = False
    note: str = ""
    """Why it is not to be chosen, if so."""


@dataclass
class Explanation:
    """Why a model's gradients are synchronised as they are, with what was measured."""

    sentence: str
    rows: list[Row] = field(default_factory=list)
    """By way, from gentle to lossy; none if nothing was measured."""

    def __str__(self) -> str:
        cells = [["", "gradients, ms", "measured", "step, ms", ""]]
        for row in self.rows:
            step = "" if row.step_ms is None else number(row.step_ms)
            share = f"{100 * row.sample:.3g}%"
            name = f"{'>' if row.chosen else ' '} {row.way}"
            cells.append([name, number(row.gradients_ms), share, step, row.note])
        return "\n".join([self.sentence, *(aligned(cells) if self.rows else [])])


def number(ms: float) -> str:
    """Three digits, or all before the point."""
    return f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


def aligned(cells: list[list[str]]) -> list[str]:
    """The lines of a table; the first and the last column are texts, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*cells)]
    return [
        "  ".join(
            cell.rjust(width) if 0 < i < len(line) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in cells
    ]  # fmt: skip
