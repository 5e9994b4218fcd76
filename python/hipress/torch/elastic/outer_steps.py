"""Outer steps of PyTorch: outer weights are tensors, and gradients stay each worker's own."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from hipress.elastic.training import outer_steps
from hipress.local_sgd.outer import OuterWeights
from hipress.local_sgd.schedule import Schedule
from hipress.torch.elastic.tuned import ViewPseudoGradients
from hipress.torch.integrations import outer
from hipress.torch.settings import AUTO, Settings
from hipress.torch.synchronizer import Synchronizer


class TensorOuterSteps(outer_steps.OuterSteps):
    """See :class:`hipress.elastic.training.outer_steps.OuterSteps`.

    Args:
        named: The model's trained parameters.
        inner_optimizer: The inner optimizer.
        outer_optimizer: See :class:`hipress.torch.elastic.State`.
        schedule: Inner steps after which an outer step starts.

    Raises:
        ValueError: If an argument is wrong.
    """

    def __init__(
        self,
        named: outer.Named,
        inner_optimizer: torch.optim.Optimizer,
        outer_optimizer: torch.optim.Optimizer,
        schedule: Schedule,
    ) -> None:
        if not isinstance(outer_optimizer, torch.optim.Optimizer):
            raise ValueError(
                "outer_optimizer is one torch.optim.Optimizer over the model's parameters, not "
                f"{outer_optimizer!r}"
            )
        if outer_optimizer is inner_optimizer:
            raise ValueError("outer_optimizer must be another one than the inner optimizer")
        outer.check([named], [outer_optimizer])
        weights = outer.TensorWeights(named, [inner_optimizer])
        optimizer = outer.OuterOptimizers([outer_optimizer], weights)
        self._named, self._inner, self._average = named, inner_optimizer, outer.TensorAverage()
        super().__init__(
            schedule,
            OuterWeights(outer.names_of([named]), weights, optimizer, self._average),
            type(outer_optimizer).__name__,
        )

    def connect(self, group: dist.ProcessGroup, timeout: float, **options: Any) -> InnerOptimizer:
        """Connect the workers of a group. All of them call this.

        Args:
            group: Process group of the view, or of ranks that repeat an outer step.
            timeout: Seconds to wait for another rank.
            options: Options of the compression.
        """
        settings, compression = outer.connect(
            lambda: Settings.of(**options, encode_on="host"),
            group,
            self._named,
            timeout,
            ViewPseudoGradients,
            **self.settings(),
        )
        if settings.type == AUTO:
            every, delay = self.schedule.sync_every, self.schedule.delay
            compression.choose_by(settings, self._named, every, delay)
        self._average.synchronizer = compression
        return InnerOptimizer(self._inner, compression)


class InnerOptimizer:
    """Inner optimizer in one view, instead of a DistributedOptimizer.

    Args:
        optimizer: The user's optimizer.
        compression: Synchronizer of the view's outer steps.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, compression: Synchronizer) -> None:
        self._optimizer, self.compression = optimizer, compression

    def step(self, closure: Any = None) -> Any:
        """Make an inner step."""
        return self._optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients."""
        self._optimizer.zero_grad(set_to_none)

    def synchronize(self) -> None:
        """Return at once: gradients are this worker's own."""

    def detach(self) -> None:
        """Do nothing: there are no hooks."""
