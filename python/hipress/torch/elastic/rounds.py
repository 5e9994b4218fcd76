"""Rounds of PyTorch's: outer weights are tensors, and gradients stay each worker's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from hipress.elastic_training import rounds
from hipress.torch.elastic import transfer
from hipress.torch.elastic.tuned import ViewPseudoGradients
from hipress.torch.integrations import outer
from hipress.torch.settings import AUTO, Settings
from hipress.torch.synchronizer import Synchronizer


class Rounds(rounds.Rounds):
    """See :class:`hipress.elastic_training.rounds.Rounds`.

    :param named: the model's trained parameters
    :param outer_optimizer: see :class:`hipress.torch.elastic.State`
    :raises ValueError: if something is wrong
    """

    def __init__(
        self,
        named: outer.Named,
        inner_optimizer: torch.optim.Optimizer,
        outer_optimizer: torch.optim.Optimizer,
        settings: rounds.RoundSettings,
    ) -> None:
        super().__init__(settings, type(outer_optimizer).__name__)
        if not isinstance(outer_optimizer, torch.optim.Optimizer):
            raise ValueError(
                "outer_optimizer is one torch.optim.Optimizer over the model's parameters, not "
                f"{outer_optimizer!r}"
            )
        if outer_optimizer is inner_optimizer:
            raise ValueError("outer_optimizer must be another one than the inner optimizer")
        outer.check([named], [outer_optimizer])
        self._named, self._inner = named, inner_optimizer
        self._trained = outer.Trained(named, [inner_optimizer])
        self._outer = outer.Outer([named], [outer_optimizer])
        (self._fragment,) = self._outer.fragments

    def connect(
        self, group: dist.ProcessGroup, timeout: float, **options: Any
    ) -> InnerOptimizer:
        """Connects the workers of a group, which all call this.

        :param options: of the compression
        """
        settings, compression = outer.connect(
            lambda: Settings.of(**options, encode_on="host"), group, self._named, timeout,
            ViewPseudoGradients, **self.settings(),
        )  # fmt: skip
        if settings.type == AUTO:
            delay = self._settings.delay
            compression.choose_by(settings, self._named, self.schedule.sync_every, delay)
        return InnerOptimizer(self._inner, compression)

    def start(self, compression: ViewPseudoGradients) -> None:
        self._trained.check()
        self._fragment.begin(compression, 0)

    def take(self, compression: ViewPseudoGradients, alpha: float) -> bool:
        finite = self._outer.take(self._fragment, alpha, average=self.averages)
        compression.took(self._fragment.seconds)
        if finite:
            compression.step += 1
        else:
            outer.forget_non_finite(self._inner)
        return finite

    def abandon(self) -> None:
        self._fragment.abandon()

    def begin_with_weights(self) -> None:
        self._fragment.begin_with_weights()

    def give_outer_weights(self) -> None:
        self._fragment.update(0.0)

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        return transfer.as_bytes(self._fragment.outer.items())

    def outer_state(self) -> dict[str, Any]:
        return self._outer.state_dict(under_way=False)

    def load_outer_state(self, saved: Mapping[str, Any]) -> None:
        self._outer.load_state_dict(saved)


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
