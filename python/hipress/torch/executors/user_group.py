"""Sums on the user's own process group, of gradients that the engine does not support."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist

from hipress.torch.gradient import Gradient


class PendingSum(NamedTuple):
    """Pending collective operation. ``unpack()`` copies its results to the gradients."""

    work: dist.Work
    unpack: Callable[[], None]


class GroupAllReduce:
    """All-reduce of some gradients of a bucket, packed into one buffer.

    Summands are divided by ``divisor``: the number of ranks, if results are means.
    """

    def __init__(
        self, group: dist.ProcessGroup, gradients: Sequence[Gradient], divisor: int
    ) -> None:
        self._group, self._divisor = group, divisor
        self._slices = [piece for gradient in gradients for piece in gradient.slices()]
        self._buffer: torch.Tensor | None = None

    def start(self, flat: torch.Tensor) -> PendingSum:
        """Start the operation in the training thread.

        A group's collective operations must start in the same order on all ranks.
        """
        pieces, packed = [flat[piece] for piece in self._slices], flat
        count = sum(map(len, pieces))
        if count < len(flat):
            if self._buffer is None:
                self._buffer = flat.new_empty(count)
            packed = torch.cat(pieces, out=self._buffer)
        if self._divisor > 1:
            packed.div_(self._divisor)
        work = dist.all_reduce(packed, group=self._group, async_op=True)

        def unpack() -> None:
            if packed is not flat:
                for piece, values in zip(pieces, packed.split([len(p) for p in pieces])):
                    piece.copy_(values)

        return PendingSum(work, unpack)


class GroupReduceScatter:
    """Reduce-scatter of some gradients of a bucket with a row for each rank: means."""

    def __init__(self, group: dist.ProcessGroup, gradients: Sequence[Gradient]) -> None:
        self._group, self._gradients = group, gradients
        self._buffer: torch.Tensor | None = None

    def start(self, flat: torch.Tensor) -> PendingSum:
        """Start the operation, in the training thread, see :meth:`GroupAllReduce.start`."""
        rank, rows = dist.get_rank(self._group), dist.get_world_size(self._group)
        table = flat.view(rows, -1)
        chunks = [g.chunk for g in self._gradients]
        pieces = [table[:, g.offset : g.offset + g.chunk] for g in self._gradients]
        if self._buffer is None:
            self._buffer = flat.new_empty(rows + 1, sum(chunks))
        packed, result = self._buffer[:rows], self._buffer[rows]
        torch.cat(pieces, dim=1, out=packed)
        scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        # Gloo has no average.
        work = scatter(result, packed.div_(rows).view(-1), group=self._group, async_op=True)

        def unpack() -> None:
            for piece, values in zip(pieces, result.split(chunks)):
                piece[rank].copy_(values)

        return PendingSum(work, unpack)
