"""Rounds: elastic training that synchronises weights every H steps (DiLoCo).

A worker makes the H *inner steps* of a round by itself, whatever becomes of the others. The
synchronisation at its end is what the workers do together: the step of the membership protocol, and
the transaction that is put back and made again by those that are left. Until it succeeds nothing
changes but what error feedback remembers, so nobody makes an inner step again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from hipress.torch.integrations import outer
from hipress.torch.settings import Settings
from hipress.torch.synchronizer import Synchronizer

_log = logging.getLogger("hipress")


_DILOCO_ONLY = ("fragments", "fragment_sync_delay", "fragment_update_alpha", "backup_device")


def check_others(names: Iterable[str], backward_passes_per_step: int) -> None:
    """Refuses what does not go with rounds.

    :param names: of what else a State was given
    :raises ValueError: naming it
    """
    for name in _DILOCO_ONLY:
        if name in names:
            raise ValueError(
                "elastic training synchronises the model as one fragment, without delay, in host "
                f"memory: leave {name} out (hipress.torch.DiLoCo has it)"
            )
    if backward_passes_per_step != 1:
        raise ValueError(
            "backward_passes_per_step is for gradients that are averaged: with sync_every call "
            "backward() as often as you like before state.optimizer.step()"
        )


class Rounds:
    """The outer weights and optimizer of a job, which outlive its views.

    :param named: the model's trained parameters
    :param outer_optimizer, sync_every: see :class:`hipress.torch.elastic.State`
    :raises ValueError: if something is wrong
    """

    def __init__(
        self,
        named: outer.Named,
        inner_optimizer: torch.optim.Optimizer,
        outer_optimizer: torch.optim.Optimizer | None,
        sync_every: int | None,
    ) -> None:
        if sync_every is None:
            raise ValueError("outer_optimizer needs sync_every: the steps of a round")
        if not isinstance(outer_optimizer, torch.optim.Optimizer):
            raise ValueError(
                "sync_every needs outer_optimizer: one torch.optim.Optimizer over the model's "
                f"parameters, not {outer_optimizer!r}"
            )
        if outer_optimizer is inner_optimizer:
            raise ValueError("outer_optimizer must be another one than the inner optimizer")
        outer.check([named], [outer_optimizer], sync_every)
        self.sync_every = sync_every
        self.completed = 0
        """Rounds that are complete, of all workers together."""
        self.inner_steps = 0
        """Steps of this worker since the last synchronisation that it has the result of."""
        self._named, self._inner, self._optimizer = named, inner_optimizer, outer_optimizer
        self._outer = outer.Outer([named], [outer_optimizer])
        (self._fragment,) = self._outer.fragments
        self._loaded = False

    def begin(self) -> None:
        """Begins with the model's weights, or with the outer weights that were loaded."""
        if self._loaded:
            self.take_outer_weights()
        else:
            self._fragment.begin_with_weights()

    def connect(
        self, group: dist.ProcessGroup, timeout: float, **options: Any
    ) -> InnerOptimizer:
        """Connects the workers of a group, which all call this.

        :param options: of the compression
        """
        compression = outer.connect(
            lambda: Settings.of(**options, encode_on="host"), group, self._named, timeout,
            **self.settings(),
        )  # fmt: skip
        return InnerOptimizer(self._inner, compression)

    def synchronize(self, compression: Synchronizer) -> None:
        """Averages how far the workers have come since the last synchronisation, and makes the
        outer optimizer's step with that. The round is complete then.

        :raises HipressError: if a worker has died or is silent; weights have not changed then
        """
        self._fragment.begin(compression, 0)
        if self._outer.take(self._fragment):
            compression.step += 1
        else:
            _log.warning(
                "round %d: a pseudo-gradient has a NaN or Inf; weights are those of the round "
                "before again", self.completed + 1,
            )  # fmt: skip
        self.completed, self.inner_steps = self.completed + 1, 0

    def weights(self) -> list[tuple[str, torch.Tensor]]:
        """The outer weights, by the parameters' names."""
        return list(self._fragment.outer.items())

    def take_outer_weights(self) -> None:
        """Makes the model's weights the outer weights; what was trained since is given up."""
        self._fragment.update(0.0)
        self.inner_steps = 0

    def settings(self) -> dict[str, str]:
        """Texts that must be the same on all workers, by name."""
        return {
            "sync_every": str(self.sync_every),
            "outer_optimizer": type(self._optimizer).__name__,
        }

    def state_dict(self) -> dict[str, Any]:
        return {"completed": self.completed, **self._outer.state_dict()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from what :meth:`state_dict` returned.

        :raises ValueError: if it is another model's
        """
        self._outer.load_state_dict(saved)
        self.completed, self._loaded = saved["completed"], True


class InnerOptimizer:
    """The inner optimizer in one view, in the place of a DistributedOptimizer.

    :param compression: of the view's synchronisations
    """

    def __init__(self, optimizer: torch.optim.Optimizer, compression: Synchronizer) -> None:
        self._optimizer, self.compression = optimizer, compression

    def step(self, closure: Any = None) -> Any:
        return self._optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._optimizer.zero_grad(set_to_none)

    def synchronize(self) -> None:
        """Returns at once: gradients are this worker's own."""

    def detach(self) -> None:
        """Does nothing: there are no hooks."""
