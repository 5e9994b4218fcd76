"""What a job leaves for ``hipress explain``, where the environment asks for it.

``HIPRESS_EXPLAIN`` names a JSON file with the explanation, which rank 0 writes when it changes and
every :data:`EVERY` steps. Beside it, a file with the ending ``.jsonl`` gets a line then:

    step, way
    bytes       that rank 0 has sent in a step, mean of the steps since the last line; null while
                DDP's own way runs, as the process group does not count
    ratio       what an uncompressed all-reduce sends, 2 (N - 1) / N of the gradients, over that
    rounding, error, share      the guard's latest figures of this way, or null
    gradients_ms, step_ms       of this way, and of a step; null before it was timed
    saved_ms    what gradients by DDP's own all-reduce take longer, alone
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from hipress.files import FileError
from hipress.secopa.explanation import Explanation
from hipress.torch.synchronizer import Synchronizer

EVERY = 100
FIGURES = ("rounding", "error", "share")
_log = logging.getLogger("hipress")


class Journal:
    """The files of one job; none if the environment does not ask for them.

    :param of: the compression of the job's gradients
    :param gradient_bytes: of a step, uncompressed
    """

    def __init__(self, of: Synchronizer, gradient_bytes: int) -> None:
        path = os.environ.get("HIPRESS_EXPLAIN", "") if of.rank == 0 else ""
        self._path = Path(path) if path else None
        peers = of.engine.world_size
        self._raw = gradient_bytes * 2 * (peers - 1) / peers
        self._counted = 0, 0  # steps, and bytes until then
        self._said = ""

    def write(
        self, explanation: Explanation, of: Synchronizer, own: bool, figures: Mapping[str, float]
    ) -> None:
        """Writes what is new: the explanation if it has changed, all if many steps have passed.

        :param own: whether DDP's own way runs
        :param figures: of the guard, those that are known of this way
        """
        if self._path is None:
            return
        steps = of.step - self._counted[0]
        if steps < EVERY and explanation.sentence == self._said:
            return
        self._said = explanation.sentence
        try:
            explanation.save(self._path)
            if steps >= EVERY:
                line = self._line(explanation, of, own, figures)
                with self._path.with_suffix(".jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
        except (OSError, FileError) as error:
            _log.warning("HIPRESS_EXPLAIN: %s; nothing more is written", error)
            self._path = None

    def _line(
        self, explanation: Explanation, of: Synchronizer, own: bool, figures: Mapping[str, float]
    ) -> dict[str, object]:
        (before, sent_before), sent = self._counted, of.engine.member.stats()["bytes_sent"]
        self._counted = of.step, sent
        bytes = None if own else round((sent - sent_before) / (of.step - before))
        row = next(row for row in explanation.rows if row.chosen)
        return {
            "step": of.step,
            "way": row.way,
            "bytes": bytes,
            "ratio": round(self._raw / bytes, 2) if bytes else None,
            **{name: figures.get(name) for name in FIGURES},
            "gradients_ms": row.gradients_ms,
            "step_ms": row.step_ms,
            "saved_ms": explanation.rows[0].gradients_ms - row.gradients_ms,
        }
