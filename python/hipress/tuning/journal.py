"""What a job leaves for ``hipress explain``, where the environment asks for it.

``HIPRESS_EXPLAIN`` names a JSON file with the explanation, which rank 0 writes when it changes and
every :data:`EVERY` steps. Beside it, a file with the ending ``.jsonl`` gets a line then:

    step, way
    bytes       that rank 0 has sent in a step, mean of the steps since the last line, or since this
                way runs; null while PyTorch's own way runs, as a process group does not count
    ratio       what rank 0 sends uncompressed over that: of an all-reduce 2 (N - 1) / N of the
                gradients, to servers all of them once
    rounding, error, share      the guard's latest figures of this way, or null
    gradients_ms, step_ms       of this way, and of a step; null before it was timed
    saved_ms    what gradients that are uncompressed take longer, alone

``HIPRESS_TENSORBOARD`` names a folder that gets the same numbers for TensorBoard, and the sentence
that says why, whenever that is another one.

Training does not depend on these files. One that cannot be written is reported once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hipress.files import FileError, LineFile, warn_once
from hipress.secopa.explanation import Explanation
from hipress.tuning.board import Board, board_of

EVERY = 100
FIGURES = ("rounding", "error", "share")


class Journal:
    """The files of one job; none if the environment does not ask for them.

    :param rank: of whose processes 0 writes
    :param raw: bytes of a step, uncompressed, that this rank sends
    :param sent: bytes that it has sent so far
    """

    def __init__(self, rank: int, raw: float, sent: int) -> None:
        path = os.environ.get("HIPRESS_EXPLAIN", "") if rank == 0 else ""
        self._path = Path(path) if path else None
        self._lines = LineFile(Path(path).with_suffix(".jsonl"), "figures") if path else None
        self._board = _board(os.environ.get("HIPRESS_TENSORBOARD", "") if rank == 0 else "")
        self._raw = raw
        self._written = 0  # the step of the last line
        self._counted = 0, sent  # a step, and bytes until it began
        self._said: str | None = None  # nothing yet

    def begin(self, step: int, sent: int) -> None:
        """Counts steps, and bytes, from now on."""
        self._written, self._counted = step, (step, sent)

    def count_from(self, step: int, sent: int) -> None:
        """Counts bytes from now on: what was sent before says nothing of the way that runs."""
        self._counted = step, sent

    def write(
        self, explanation: Explanation, step: int, sent: Callable[[], int], counts: bool,
        figures: Mapping[str, float],
    ) -> None:  # fmt: skip
        """Writes what is new: the explanation if it has changed, all if many steps have passed.

        :param step: that begins
        :param sent: bytes that this rank has sent so far
        :param counts: whether those of the way that runs are among them
        :param figures: of the guard, those that are known of this way
        """
        if self._path is None and self._board is None:
            return
        if self._said is None and step > EVERY:  # of an elastic job, in which others began
            self.begin(step, sent())
        steps = step - self._written
        if steps < EVERY and explanation.sentence == self._said:
            return
        changed, self._said = explanation.sentence != self._said, explanation.sentence
        line = None
        if steps >= EVERY:
            line = self._line(explanation, step, sent(), counts, figures)
        if self._path is not None and self._lines is not None:
            try:
                explanation.save(self._path)
            except FileError as error:
                warn_once(self._path, error)
            if line is not None:
                self._lines.write(json.dumps(line))
        if self._board is not None:
            if changed:
                self._board.say(explanation.sentence, step)
            if line is not None:
                self._board.add(line)

    def _line(
        self, explanation: Explanation, step: int, sent: int, counts: bool,
        figures: Mapping[str, float],
    ) -> dict[str, object]:  # fmt: skip
        before, sent_before = self._counted
        self.begin(step, sent)
        knows = counts and step > before
        bytes = round((sent - sent_before) / (step - before)) if knows else None
        row = next(row for row in explanation.rows if row.chosen)
        return {
            "step": step,
            "way": row.way,
            "bytes": bytes,
            "ratio": round(self._raw / bytes, 2) if bytes else None,
            **{name: figures.get(name) for name in FIGURES},
            "gradients_ms": row.gradients_ms,
            "step_ms": row.step_ms,
            "saved_ms": explanation.rows[0].gradients_ms - row.gradients_ms,
        }


def _board(folder: str) -> Board | None:
    try:
        return board_of(folder) if folder else None
    except (ImportError, OSError) as error:
        reason = f"no figures for TensorBoard in {folder} (HIPRESS_TENSORBOARD): {error}"
        warn_once(folder, FileError(reason))
        return None
