"""Files with the explanation and numbers of a job, if the environment requests them.

``HIPRESS_EXPLAIN`` names a JSON file with the explanation, which rank 0 writes when it changes and
every :data:`EVERY` steps. A file next to it with the suffix ``.jsonl`` gets a line every
:data:`EVERY` steps:

    step, method    the step, and the name of the method
    bytes       mean bytes that rank 0 sent in a step since the last line, or since the last change
                of the method; null with PyTorch's own methods, as a process group does not count
    ratio       bytes that rank 0 sends uncompressed over these: 2 (N - 1) / N of the gradients in
                an all-reduce, all gradients once to servers
    rounding, error, share      the guards' latest numbers for this method, or null
    gradients_ms, step_ms       times of this method's gradients, and of a step; null if not timed
    saved_ms    difference to the time of uncompressed gradients, alone
    gather, gathers_ms      method of the gathers of weights, and the time of a step's gathers; only
                if they were measured

``HIPRESS_TENSORBOARD`` names a folder that gets the same numbers for TensorBoard, and the reason
for each choice.

Training does not depend on these files. An error when one is written is reported once.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hipress.autotune.explanation import Explanation
from hipress.base.files import FileError, LineFile, warn_once

EVERY = 100
FIGURES = ("rounding", "error", "share")


class TensorBoardWriter:
    """A file in a folder, separate from the files that the script itself writes there.

    A failed write, for example to a full disk, is reported once. Nothing more is written then, as
    records after an incomplete one cannot be read.
    """

    def __init__(self, folder: str) -> None:
        try:
            # It needs no TensorFlow. TensorBoard's own writer imports it, where it is installed.
            from tensorboardX import event_file_writer
        except ImportError as error:
            raise ImportError(
                f"it needs the package tensorboardX (pip install tensorboardX): {error}"
            ) from error
        os.makedirs(folder, exist_ok=True)
        # Not SummaryWriter: its thread ends after a failed write, and the caller waits forever.
        self._writer = event_file_writer.EventsWriter(os.path.join(folder, "events"), ".hipress")
        self._folder, self._failed = folder, False

    def add_text(self, sentence: str, step: int) -> None:
        """Write the reason for the method that is used from this step on."""
        from tensorboardX.summary import text

        self._add(step, [text("hipress/method", sentence)])

    def add_scalars(self, figures: Mapping[str, object]) -> None:
        """Write the figures that are numbers as scalars, at the step in ``figures["step"]``."""
        from tensorboardX.summary import scalar

        found = [
            scalar(f"hipress/{name}", value)
            for name, value in figures.items()
            if isinstance(value, (int, float)) and name != "step"
        ]
        self._add(figures["step"], found)

    def _add(self, step: object, summaries: list) -> None:
        from tensorboardX.proto.event_pb2 import Event

        if self._failed:
            return
        try:
            for summary in summaries:
                event = Event(wall_time=time.time(), step=step, summary=summary)
                self._writer.write_event(event)
            self._writer.flush()
        except OSError as error:
            self._failed = True
            warn_once(os.path.join(self._folder, "events.*.hipress"), error)


_writers: dict[tuple[int, str], TensorBoardWriter] = {}


def tensorboard_writer(folder: str) -> TensorBoardWriter | None:
    """Return the process's only writer for a folder: each writer makes a new file."""
    key = os.getpid(), folder
    try:
        if key not in _writers and folder:
            _writers[key] = TensorBoardWriter(folder)
    except (ImportError, OSError) as error:
        reason = f"no figures for TensorBoard in {folder} (HIPRESS_TENSORBOARD): {error}"
        warn_once(folder, FileError(reason))
    return _writers.get(key)


class TuningJournal:
    """The files of one job; none if the environment does not request them.

    Rank 0 writes. ``raw`` is the number of bytes of an uncompressed step that this rank sends.
    """

    def __init__(self, rank: int, raw: float, bytes_sent: Callable[[], int]) -> None:
        path = os.environ.get("HIPRESS_EXPLAIN", "") if rank == 0 else ""
        self._path = Path(path) if path else None
        self._lines = LineFile(Path(path).with_suffix(".jsonl"), "figures") if path else None
        folder = os.environ.get("HIPRESS_TENSORBOARD", "") if rank == 0 else ""
        self._tensorboard = tensorboard_writer(folder)
        self._raw, self._bytes_sent = raw, bytes_sent
        self._written = 0
        """Step of the last line."""
        self._counted = 0, bytes_sent()
        """A step, and the bytes sent before it."""
        self._sentence: str | None = None
        """Last sentences that were written, on gradients and gathers."""

    def begin(self, step: int) -> None:
        """Count steps and bytes from now on."""
        self._written = step
        self.count_from(step)

    def count_from(self, step: int) -> None:
        """Count bytes from now on, with another method or after a measurement."""
        self._counted = step, self._bytes_sent()

    def write(
        self,
        explanation: Explanation,
        step: int,
        counts: bool,
        figures: Mapping[str, float],
    ) -> None:
        """Write the explanation if it has changed, and all files every :data:`EVERY` steps."""
        if self._path is None and self._tensorboard is None:
            return
        if self._sentence is None and step > EVERY:  # a rank that joined an elastic job
            self.begin(step)
        steps = step - self._written
        sentence = explanation.sentence
        if explanation.gathers:
            sentence += f"\n{explanation.gathers.sentence}"
        if steps < EVERY and sentence == self._sentence:
            return
        changed, self._sentence = sentence != self._sentence, sentence
        line = self._line(explanation, step, counts, figures) if steps >= EVERY else None
        if self._path is not None and self._lines is not None:
            try:
                explanation.save(self._path)
            except FileError as error:
                warn_once(self._path, error)
            if line is not None:
                self._lines.write(json.dumps(line))
        if self._tensorboard is not None:
            if changed:
                self._tensorboard.add_text(sentence, step)
            if line is not None:
                self._tensorboard.add_scalars(line)

    def _line(
        self,
        explanation: Explanation,
        step: int,
        counts: bool,
        figures: Mapping[str, float],
    ) -> dict[str, object]:
        before, sent_before = self._counted
        self.begin(step)
        _, sent = self._counted
        knows = counts and step > before
        bytes = round((sent - sent_before) / (step - before)) if knows else None
        row = next(row for row in explanation.rows if row.chosen)
        rows = explanation.gathers.rows if explanation.gathers else []
        gathers = {
            key: value
            for each in rows
            if each.chosen
            for key, value in (("gather", each.method), ("gathers_ms", each.gradients_ms))
        }
        return {
            "step": step,
            "method": row.method,
            "bytes": bytes,
            "ratio": round(self._raw / bytes, 2) if bytes else None,
            **{name: figures.get(name) for name in FIGURES},
            "gradients_ms": row.gradients_ms,
            "step_ms": row.step_ms,
            "saved_ms": explanation.rows[0].gradients_ms - row.gradients_ms,
            **gathers,
        }
