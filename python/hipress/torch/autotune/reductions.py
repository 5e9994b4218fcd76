"""Reductions of numbers over the ranks of a process group, by the group.

Elastic jobs have :class:`hipress.elastic.training.tuned_sums.EngineReductions` instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.distributed as dist

from hipress.autotune.frontend import RankReductions
from hipress.errors import HipressError
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.gloo_threads import completed


@contextlib.contextmanager
def failing(engine: ProcessGroupEngine) -> Iterator[None]:
    """Make an error in this context end all later steps on all ranks."""
    try:
        yield
    except HipressError as error:
        failed = engine.fail(error, "auto")
        if failed is error:  # an error must not be its own cause
            raise
        raise failed from error


@contextlib.contextmanager
def raising_hipress_errors(engine: ProcessGroupEngine, in_training: bool) -> Iterator[None]:
    """Raise errors of the process group in a measurement as HipressError.

    ``in_training`` is whether an error also ends all later steps on all ranks.
    """
    with failing(engine) if in_training else contextlib.nullcontext():
        try:
            yield
        except HipressError:
            raise
        except RuntimeError as error:  # from the process group
            raise HipressError(engine.lost(error, "auto")) from error


class GroupReductions(RankReductions):
    """Reductions by the user's process group."""

    def __init__(
        self, engine: ProcessGroupEngine, group: dist.ProcessGroup, device: torch.device
    ) -> None:
        self._engine, self._group, self._device = engine, group, device

    def begin_max(self, values: Sequence[float]) -> tuple[dist.Work, torch.Tensor]:
        """Begin the maximum of some numbers over all ranks."""
        mine = torch.tensor(values, dtype=torch.float64, device=self._device)
        return self._reduce(mine, dist.ReduceOp.MAX), mine

    def end_max(self, begun: tuple[dist.Work, torch.Tensor]) -> list[float]:
        """Return the maxima when all ranks have sent theirs."""
        return self._wait(*begun).tolist()

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of an array over all ranks."""
        mine = torch.from_numpy(values).to(self._device)
        total = self._wait(self._reduce(mine, dist.ReduceOp.SUM), mine)
        return (total / self._engine.world_size).cpu().numpy()

    def _reduce(self, mine: torch.Tensor, op: dist.ReduceOp) -> dist.Work:
        return completed(dist.all_reduce(mine, op, self._group, async_op=True))

    def _wait(self, work: dist.Work, mine: torch.Tensor) -> torch.Tensor:
        with failing(self._engine):
            self._engine.wait(work, "auto", mine.device)
        return mine
