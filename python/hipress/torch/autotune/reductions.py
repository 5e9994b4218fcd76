"""Reductions of numbers over the ranks of a process group.

They use the user's process group. In elastic jobs they use the engine, whose operations end as soon
as a worker's failure is known, and not at the group's timeout.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
import torch.distributed as dist

from hipress.autotune.frontend import RankReductions, SumReductions
from hipress.autotune.steps import MEASURING
from hipress.torch.executors.engine import Engine, HipressError
from hipress.torch.executors.gloo_threads import completed
from hipress.torch.gradient import packed
from hipress.torch.settings import Settings
from hipress.torch.synchronizer import Synchronizer


@contextlib.contextmanager
def failing(engine: Engine) -> Iterator[None]:
    """Make an error in this context end all later steps on all ranks."""
    try:
        yield
    except HipressError as error:
        failed = engine.fail(error, "auto")
        if failed is error:  # an error must not be its own cause
            raise
        raise failed from error


class GroupReductions(RankReductions):
    """Reductions by the user's process group."""

    def __init__(self, engine: Engine, group: dist.ProcessGroup, device: torch.device) -> None:
        self._engine, self._group, self._device = engine, group, device

    def begin_max(self, values: Sequence[float]) -> tuple[dist.Work, torch.Tensor]:
        mine = torch.tensor(values, dtype=torch.float64, device=self._device)
        return self._reduce(mine, dist.ReduceOp.MAX), mine

    def end_max(self, begun: tuple[dist.Work, torch.Tensor]) -> list[float]:
        return self._wait(*begun).tolist()

    def mean(self, values: np.ndarray) -> np.ndarray:
        mine = torch.from_numpy(values).to(self._device)
        total = self._wait(self._reduce(mine, dist.ReduceOp.SUM), mine)
        return (total / self._engine.world_size).cpu().numpy()

    def _reduce(self, mine: torch.Tensor, op: dist.ReduceOp) -> dist.Work:
        return completed(dist.all_reduce(mine, op, self._group, async_op=True))

    def _wait(self, work: dist.Work, mine: torch.Tensor) -> torch.Tensor:
        with failing(self._engine):
            self._engine.wait(work, "auto", mine.device)
        return mine


class EngineReductions(SumReductions):
    """Reductions by the engine."""

    def __init__(self, engine: Engine, group: dist.ProcessGroup) -> None:
        super().__init__(engine.rank, engine.world_size)
        self._engine, self._group = engine, group
        self._sums: dict[int, Synchronizer] = {}
        """Synchronizers by elements."""
        self._last: torch.futures.Future | None = None

    def begin_sum(self, values: np.ndarray) -> Callable[[], np.ndarray]:
        if self._last is not None:
            self._last.wait()  # all ranks have begun it
        name = f"{MEASURING}{values.size} numbers"
        if values.size not in self._sums:
            named = [(name, torch.empty(values.size, device="meta"))]
            self._sums[values.size] = Synchronizer(
                Settings(), self._engine, self._group, named, average=False
            )
        gradients = packed([(name, values.size)])
        future = self._sums[values.size].synchronize(torch.from_numpy(values), gradients, "auto")
        self._last = future

        def wait() -> np.ndarray:
            future.wait()
            return future.value().numpy()

        return wait
