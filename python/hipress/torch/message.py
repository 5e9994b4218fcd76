"""Messages between two ranks: several payloads, with a head that says what they are.

Layout: int64 magic, total bytes, digest of what is synchronised, flags, number of payloads; then
(offset, bytes) of each payload; then the payloads, at multiples of 64 bytes. All of it is checked
before a payload is decoded. The library writes and reads payloads (src/c_api/task_api.cc).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

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

    def copy(self, index: int) -> torch.Tensor:
        """A payload's bytes, in memory of their own."""
        offset, size = self._table[index].tolist()
        return self.tensor[offset : offset + size].clone()

    def used(self) -> torch.Tensor:
        """The part of the buffer that has to be sent."""
        return self.tensor[: int(self._head[1])]

    def check(self) -> str:
        """Empty if what was received is a message of this layout, else what is wrong with it."""
        magic, total, digest, _, count = (int(word) for word in self._head)
        if magic != MAGIC:
            return "a message that is not HiPress's"
        if digest != self._digest or count != self._count:
            return "a message about other gradients or settings"
        ends = self._table[:, 0] + self._table[:, 1]
        if not self._begin <= total <= self.capacity or (
            self.flags == 0
            and (
                (self._table[:, 0] < self._begin).any()
                or (self._table[:, 1] < 0).any()
                or (ends > total).any()
                or (self._table[:, 0] % _ALIGN).any()
            )
        ):
            return "a message whose lengths do not fit"
        return ""
