"""Type "auto" in one view of an elastic job.

The members of the first view measure in their first step, or round. Those of later views go on with
that choice, which a worker that joins copies; the network's usual times are a part of it, so where
other members make another network of it, they measure again as they do when a link changes.

All numbers go by the engine: there what a worker waits for ends as soon as a member is known to be
gone. PyTorch's own ways, whose operations would not end so, are none to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from hipress.config import AUTO
from hipress.secopa.explanation import Explanation
from hipress.torch.dtypes import of_gradient
from hipress.torch.executors.engine import Engine
from hipress.torch.executors.staging import device_of
from hipress.torch.integrations.optimizer import DistributedOptimizer
from hipress.torch.settings import Settings
from hipress.torch.tuning.choice import choose, settings_of
from hipress.torch.tuning.following import Following
from hipress.torch.tuning.numbers import EngineNumbers
from hipress.torch.tuning.optimizers import choosing
from hipress.torch.tuning.rounds import GroupOfRounds
from hipress.tuning.rounds import RoundChoice
from hipress.tuning.ways import UNCOMPRESSED


class Choosing(Following):
    """A compression whose choice outlives the view."""

    known: Mapping[str, Any] | None = None
    """The choice of the view before, the same on all members, before the first step."""

    def choice(self) -> Mapping[str, Any] | None:
        """What the next view's has as :attr:`known`."""
        return self.known


class ViewOptimizer(DistributedOptimizer):
    """The optimizer that averages gradients in one view."""

    _prepares_when_made = False  # but when the view can be ended
    _measures_topology = False  # which ranks share a host changes from view to view

    def _new_compression(
        self, settings: Settings, engine: Engine, group: dist.ProcessGroup,
        named: list[tuple[str, torch.nn.Parameter]], average: bool,
    ) -> Following:  # fmt: skip
        settings = settings.with_fixed_topology()
        if settings.type != AUTO:
            return super()._new_compression(settings, engine, group, named, average)
        return ChoosingGradients(settings, engine, group, named, self._optimizer)


class ChoosingGradients(Choosing):
    """Of means of gradients.

    :param settings: of type "auto"
    :param optimizer: that uses them
    """

    def __init__(
        self, settings: Settings, engine: Engine, group: dist.ProcessGroup,
        named: list[tuple[str, torch.nn.Parameter]], optimizer: torch.optim.Optimizer,
    ) -> None:  # fmt: skip
        shapes = {name: tuple(p.shape) for name, p in named}
        dtypes = {name: of_gradient(p) for name, p in named}
        super().__init__(settings_of(UNCOMPRESSED, settings, shapes), engine, group, named)
        self._choose = lambda numbers, allowed: choose(
            settings, engine, group, device_of([p for _, p in named]), shapes,
            dtypes, allowed, {}, numbers=numbers, known=self.known,
        )  # fmt: skip
        self._optimizers = choosing(settings, named, optimizer)
        self._begun = False
        self.explain_by(Explanation("auto: nothing is measured before the first step"))

    def begin_step(self) -> None:
        """See :meth:`Following.begin_step`; before the first one the members choose."""
        if not self._begun:
            self._begin()
        super().begin_step()

    def _begin(self) -> None:
        numbers = EngineNumbers(self.engine, self.collective.group)
        chosen = self._choose(numbers, self._optimizers.allow_feedback)
        self._begun = True
        self.follow(chosen, self._optimizers)
        if self._follower is None:
            return
        if self.known and "network" in self.known:
            self._follower.load_network(self.known)
        if not chosen.choice.way.own:
            self.replace_codec(chosen.settings())

    def has_to_send(self) -> bool:
        """See :meth:`Following.has_to_send`."""
        return any(bool(v.any()) for s in self.error_feedback.to_reshard.values()
                   for n, v in s.states.items() if n in ("residual", "mean"))  # fmt: skip

    def choice(self) -> Mapping[str, Any] | None:
        return self.known if self._follower is None else self._follower.state_dict()


class ChoosingRounds(Choosing):
    """Of means of pseudo-gradients, all of which travel at once."""

    _rounds: tuple[GroupOfRounds, RoundChoice] | None = None

    def choose_by(self, settings: Settings, named: Any, sync_every: int, delay: int) -> None:
        """Chooses before each round; not called where a type was asked for.

        :param settings: of type "auto"
        :param named: the weights
        :param delay: inner steps for which they may travel
        """
        numbers = EngineNumbers(self.engine, self.collective.group)
        front = GroupOfRounds(settings, self, named, None, lambda _: [named], numbers)
        self._rounds = front, RoundChoice(front, front.ways, sync_every, delay=delay)
        self.explain_by(self._rounds[1].explanation)

    def before_round(self, step: int, steps: int, seconds: float) -> None:
        """See :meth:`hipress.tuning.rounds.RoundChoice.before_round`."""
        if self._rounds is None:
            return
        front, choice = self._rounds
        if choice.plan is None and self.known and choice.load_state_dict(self.known):
            front.use(choice.way)
        if choice.before_round(step, steps, seconds):
            front.use(choice.way)

    def took(self, seconds: float) -> None:
        """Takes how long the weights were on their way."""
        if self._rounds is not None:
            self._rounds[1].took(0, seconds)

    def choice(self) -> Mapping[str, Any] | None:
        return self._rounds and self._rounds[1].to_carry() or self.known
