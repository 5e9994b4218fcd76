"""A journal of an elastic job: a line of JSON for each event, for tests and for whoever asks later.

Written where ``HIPRESS_ELASTIC_LOG`` names a folder: a file for each slot, ``worker-2.jsonl``.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path


class Journal:
    """One process's journal; it does nothing without a folder."""

    def __init__(self, slot: int) -> None:
        folder = os.environ.get("HIPRESS_ELASTIC_LOG", "")
        self._about = {"pid": os.getpid(), "slot": slot}
        self._file = None
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._file = Path(folder, f"worker-{slot}.jsonl").open("a", buffering=1)

    def write(self, event: str, **fields: object) -> None:
        """Adds an event, with the time in seconds since 1970."""
        if self._file is not None:
            line = {"time": time.time(), **self._about, "event": event, **fields}
            self._file.write(json.dumps(line) + "\n")
