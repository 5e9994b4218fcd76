"""Where a gradient lies in a flat tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Gradient(NamedTuple):
    """One gradient in a bucket: ``offset`` and ``count`` are elements of the flat tensor.

    It lies there in one piece, or in chunks that begin ``stride`` elements apart. No partition has
    elements of two chunks.
    """

    name: str
    offset: int
    count: int
    chunk: int = 0
    stride: int = 0

    def at(self, element: int) -> int:
        """Where in the flat tensor an element of the gradient is."""
        if not self.chunk:
            return self.offset + element
        chunk, within = divmod(element, self.chunk)
        return self.offset + chunk * self.stride + within

    def slices(self) -> Iterator[slice]:
        """Where in the flat tensor the gradient is."""
        size = self.chunk or max(self.count, 1)
        for begin in range(0, self.count, size):
            at = self.at(begin)
            yield slice(at, at + min(size, self.count - begin))
