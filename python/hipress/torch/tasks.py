"""Lists of tasks that the library does in one call (HipressRunTasks in c_api.h).

Done one by one from Python, each would take the interpreter's lock again, for which the threads of
several buckets and the backward pass wait.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from typing import Union

import numpy as np
import torch

from hipress._lib import BFLOAT16, FLOAT16, FLOAT32, check_call, lib
from hipress.compression import Compressor
from hipress.torch.message import Message

FLAGS = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}
"""Types of gradients that can be compressed, as c_api.h numbers them."""

_TASK = np.dtype(
    [(name, np.float64 if name == "factor" else np.int64) for name in (
        "op", "codec", "wire", "count", "from", "from_type", "to", "to_type", "factor", "bytes",
        "slots", "num_slots",
    )]
)  # fmt: skip


def floats(*size: int) -> torch.Tensor:
    """Zeros for the library, whatever the user has made PyTorch's default dtype and device."""
    return torch.zeros(size, dtype=torch.float32, device="cpu")


class TaskOp(IntEnum):
    """HipressTaskOp, which says what each does."""

    ENCODE = 0
    DECODE = 1
    DECODE_SUM = 2
    DECODE_BYTES = 3
    COPY = 4
    ADD = 5
    ADD_FINITE = 6
    KEEP = 7
    PASS_ON = 8


class InFlat(int):
    """An element of the flat tensor that a list of tasks is run on."""


Place = Union[torch.Tensor, InFlat]  # noqa: UP007 (evaluated at import; Python 3.9 has no |)
"""Where numbers lie: in a tensor, from its first element on, or in the flat tensor."""


class Tasks:
    """A list of tasks.

    :param dtype: of the flat tensor
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype, self._base = dtype, 0
        self._rows: list[dict[str, int | float]] = []
        self._in_flat: dict[str, list[int]] = {"from": [], "to": []}
        self._used: list[object] = []  # whose memory the tasks point to
        self.table = np.zeros(0, _TASK)
        self._done = ctypes.c_int64()

    def add(
        self, op: TaskOp, count: int, *, codec: Compressor | None = None, wire: int = FLOAT32,
        source: Place | None = None, target: Place | None = None, factor: float = 1.0,
        size: int = 0, slots: Sequence[tuple[Message, int]] = (),
    ) -> int:  # fmt: skip
        """Appends a task on ``count`` elements; returns its number.

        :param wire: flag of the type that an uncompressed payload was encoded from
        :param size: of a payload at ``source``, in bytes
        :param slots: of payloads, each a message and an index in it
        """
        row: dict[str, int | float] = {"op": op, "count": count, "wire": wire, "factor": factor}
        row["bytes"] = size
        if codec is not None:
            row["codec"] = codec._handle.value
        for name, place in (("from", source), ("to", target)):
            if isinstance(place, InFlat):
                row[name], row[f"{name}_type"] = place * self._dtype.itemsize, FLAGS[self._dtype]
                self._in_flat[name].append(len(self._rows))
            elif place is not None:
                row[name] = place.data_ptr()
                if place.dtype != torch.uint8:  # bytes of a payload
                    row[f"{name}_type"] = FLAGS[place.dtype]
        table = np.array([(m.address, index) for m, index in slots], np.int64)
        if len(table):
            row["slots"], row["num_slots"] = table.ctypes.data, len(table)
        self._used += [codec, source, target, table, slots]
        self._rows.append(row)
        return len(self._rows) - 1

    def complete(self) -> None:
        """Makes the table, once all tasks are there."""
        self.table = np.zeros(len(self._rows), _TASK)
        for record, row in zip(self.table, self._rows):
            for name, value in row.items():
                record[name] = value
        self._rows = []

    def set(
        self, rows: np.ndarray, names: Sequence[str], values: Sequence[tuple[int, ...]]
    ) -> None:
        """Changes fields of tasks: ``values`` has a tuple for each of ``rows``."""
        for name, column in zip(names, np.array(values, np.int64).reshape(-1, len(names)).T):
            self.table[name][rows] = column

    def run(self, flat: torch.Tensor) -> int:
        """Does them; returns how many, fewer than all if an ADD_FINITE found a NaN or Inf.

        :raises RuntimeError: for a payload that is refused
        """
        base = flat.data_ptr()
        if base != self._base:
            for name, rows in self._in_flat.items():
                self.table[name][rows] += base - self._base
            self._base = base
        table = self.table
        check_call(
            lib.HipressRunTasks(table.ctypes.data, len(table), ctypes.byref(self._done)),
            RuntimeError,
        )
        return self._done.value
