"""Numbers that the ranks of a process group compare, while they choose and follow.

By the user's own process group; or in elastic jobs by the engine, where an operation ends as soon
as it is known that a member is gone, and not with the group's timeout.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
import torch.distributed as dist

from hipress.secopa.steps import MEASURING
from hipress.torch.dtypes import floats
from hipress.torch.executors.engine import Engine, HipressError
from hipress.torch.executors.gloo_threads import completed
from hipress.torch.gradient import packed
from hipress.torch.settings import Settings
from hipress.torch.synchronizer import Synchronizer

_MOST = 8
"""Numbers of a rank that the engine compares at once, at most."""


class Numbers(Protocol):
    """Numbers of all ranks, which all call this together."""

    def begin_maxima(self, values: Sequence[float]) -> Any:
        """Begins to compare up to eight numbers; waits for nobody."""

    def end_maxima(self, begun: Any) -> list[float]:
        """The maxima over all ranks, with the same bits on each.

        :raises HipressError: if a rank dies or is silent meanwhile; all later steps raise it, too
        """

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean over all ranks of float32[n] or float64[n], with the same bits on each.

        :raises HipressError: likewise
        """


@contextlib.contextmanager
def failing(engine: Engine) -> Iterator[None]:
    """Has an error in it end all later steps, on all ranks."""
    try:
        yield
    except HipressError as error:
        failed = engine.fail(error, "auto")
        if failed is error:  # an error that is its own cause would be a circle
            raise
        raise failed from error


def maxima(numbers: Numbers, *values: float) -> list[float]:
    """The maxima over all ranks, for which all wait."""
    return numbers.end_maxima(numbers.begin_maxima(values))


class GroupNumbers:
    """See :class:`Numbers`: by the user's process group.

    :param device: where the numbers are
    """

    def __init__(self, engine: Engine, group: dist.ProcessGroup, device: torch.device) -> None:
        self._engine, self._group, self._device = engine, group, device

    def begin_maxima(self, values: Sequence[float]) -> tuple[dist.Work, torch.Tensor]:
        mine = torch.tensor(values, dtype=torch.float64, device=self._device)
        return self._reduce(mine, dist.ReduceOp.MAX), mine

    def end_maxima(self, begun: tuple[dist.Work, torch.Tensor]) -> list[float]:
        return self._waited(*begun).tolist()

    def mean(self, values: np.ndarray) -> np.ndarray:
        mine = torch.from_numpy(values).to(self._device)
        total = self._waited(self._reduce(mine, dist.ReduceOp.SUM), mine)
        return (total / self._engine.world_size).cpu().numpy()

    def _reduce(self, mine: torch.Tensor, op: dist.ReduceOp) -> dist.Work:
        return completed(dist.all_reduce(mine, op, self._group, async_op=True))

    def _waited(self, work: dist.Work, mine: torch.Tensor) -> torch.Tensor:
        with failing(self._engine):
            self._engine.wait(work, "auto", mine.device)
        return mine


class EngineNumbers:
    """See :class:`Numbers`: by the engine, in float32. Each rank has elements of its own in a sum,
    which no other one's rounding reaches."""

    def __init__(self, engine: Engine, group: dist.ProcessGroup) -> None:
        self._engine, self._group = engine, group
        self._sums: dict[int, Synchronizer] = {}  # by elements
        self._last: torch.futures.Future | None = None

    def begin_maxima(self, values: Sequence[float]) -> tuple[torch.futures.Future, int]:
        mine = floats(self._engine.world_size, _MOST)
        row = torch.tensor(values, dtype=torch.float32, device="cpu")
        mine[self._engine.rank, : len(values)] = row
        return self._sum(mine.view(-1)), len(values)

    def end_maxima(self, begun: tuple[torch.futures.Future, int]) -> list[float]:
        future, count = begun
        future.wait()
        return future.value().view(-1, _MOST).amax(0)[:count].tolist()

    def mean(self, values: np.ndarray) -> np.ndarray:
        future = self._sum(torch.as_tensor(values, dtype=torch.float32, device="cpu"))
        future.wait()
        return (future.value() / self._engine.world_size).numpy()

    def _sum(self, mine: torch.Tensor) -> torch.futures.Future:
        if self._last is not None:
            self._last.wait()  # which all ranks have begun
        size = mine.numel()
        if size not in self._sums:
            named = [(f"{MEASURING}{size} numbers", torch.empty(size, device="meta"))]
            self._sums[size] = Synchronizer(
                Settings(), self._engine, self._group, named, average=False
            )
        gradients = packed([(f"{MEASURING}{size} numbers", size)])
        self._last = self._sums[size].synchronize(mine, gradients, "auto")
        return self._last
