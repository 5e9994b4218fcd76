"""The reasons for a choice of method: sentences and a table, to print and as JSON.

The time of gradients alone is known for each method (measured or simulated), and the time of a step
for the chosen method. The step with another method is predicted as that step plus the difference of
the gradients' times: as if computation hid the same part of both.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Optional

import msgspec

from hipress.base import files

FORMAT, VERSION = "hipress-explanation", 1
MAX_HISTORY = 50
"""Earlier sentences that are kept, since an unsteady network causes many."""
FASTER = 10
"""Factor of the faster network whose benefit is predicted."""
WORTH = 1.05
"""Speedup from which on something pays."""
_Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]


class Row(msgspec.Struct):
    """Measurements of one method."""

    method: str
    gradients_ms: _Finite
    """Milliseconds of a step's gradients alone, on the slowest rank."""
    sample: _Finite
    """Share of the model's gradients that was measured. The rest is extrapolated."""
    step_ms: Optional[_Finite] = None  # noqa: UP045 (Python 3.9)
    """Milliseconds of a whole step of training, if any were timed."""
    chosen: bool = False
    note: str = ""
    """Reason why it cannot be chosen, or an empty string."""
    predicted_ms: Optional[_Finite] = None  # noqa: UP045
    """Predicted milliseconds of a whole step."""


class Explanation(msgspec.Struct):
    """The reasons for a model's method, with the measurements."""

    sentence: str
    rows: list[Row] = []
    """One row for each method, the least lossy first; empty if nothing was measured."""
    history: list[str] = []
    """The last MAX_HISTORY earlier sentences, in order."""
    next_steps: list[str] = []
    """Sentences on what would make training faster, if it was simulated."""
    what: str = "gradients"
    """Name of what the methods synchronize: "gradients", or "gathers" of weights. Times that are
    named after gradients are those of a step's gathers there."""
    gathers: Optional[Explanation] = None  # noqa: UP045
    """The reasons for the method that gathers a sharded model's weights, if it was measured."""

    def say(self, sentence: str) -> str:
        """Replace the sentence, and return it."""
        if self.sentence:
            self.history = [*self.history, self.sentence][-MAX_HISTORY:]
        self.sentence = sentence
        return sentence

    def load(self, values: Mapping[str, Any]) -> None:
        """Load the result of ``msgspec.to_builtins``."""
        found = msgspec.convert(values, Explanation)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(found, name))

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
        gather = self.gathers and self.gathers._chosen()
        waiting = min(row.gradients_ms + (gather.gradients_ms if gather else 0.0), step)
        computing = step - waiting
        return pays(step, computing + waiting / FASTER, (2 * computing + waiting) / 2)

    def __str__(self) -> str:
        gathers = self.gathers._lines() if self.gathers else []
        return "\n".join([*self._lines(), *gathers, *self.next()])

    def _lines(self) -> list[str]:
        """Return the sentences and the table."""
        heads = ["", f"{self.what}, ms", "measured", "predicted step", "step, ms", ""]
        cells = [heads]
        for row in self.rows:
            times = ["" if t is None else number(t) for t in (row.predicted_ms, row.step_ms)]
            share = f"{100 * row.sample:.3g}%"
            name = f"{'>' if row.chosen else ' '} {row.method}"
            cells.append([name, number(row.gradients_ms), share, *times, row.note])
        table = _aligned(cells) if self.rows else []
        return [*self.history, self.sentence, *table]

    def to_json(self) -> dict[str, object]:
        """Return the content of a file."""
        values = {**msgspec.to_builtins(self), "next_steps": self.next()}
        return {"format": FORMAT, "version": VERSION, **values}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file for ``hipress explain``. A reader sees the old content or the new."""
        files.write(path, "explanation", json.dumps(self.to_json(), indent=1) + "\n")


def load(path: str | os.PathLike[str]) -> Explanation:
    """Return the explanation in a file."""
    values = files.read_json(path, "explanation")
    found = values.get("format"), values.get("version")
    if found != (FORMAT, VERSION):
        raise ValueError(f"{path} has format {found[0]} version {found[1]}")
    try:
        return msgspec.convert(values, Explanation)
    except msgspec.ValidationError as error:
        raise ValueError(f"{path} lacks what an explanation must hold: {error}") from error


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
