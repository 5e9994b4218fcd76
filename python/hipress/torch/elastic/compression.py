"""Compression of PyTorch in one view of an elastic job: of gradients, or of outer steps.

With type "auto", the workers of the first view measure in their first step, or outer step. Those of
later views continue with that choice, which a joining worker copies. It includes the network's
usual times, so workers on a different network measure again. All numbers are compared by the
engine, whose operations end as soon as a worker's failure is known. PyTorch's own methods, whose
operations do not, are not candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from hipress.autotune.explanation import Explanation
from hipress.autotune.methods import UNCOMPRESSED
from hipress.autotune.outer_steps import OuterStepController
from hipress.config import AUTO
from hipress.elastic.training import outer_steps
from hipress.elastic.training.tuned_sums import EngineReductions
from hipress.local_sgd.outer import OuterWeights
from hipress.local_sgd.schedule import Schedule
from hipress.runtime.error_feedback import OwnState
from hipress.torch.autotune.choice import choose_method
from hipress.torch.autotune.frontend import OuterGroupFrontend, settings_for, shapes_of
from hipress.torch.autotune.optimizers import tuned_optimizers
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.dtypes import of_gradient
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.staging import device_of
from hipress.torch.integrations import outer
from hipress.torch.integrations.checks import refuse_replicated, refuse_sharded
from hipress.torch.integrations.optimizer import DistributedOptimizer
from hipress.torch.settings import Settings
from hipress.torch.synchronizer import Synchronizer


class ViewSynchronizer(TunedSynchronizer):
    """Synchronizer of one view, a TransactionalSynchronizer of ``hipress.elastic.training``.

    The next view continues its choice of type "auto".
    """

    known: Mapping[str, Any] | None = None
    """Choice of the last view, equal on all workers. It is set before the first step."""

    def choice(self) -> Mapping[str, Any] | None:
        """Return :attr:`known` for the next view."""
        return self.known

    def carry_over(self) -> dict[str, OwnState]:
        """Return this worker's states for the next view."""
        return self.error_feedback.carry_over(self.sizes)

    def common_state(self) -> dict[str, Any]:
        """Return the step and the shared momentum, which are the same on all workers."""
        momentum = self.shared.state() if self.shared else {}
        return {
            "step": self.step,
            "momentum": {n: [offset, values.cpu()] for n, (offset, values) in momentum.items()},
        }

    def load_common_state(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`common_state` returned."""
        self.step = state.get("step", 0)
        if self.shared:
            for name, (offset, values) in state.get("momentum", {}).items():
                self.shared.load(name, offset, values)


class ViewOptimizer(DistributedOptimizer):
    """Optimizer that averages gradients in one view."""

    _prepares_when_made = False  # when the view can be ended
    _measures_topology = False  # the ranks of a host differ between views

    def _new_compression(
        self,
        settings: Settings,
        engine: ProcessGroupEngine,
        group: dist.ProcessGroup,
        named: list[tuple[str, torch.nn.Parameter]],
        average: bool,
    ) -> ViewSynchronizer:
        settings = settings.with_fixed_topology()
        if settings.type != AUTO:
            return ViewSynchronizer(settings, engine, group, named, average=average)
        return ViewGradients(settings, engine, group, named, self._optimizer)


class ViewGradients(ViewSynchronizer):
    """A synchronizer that averages gradients.

    Args:
        settings: Settings of type "auto".
        optimizer: Optimizer that uses the gradients.
    """

    def __init__(
        self,
        settings: Settings,
        engine: ProcessGroupEngine,
        group: dist.ProcessGroup,
        named: list[tuple[str, torch.nn.Parameter]],
        optimizer: torch.optim.Optimizer,
    ) -> None:
        shapes = shapes_of(named)
        super().__init__(settings_for(UNCOMPRESSED, settings, shapes), engine, group, named)
        dtypes = {name: of_gradient(p) for name, p in named}
        device = device_of([p for _, p in named])
        self._measured = settings, engine, group, device, shapes, dtypes
        self._optimizers = tuned_optimizers(settings, named, optimizer)
        self._begun = False
        self.explain_by(Explanation("auto: nothing is measured before the first step"))

    def begin_step(self) -> None:
        """See :meth:`TunedSynchronizer.begin_step`. The workers choose before the first step."""
        if not self._begun:
            self._begin()
        super().begin_step()

    def _begin(self) -> None:
        reductions = EngineReductions(self.engine)
        allowed = self._optimizers.allow_feedback
        frontend = choose_method(
            *self._measured, allowed, hooks={}, reductions=reductions, known=self.known
        )
        self._begun = True
        self.tune(frontend, self._optimizers)
        if self._controller is None:
            return
        self._controller.load_network(self.known or {})
        if not frontend.choice.method.by_framework:
            self.replace_codec(frontend.settings_for())

    def has_to_send(self) -> bool:
        """See :meth:`TunedSynchronizer.has_to_send`."""
        return any(
            bool(values.any())
            for state in self.error_feedback.to_reshard.values()
            for name, values in state.states.items()
            if name in ("residual", "mean")
        )

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice for the next view."""
        return self.known if self._controller is None else self._controller.state_dict()


class ViewPseudoGradients(ViewSynchronizer):
    """A synchronizer that averages pseudo-gradients, all of which travel at once."""

    _tuner: OuterStepController | None = None

    def choose_by(self, settings: Settings, named: Any, sync_every: int, delay: int) -> None:
        """Choose before each outer step, with settings of type "auto" only.

        The weights may travel for ``delay`` inner steps.
        """
        reductions = EngineReductions(self.engine)
        frontend = OuterGroupFrontend(settings, self, named, None, lambda _: [named], reductions)
        self._tuner = OuterStepController(frontend, sync_every, delay=delay)
        self.explain_by(self._tuner.explanation)

    def before_round(self, step: int, steps: int, seconds: float) -> None:
        """See :meth:`hipress.autotune.outer_steps.OuterStepController.before_outer_step`."""
        if self._tuner is not None:
            self._tuner.before_outer_step(step, steps, seconds, self.known)

    def took(self, seconds: float) -> None:
        """Record how long the weights traveled."""
        if self._tuner is not None:
            self._tuner.record_travel(0, seconds)

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice for the next view."""
        return self._tuner and self._tuner.view_state() or self.known


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
        refuse_replicated(named)
        refuse_sharded(
            named,
            "elastic training",
            "train with hipress.torch.DiLoCo, whose sites stay to the end of the job",
        )
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
