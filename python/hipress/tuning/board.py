"""The figures of a job of type "auto" for TensorBoard, whatever the framework."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping

_FLUSH_SECONDS = 1
"""In which a thread of tensorboardX writes to the disk; a process that is killed loses the rest."""


class Board:
    """Writes to a folder, beside what the script itself writes there.

    :raises ImportError: a package is not installed; it is a sentence
    :raises OSError: the folder cannot be made
    """

    def __init__(self, folder: str) -> None:
        try:
            # It needs no TensorFlow. TensorBoard's own writer imports it, where it is installed.
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise ImportError(
                f"it needs the package tensorboardX (pip install tensorboardX): {error}"
            ) from error
        self._writer = SummaryWriter(folder, flush_secs=_FLUSH_SECONDS)
        atexit.register(self._writer.close)

    def say(self, sentence: str, step: int) -> None:
        """Writes why gradients travel as they do from this step on."""
        self._writer.add_text("hipress/way", sentence, step)

    def add(self, figures: Mapping[str, object]) -> None:
        """Writes the numbers among these as scalars, at the step that is one of them."""
        for name, value in figures.items():
            if isinstance(value, (int, float)) and name != "step":
                self._writer.add_scalar(f"hipress/{name}", value, figures["step"])


_boards: dict[tuple[int, str], Board] = {}


def board_of(folder: str) -> Board:
    """This process's board in a folder: one, whatever chooses after what, as in an elastic job's
    views. Two would write two files.

    :raises ImportError, OSError: as :class:`Board`
    """
    about = os.getpid(), folder
    if about not in _boards:
        _boards[about] = Board(folder)
    return _boards[about]
