"""State of a training job in PyTorch: model, optimizer, step, and what the user adds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist

from hipress.autotune.explanation import Explanation
from hipress.config import AUTO, CompressionConfig
from hipress.elastic.training import state
from hipress.elastic.training.outer_steps import schedule_of
from hipress.planning.plan import Decision
from hipress.torch.elastic.compression import InnerOptimizer, TensorOuterSteps, ViewOptimizer
from hipress.torch.integrations.forwarding import Forwarding
from hipress.torch.integrations.optimizer import DistributedOptimizer
from hipress.torch.settings import MIN_SIZE, Settings


class State(state.TrainingState):
    """State of a training job whose workers come and go.

    Args:
        model: Model on its device. All its parameters that require a gradient are averaged.
        optimizer: Optimizer of its parameters. Use ``state.optimizer`` instead, which averages
            first. With ``sync_every`` it is the inner optimizer, which does not average.
        compression: see :class:`hipress.torch.DistributedOptimizer`, also for the next arguments
        topology, min_size, warmup_steps, plan, shared_momentum, backward_passes_per_step: see there
        sync_every: H, to synchronize weights every H steps instead of gradients in each step; see
            :class:`hipress.torch.DiLoCo`. If a worker dies or joins, the other workers lose none of
            the H steps.
        outer_optimizer: optimizer of the same parameters, with ``sync_every``
        early_steps, early_sync_every, fragment_sync_delay, fragment_update_alpha: with
            ``sync_every``; see :class:`hipress.torch.DiLoCo`
        check_every: steps between bitwise comparisons of all workers' weights. With ``sync_every``,
            this and warmup_steps count outer steps.
        timeout: seconds to wait for enough workers, and for a worker that lives but is far behind.
            With ``sync_every`` it must be longer than three outer steps.
        kept: more values that a worker which joins copies: objects with ``state_dict()`` and
            ``load_state_dict()``, such as a scheduler, and plain values. They become attributes.

    Raises:
        ValueError: for a value that cannot be kept
    """

    module = "hipress.torch.elastic"
    outer_steps: TensorOuterSteps | None

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        compression: str | Mapping[str, Any] | CompressionConfig = "none",
        *,
        topology: str | None = None,
        min_size: int = MIN_SIZE,
        warmup_steps: int = 0,
        plan: str | os.PathLike[str] | Mapping[str, Decision] | None = None,
        shared_momentum: float = 0.0,
        backward_passes_per_step: int = 1,
        sync_every: int | None = None,
        outer_optimizer: torch.optim.Optimizer | None = None,
        early_steps: int = 0,
        early_sync_every: int = 5,
        fragment_sync_delay: int = 0,
        fragment_update_alpha: float = 0.0,
        check_every: int = 100,
        timeout: float = 300.0,
        **kept: Any,
    ) -> None:
        super().__init__(check_every, timeout)
        self.model = model
        self.optimizer = ElasticOptimizer(self, optimizer)
        self._passes = backward_passes_per_step
        self.options = {
            "compression": compression,
            "topology": topology,
            "min_size": min_size,
            "warmup_steps": warmup_steps,
            "plan": plan,
            "shared_momentum": shared_momentum,
        }
        schedule = schedule_of(
            sync_every,
            outer_optimizer,
            early_steps,
            early_sync_every,
            fragment_sync_delay,
            fragment_update_alpha,
            kept,
            "hipress.torch.DiLoCo",
        )
        if schedule is not None:
            if backward_passes_per_step != 1:
                raise ValueError(
                    "backward_passes_per_step is for gradients that are averaged: with sync_every "
                    "call backward() as often as you like before state.optimizer.step()"
                )
            self.outer_steps = TensorOuterSteps(self._named(), optimizer, outer_optimizer, schedule)
        self.keep(kept)
        self.settings()  # errors are raised before any worker waits for this one

    def connect(self, group: dist.ProcessGroup) -> DistributedOptimizer | InnerOptimizer:
        """Return the optimizer of one view. All workers of this group call this."""
        if self.outer_steps is not None:
            return self.outer_steps.connect(group, self.timeout, **self.options)
        return ViewOptimizer(
            self.optimizer._optimizer,
            self.model.named_parameters(),
            group=group,
            timeout=self.timeout,
            backward_passes_per_step=self._passes,
            **self.options,
        )

    def settings(self) -> dict[str, str]:
        """Return texts that must be the same on all workers, by name.

        Raises:
            ValueError: if a setting of the compression is wrong
        """
        wanted = Settings.of(**self.options, encode_on="host")
        wanted.refuse_auto_topology()
        return {
            **wanted.describe(),
            "backward_passes_per_step": str(self._passes),
            **super().settings(),
            "optimizer": type(self.optimizer._optimizer).__name__,
            "model": "; ".join(f"{n} {tuple(p.shape)} {p.dtype}" for n, p in self._named()),
        }

    def explain(self) -> Explanation:
        """Return the reasons for this view's compression, with the measurements, to be printed."""
        if self.session is not None and self.session.compression is not None:
            return self.session.compression.explain()
        wanted = Settings.of(**self.options, encode_on="host")
        if wanted.type != AUTO:
            return Explanation(f"{wanted}, as was asked for")
        return Explanation("auto: nothing is measured before training begins")

    def _named(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]

    def state_dict(self) -> dict[str, Any]:
        """Return everything except the compression's state, for a checkpoint."""
        saved = super().state_dict()
        saved.update(model=self.model.state_dict(), optimizer=self.optimizer.state_dict())
        return saved

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        super().load_state_dict(saved)

    def to_copy(self) -> dict[str, Any]:
        """Return what a worker that joins or is behind must :meth:`copy`."""
        copied = self.state_dict()
        if self.outer_steps is not None:  # after an outer step the weights are the outer weights
            trained = {name for name, _ in self._named()}
            copied["model"] = {n: v for n, v in copied["model"].items() if n not in trained}
        return copied

    def copy(self, copied: Mapping[str, Any]) -> None:
        """Restore what another worker's :meth:`to_copy` returned."""
        super().copy({**copied, "model": {**self.model.state_dict(), **copied["model"]}})

    def weights(self) -> Iterable[tuple[str, memoryview]]:
        """Return the bytes of the model's parameters."""
        return as_bytes(self.model.named_parameters())

    def drop_gradients(self) -> None:
        """Drop the gradients of an incomplete step."""
        for parameter in self.model.parameters():
            parameter.grad = None


