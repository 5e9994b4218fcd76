"""Files with the explanation and numbers of a job, if the environment requests them.

``HIPRESS_EXPLAIN`` names a JSON file with the explanation, which rank 0 writes when it changes and
every :data:`EVERY` steps. A file beside it with the suffix ``.jsonl`` gets a line every
:data:`EVERY` steps:

    step, way   the step, and the name of the method
    bytes       mean bytes that rank 0 sent in a step since the last line, or since the last change
                of the method; null with PyTorch's own methods, as a process group does not count
    ratio       bytes that rank 0 sends uncompressed over these: 2 (N - 1) / N of the gradients in
                an all-reduce, all gradients once to servers
    rounding, error, share      the guards' latest numbers for this method, or null
    gradients_ms, step_ms       times of this method's gradients, and of a step; null if not timed
    saved_ms    difference to the time of uncompressed gradients, alone

``HIPRESS_TENSORBOARD`` names a folder that gets the same numbers for TensorBoard, and the reason
for each choice.

Training does not depend on these files. An error when one is written is reported once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hipress.autotune.explanation import Explanation
from hipress.autotune.tensorboard import TensorBoardWriter, tensorboard_writer
from hipress.files import FileError, LineFile, warn_once

EVERY = 100
FIGURES = ("rounding", "error", "share")


class TuningJournal:
    """The files of one job; none if the environment does not request them.

    Args:
        rank: Rank of this process. Rank 0 writes.
        raw: Bytes of an uncompressed step that this rank sends.
        sent: Bytes that this rank has sent so far.
    """

    def __init__(self, rank: int, raw: float, sent: int) -> None:
        path = os.environ.get("HIPRESS_EXPLAIN", "") if rank == 0 else ""
        self._path = Path(path) if path else None
        self._lines = LineFile(Path(path).with_suffix(".jsonl"), "figures") if path else None
        folder = os.environ.get("HIPRESS_TENSORBOARD", "") if rank == 0 else ""
        self._tensorboard = _tensorboard(folder)
        self._raw = raw
        self._written = 0
        """Step of the last line."""
        self._counted = 0, sent
        """A step, and the bytes sent before it."""
        self._sentence: str | None = None
        """Last sentence that was written."""

    def begin(self, step: int, sent: int) -> None:
        """Count steps and bytes from now on."""
        self._written, self._counted = step, (step, sent)

    def count_from(self, step: int, sent: int) -> None:
        """Count bytes from now on, with another method or after a measurement."""
        self._counted = step, sent

    def write(
        self,
        explanation: Explanation,
        step: int,
        sent: Callable[[], int],
        counts: bool,
        figures: Mapping[str, float],
    ) -> None:
        """Write the explanation if it has changed, and all files every :data:`EVERY` steps.

        Args:
            step: Step that begins.
            sent: Returns the bytes that this rank has sent so far.
            counts: Whether these include the gradients of the present method.
            figures: Known numbers of the guards for this method.
        """
        if self._path is None and self._tensorboard is None:
            return
        if self._sentence is None and step > EVERY:  # a rank that joined an elastic job
            self.begin(step, sent())
        steps = step - self._written
        if steps < EVERY and explanation.sentence == self._sentence:
            return
        changed, self._sentence = explanation.sentence != self._sentence, explanation.sentence
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
        if self._tensorboard is not None:
            if changed:
                self._tensorboard.add_text(explanation.sentence, step)
            if line is not None:
                self._tensorboard.add_scalars(line)

    def _line(
        self,
        explanation: Explanation,
        step: int,
        sent: int,
        counts: bool,
        figures: Mapping[str, float],
    ) -> dict[str, object]:
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


def _tensorboard(folder: str) -> TensorBoardWriter | None:
    try:
        return tensorboard_writer(folder) if folder else None
    except (ImportError, OSError) as error:
        reason = f"no figures for TensorBoard in {folder} (HIPRESS_TENSORBOARD): {error}"
        warn_once(folder, FileError(reason))
        return None
