"""Why gradients are synchronised as they are: sentences and a table, to print and as JSON.

What each way takes for gradients alone is known (measured, or simulated), and what a step takes by
the way that runs. So a step by another way is predicted as that step plus what its gradients take
longer, or less: as if computing hid the same part of both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hipress import files
from hipress.checked import get, texts, typed

FORMAT, VERSION = "hipress-explanation", 1
MAX_HISTORY = 50
"""Earlier sentences that are kept: on an unsteady network there is always another one."""
FASTER = 10
"""The times as fast as it is, of the network that might pay."""
WORTH = 1.05
"""The speed-up from which on something pays."""


@dataclass
class Row:
    """What is known of one way."""

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
    predicted_ms: float | None = None
    """Milliseconds of a whole step, as predicted."""


@dataclass
class Explanation:
    """Why a model's gradients are synchronised as they are, with what was measured."""

    sentence: str
    rows: list[Row] = field(default_factory=list)
    """By way, from gentle to lossy; none if nothing was measured."""
    history: list[str] = field(default_factory=list)
    """Earlier sentences, the first one first; the last MAX_HISTORY of them."""
    next_steps: list[str] = field(default_factory=list)
    """What would make training faster, where that was simulated."""

    def say(self, sentence: str) -> str:
        """Replaces the sentence; returns it."""
        if self.sentence:
            self.history = [*self.history, self.sentence][-MAX_HISTORY:]
        self.sentence = sentence
        return sentence

    def load(self, values: Mapping[str, Any]) -> None:
        """Becomes what ``dataclasses.asdict`` made of another one."""
        self.sentence, self.rows = values["sentence"], [Row(**row) for row in values["rows"]]
        self.history, self.next_steps = list(values["history"]), list(values["next_steps"])

    def predict(self) -> None:
        """Predicts steps by all ways from the measured one by the chosen way, if there is one."""
        chosen = self._chosen()
        for row in self.rows if chosen and chosen.step_ms else ():
            row.predicted_ms = max(chosen.step_ms + row.gradients_ms - chosen.gradients_ms, 0.0)

    def _chosen(self) -> Row | None:
        return next((row for row in self.rows if row.chosen), None)

    def next(self) -> list[str]:
        """What would make training faster, and by how much at most; a sentence for each."""
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
        """Its form in a file."""
        return {"format": FORMAT, "version": VERSION, **asdict(self), "next_steps": self.next()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file for ``hipress explain``; a reader sees the old one or the new one."""
        files.write(path, "explanation", json.dumps(self.to_json(), indent=1) + "\n")


def load(path: str | os.PathLike[str]) -> Explanation:
    """The explanation in a file.

    :raises ValueError: if it is none
    """
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
    """:raises TypeError: if a value is missing or of another type"""
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
    """What would pay next.

    :param step: milliseconds
    :param on_faster: of a step on a network that is :data:`FASTER` times as fast, at the least
    :param half_of_two: half of those of a step with twice the batch, at the least
    """
    said = []
    for what, ms in (
        (f"a network that is {FASTER} times as fast", on_faster),
        ("a batch that is twice as large", half_of_two),
    ):
        gain = step / ms if ms > 0 else 1.0
        said.append(
            f"{what}: training up to {gain:.2f} times as fast" if gain >= WORTH
            else f"{what} would not pay"
        )  # fmt: skip
    return said


def number(ms: float) -> str:
    """Three digits, or all before the point."""
    return f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; the first and the last column are texts, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*cells)]
    return [
        "  ".join(
            cell.rjust(width) if 0 < i < len(line) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in cells
    ]
