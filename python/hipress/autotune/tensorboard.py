"""Numbers of a job of type "auto" for TensorBoard, in any framework."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from hipress.files import warn_once


class TensorBoardWriter:
    """A file in a folder, separate from the files that the script itself writes there.

    A failed write, for example to a full disk, is reported once. Nothing more is written then, as
    records after an incomplete one cannot be read.

    Raises:
        ImportError: If a package is not installed. The message is a sentence.
        OSError: If the folder or the file cannot be created.
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

        self._add(step, [text("hipress/way", sentence)])

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


def tensorboard_writer(folder: str) -> TensorBoardWriter:
    """Return this process's only writer for a folder. Each writer would create a file of its own,
    for example in each view of an elastic job.

    Raises:
        ImportError: See :class:`TensorBoardWriter`.
        OSError: See :class:`TensorBoardWriter`.
    """
    key = os.getpid(), folder
    if key not in _writers:
        _writers[key] = TensorBoardWriter(folder)
    return _writers[key]
