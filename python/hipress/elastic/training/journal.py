"""Journal of an elastic job: a line of JSON for each event, for tests and for later analysis.

Written where ``HIPRESS_ELASTIC_LOG`` names a folder: a file for each slot, ``worker-2.jsonl``.
Training does not depend on it: events that cannot be written are lost.
"""

from __future__ import annotations

import json
import os
import time

from hipress.base.files import LineFile


class Journal:
    """One process's journal; it does nothing without a folder."""

    def __init__(self, slot: int) -> None:
        folder = os.environ.get("HIPRESS_ELASTIC_LOG", "")
        self._about = {"pid": os.getpid(), "slot": slot}
        self._file = None
        if folder:
            path = os.path.join(folder, f"worker-{slot}.jsonl")
            self._file = LineFile(path, "journal (HIPRESS_ELASTIC_LOG)")

    def write(self, event: str, **fields: object) -> None:
        """Add an event, with the time in seconds since 1970."""
        if self._file is not None:
            line = {"time": time.time(), **self._about, "event": event, **fields}
            self._file.write(json.dumps(line))
