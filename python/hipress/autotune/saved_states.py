"""Reader of the states that a store's native part saves (``src/kvstore/key_states.cc``)."""

from __future__ import annotations

import math
import struct

import numpy as np


class _Reader:
    """Reader of the numbers and texts of ``src/common/bytes.h``."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def number(self, kind: str = "<Q") -> int:
        (value,) = struct.unpack_from(kind, self._data, self._at)
        self._at += struct.calcsize(kind)
        return value

    def text(self) -> memoryview:
        size = self.number()
        self._at += size
        return self._data[self._at - size : self._at]

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._data)


def residual_norm(states: bytes) -> float:
    """Return the 2-norm of all vectors in saved states. With the codecs of type "auto" these are
    the residuals."""
    total, keys = 0.0, _Reader(memoryview(states))
    while not keys.at_end:
        keys.number()
        keys.text()  # its name
        for _ in range(keys.number()):
            total += _square(_Reader(keys.text()))
    return math.sqrt(total)


def _square(flow: _Reader) -> float:
    flow.number()  # elements
    flow.number("<B")  # their type
    flow.number()  # tasks
    total = 0.0
    while not flow.at_end:
        for _ in range(3):  # task, elements, encodes
            flow.number()
        flow.text()  # the codec
        for _ in range(flow.number()):
            values = np.frombuffer(flow.text(), np.float32)
            total += float(np.dot(values, values))
    return total
