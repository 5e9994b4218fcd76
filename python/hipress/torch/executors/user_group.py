"""Sums on the user's own process group, of what the engine cannot take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist


class Started(NamedTuple):
    """A collective operation on its way; ``back()`` puts results where the gradients are."""

    work: dist.Work
    back: Callable[[], None]


class UserGroup:
    """A process group of the user's, and memory for what it sums.

    :param divisor: of the summands: the number of ranks, if results are means
    """

    def __init__(self, group: dist.ProcessGroup, divisor: int) -> None:
        self.group, self._divisor = group, divisor
        self.memory: dict[tuple, torch.Tensor] = {}
        """By bucket."""

    def all_reduce(
        self, flat: torch.Tensor, pieces: Sequence[torch.Tensor], key: tuple
    ) -> Started:
        """Starts the all-reduce of pieces of ``flat``: in the training thread, for a group's
        collectives must begin in the same order on all ranks.

        :param key: the bucket's
        """
        joined = self._joined(pieces, flat, key)
        if self._divisor > 1:
            joined.div_(self._divisor)
        work = dist.all_reduce(joined, group=self.group, async_op=True)

        def back() -> None:
            if joined is not flat:
                for piece, values in zip(pieces, joined.split([len(p) for p in pieces])):
                    piece.copy_(values)

        return Started(work, back)

    def _joined(
        self, pieces: Sequence[torch.Tensor], flat: torch.Tensor, key: tuple
    ) -> torch.Tensor:
        """The pieces one behind the other: ``flat`` itself if they are all of it."""
        count = sum(len(piece) for piece in pieces)
        if count == len(flat):
            return flat
        if key not in self.memory:
            self.memory[key] = flat.new_empty(count)
        return torch.cat(list(pieces), out=self.memory[key])
