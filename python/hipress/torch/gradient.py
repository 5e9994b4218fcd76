"""Gradients in a flat tensor: their positions, and which ones are neighbors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Gradient(NamedTuple):
    """Gradient in a bucket: ``offset`` and ``count`` are elements of the flat tensor.

    It has one piece, or chunks that begin ``stride`` elements apart. No partition has elements of
    two chunks.
    """

    name: str
    offset: int
    count: int
    chunk: int = 0
    stride: int = 0

    def at(self, element: int) -> int:
        """Return the position of one of the gradient's elements in the flat tensor."""
        if not self.chunk:
            return self.offset + element
        chunk, within = divmod(element, self.chunk)
        return self.offset + chunk * self.stride + within

    def slices(self) -> Iterator[slice]:
        """Yield the gradient's pieces in the flat tensor."""
        size = self.chunk or max(self.count, 1)
        for begin in range(0, self.count, size):
            at = self.at(begin)
            yield slice(at, at + min(size, self.count - begin))


def packed(sizes: Iterable[tuple[str, int]]) -> list[Gradient]:
    """Return gradients of these names and sizes, one directly after another."""
    found, offset = [], 0
    for name, count in sizes:
        found.append(Gradient(name, offset, count))
        offset += count
    return found


def chunk_of(shape: Sequence[int], shards: int) -> int:
    """Return the elements of each rank's chunk of a gradient, padded.

    A chunk has the same number of rows of dimension 0 on each rank.
    """
    return -(-shape[0] // shards) * math.prod(shape[1:])


def scattered(shapes: Mapping[str, Sequence[int]], shards: int) -> list[Gradient]:
    """Return gradients in FSDP2's layout: a row for each rank, with its chunk of each gradient."""
    chunks = [chunk_of(shape, shards) for shape in shapes.values()]
    return [
        Gradient(name, sum(chunks[:i]), math.prod(shape), chunks[i], sum(chunks))
        for i, (name, shape) in enumerate(shapes.items())
    ]


def contiguous_slices(gradients: Iterable[Gradient]) -> list[slice]:
    """Return the pieces of several gradients, with adjacent ones merged."""
    found: list[slice] = []
    for gradient in gradients:
        for piece in gradient.slices():
            adjoins = found and found[-1].stop == piece.start
            start = found.pop().start if adjoins else piece.start
            found.append(slice(start, piece.stop))
    return found


def merge_adjacent(gradients: Sequence[Gradient]) -> list[Gradient]:
    """Return gradients with adjacent ones merged, in the flat tensor or in each row."""
    runs: list[list[Gradient]] = []
    for gradient in gradients:
        last = runs[-1][-1] if runs else None
        width = last and (last.chunk or last.count)
        if last and gradient.stride == last.stride and gradient.offset == last.offset + width:
            runs[-1].append(gradient)
        else:
            runs.append([gradient])
    return [_merged(run) for run in runs]


def _merged(run: Sequence[Gradient]) -> Gradient:
    name, first = f"uncompressed {summarize([g.name for g in run])}", run[0]
    if len(run) == 1:
        return first._replace(name=name)
    if not first.chunk:
        return Gradient(name, first.offset, sum(g.count for g in run))
    chunk = sum(g.chunk for g in run)
    rows = max(-(-g.count // g.chunk) for g in run)  # with the padding of the last chunks
    return Gradient(name, first.offset, rows * chunk, chunk, first.stride)


def summarize(names: Sequence[str]) -> str:
    """Return the first three names, and the number of the remaining ones."""
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
