"""Messages between two ranks: several payloads, with a head that says what they are.

Their layout is that of HipressSlot in c_api.h. All of a message is checked before a payload is
decoded. The library writes and reads the payloads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import torch

from hipress._lib import lib

# Also in src/c_api/task_api.cc, which writes and checks payloads.
MAGIC = 0x31485452_53504948
OVERFLOW = 1
"""Flag: a gradient of some rank has a NaN or an Inf, so the result is NaN everywhere."""

_FIELDS = 5
_ALIGN = 64


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


class Message:
    """A buffer for payloads of at most ``capacities`` bytes, in that order.

    :param digest: 63 bits that both ends must agree on
    """

    def __init__(self, capacities: Sequence[int], digest: int) -> None:
        self._digest = digest
        self._count = len(capacities)
        self._begin = _aligned(8 * (_FIELDS + 2 * self._count))
        self.capacity = self._begin + sum(_aligned(size) for size in capacities)
        self.tensor = torch.empty(self.capacity, dtype=torch.uint8)
        self.address = self.tensor.data_ptr()
        words = self.tensor.numpy()[: self._begin].view(np.int64)
        self._head = words[:_FIELDS]
        self._table = words[_FIELDS : _FIELDS + 2 * self._count].reshape(-1, 2)

    def begin(self, flags: int) -> None:
        """Empties the message before it is written."""
        self._head[:] = (MAGIC, self._begin, self._digest, flags, self._count)
        self._table[:] = 0

    @property
    def flags(self) -> int:
        return int(self._head[3])

    def raise_flags(self, flags: int) -> None:
        """Adds flags to those the message has."""
        self._head[3] |= flags

    def used(self) -> torch.Tensor:
        """The part of the buffer that has to be sent."""
        return self.tensor[: int(self._head[1])]

    def check(self) -> str:
        """Empty if what was received is a message of this layout, else what is wrong with it."""
        wrong = ctypes.c_char_p()
        lib.HipressCheckMessage(
            self.address, self.capacity, self._digest, self._count, ctypes.byref(wrong)
        )
        return wrong.value.decode()
