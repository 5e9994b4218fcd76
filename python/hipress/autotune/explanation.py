"""The reasons for a choice of method: sentences and a table, to print and as JSON.

The time of gradients alone is known for each method (measured or simulated), and the time of a step
for the chosen method. The step with another method is predicted as that step plus the difference of
the gradients' times: as if computation hid the same part of both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hipress.base import files
from hipress.base.checked import get, texts, typed

FORMAT, VERSION = "hipress-explanation", 1
MAX_HISTORY = 50
"""Earlier sentences that are kept, since an unsteady network causes many."""
FASTER = 10
"""Factor of the faster network whose benefit is predicted."""
WORTH = 1.05
"""Speedup from which on something pays."""


@dataclass
class Row:
    """Measurements of one method."""

    way: str
    """Name of the method."""
    gradients_ms: float
    """Milliseconds of a step's gradients alone, on the slowest rank."""
    sample: float
    """Share of the model's gradients that was measured. The rest is extrapolated."""
    step_ms: float | None = None
    """Milliseconds of a whole step of training, if any were timed."""
    chosen: bool = False
    note: str = ""
    """Reason why it cannot be chosen, or an empty string."""
    predicted_ms: float | None = None
    """Predicted milliseconds of a whole step."""


@dataclass
class Explanation:
    """The reasons for a model's method, with the measurements."""

    sentence: str
    rows: list[Row] = field(default_factory=list)
    """One row for each method, the least lossy first; empty if nothing was measured."""
    history: list[str] = field(default_factory=list)
    """The last MAX_HISTORY earlier sentences, in order."""
    next_steps: list[str] = field(default_factory=list)
    """Sentences on what would make training faster, if it was simulated."""

    def say(self, sentence: str) -> str:
        """Replace the sentence, and return it."""
        if self.sentence:
            self.history = [*self.history, self.sentence][-MAX_HISTORY:]
        self.sentence = sentence
        return sentence

    def load(self, values: Mapping[str, Any]) -> None:
        """Load the result of ``dataclasses.asdict``."""
        self.sentence, self.rows = values["sentence"], [Row(**row) for row in values["rows"]]
        self.history, self.next_steps = list(values["history"]), list(values["next_steps"])

    def predict(self) -> None:
        """Predict a step for all methods from the measured step of the chosen method, if any."""
        chosen = self._chosen()
        for row in self.rows if chosen and chosen.step_ms else ():
            row.predicted_ms = max(chosen.step_ms + row.gradients_ms - chosen.gradients_ms, 0.0)

    def _chosen(self) -> Row | None:
        return next((row for row in self.rows if row.chosen), None)

    def next(self) -> list[str]:
        """Return what would make training faster, and by how much at most, in sentences."""
        if self.next_steps:
            return self.next_steps
        row = self._chosen()
        step = row and (row.step_ms or row.predicted_ms)
        if not step:
            return []
        waiting = min(row.gradients_ms, step)
        computing = step - waiting
        return pays(step, computing + waiting / FASTER, (2 * computing + waiting) / 2)

    def __str__(self) -> str:
        heads = ["", "gradients, ms", "measured", "predicted step", "step, ms", ""]
        cells = [heads]
        for row in self.rows:
            times = ["" if t is None else number(t) for t in (row.predicted_ms, row.step_ms)]
            share = f"{100 * row.sample:.3g}%"
            name = f"{'>' if row.chosen else ' '} {row.way}"
            cells.append([name, number(row.gradients_ms), share, *times, row.note])
        table = _aligned(cells) if self.rows else []
        return "\n".join([*self.history, self.sentence, *table, *self.next()])

    def to_json(self) -> dict[str, object]:
        """Return the content of a file."""
        return {"format": FORMAT, "version": VERSION, **asdict(self), "next_steps": self.next()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file for ``hipress explain``. A reader sees the old content or the new."""
        files.write(path, "explanation", json.dumps(self.to_json(), indent=1) + "\n")


def load(path: str | os.PathLike[str]) -> Explanation:
    """Return the explanation in a file."""
    values = files.read_json(path, "explanation")
    try:
        if (values["format"], values["version"]) != (FORMAT, VERSION):
            raise ValueError(f"{path} has format {values['format']} version {values['version']}")
        rows = [_row(row) for row in get(values, "rows", list)]
        lines = [texts(get(values, name, list), name) for name in ("history", "next_steps")]
        return Explanation(get(values, "sentence", str), rows, *lines)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} lacks what an explanation must hold: {error!r}") from error


def _row(values: Mapping[str, Any]) -> Row:
    """Return a checked row."""
    row = Row(**values)
    typed(row.way, str, "way")
    typed(row.note, str, "note")
    typed(row.chosen, bool, "chosen")
    for name in ("gradients_ms", "sample", "step_ms", "predicted_ms"):
        value = getattr(row, name)
        if value is not None or name in ("gradients_ms", "sample"):
            typed(value, float, name)
    return row


def pays(step: float, on_faster: float, half_of_two: float) -> list[str]:
    """Return what would make training faster, in sentences.

    The milliseconds are those of a step, at least those on a network that is :data:`FASTER` times
    as fast, and at least half of those of a step with twice the batch.
    """
    sentences = []
    for change, ms in (
        (f"a network that is {FASTER} times as fast", on_faster),
        ("a batch that is twice as large", half_of_two),
    ):
        gain = step / ms if ms > 0 else 1.0
        pays = f": training up to {gain:.2f} times as fast"
        sentences.append(change + (pays if gain >= WORTH else " would not pay"))
    return sentences


def number(ms: float) -> str:
    """Format with three digits, or all digits before the point."""
    return f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table. The first and last columns are text."""
    widths = [max(map(len, column)) for column in zip(*cells)]
    return [
        "  ".join(
            cell.rjust(width) if 0 < i < len(line) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in cells
    ]