class ElasticOptimizer(Forwarding):
    """The user's optimizer with a ``step()`` that first averages gradients over the present view.

    An inner optimizer does not average. Every other attribute is the wrapped optimizer's.
    """

    def __init__(self, state: State, optimizer: torch.optim.Optimizer) -> None:
        self._state, self._optimizer = state, optimizer

    def synchronize(self) -> None:
        """Wait until all gradients are averaged, for example to clip them before ``step()``."""
        self._distributed().synchronize()

    def step(self, closure: Any = None) -> Any:
        """Wait for the averages, and make the optimizer's step."""
        if self._state.applied:
            raise RuntimeError("call state.commit() after each optimizer.step()")
        session = self._state.session
        result = self._distributed().step(closure)
        self._state.applied = True
        session.applied()
        return result

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add a group of parameters to the optimizer. Only allowed before training begins."""
        if self._state.session is not None:
            raise RuntimeError(
                "workers have begun to train with the parameters that the optimizer has: call "
                "add_param_group() before"
            )
        self._optimizer.add_param_group(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients. Refused while they are being averaged."""
        self._distributed().zero_grad(set_to_none)

    def _distributed(self) -> DistributedOptimizer | InnerOptimizer:
        if self._state.session is None:
            raise RuntimeError(f"state.optimizer {self._state.belongs}")
        return self._state.session.adapter.optimizer


def as_bytes(parameters: Iterable[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, memoryview]]:
    """Yield the bytes of parameters, in host memory, by name."""
    for name, parameter in parameters:
        values = parameter.detach().cpu().contiguous().view(-1)
        yield name, memoryview(values.view(torch.uint8).numpy())
