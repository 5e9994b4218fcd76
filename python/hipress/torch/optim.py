"""Optimizers for compressed gradients: AdamW whose denominators stay fixed after a warm-up."""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch
import torch.distributed as dist

from hipress.torch.dtypes import is_dtensor
from hipress.torch.settings import Settings
from hipress.torch.synchronizer import Synchronizer


class ByParameter(torch.optim.Optimizer, abc.ABC):
    """Optimizer whose step updates each parameter that has a gradient separately."""

    @torch.no_grad()
    def step(self, closure: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
        """Make one step. ``closure`` computes loss and gradients again, as in torch.optim."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    @abc.abstractmethod
    def _update(self, parameter: torch.Tensor, group: dict) -> None:
        """Update a parameter with the options of its group."""


class FrozenAdamW(ByParameter):
    """AdamW whose second moment is frozen after ``freeze_step`` steps.

    Adam divides by the size of past gradients. What error feedback delays arrives later in larger
    amounts. Adam then divides these by their own size, so part of them is lost. With a constant
    denominator, the step is linear in the gradients and nothing is lost. 1-bit Adam does the same
    (Tang et al., ICML 2021, arXiv:2102.02888). Do not compress the gradients of these first steps:

    >>> hipress.torch.compress(model, "onebit", warmup_steps=500)
    >>> optimizer = hipress.torch.FrozenAdamW(model.parameters(), lr=1e-3, freeze_step=500)

    Until then it is torch.optim.AdamW. It loads and saves the state of that class.

    With ``compression`` that has a momentum, the first moment is compressed. The result is divided
    by the denominators, and that is the step. This is 1-bit Adam:

    >>> compression = hipress.torch.compress(
    ...     model, "onebit", shared_momentum=0.9, warmup_steps=500)
    >>> optimizer = hipress.torch.FrozenAdamW(
    ...     model.parameters(), lr=1e-3, freeze_step=500, compression=compression)

    With a codec's own ``momentum`` instead (ternary, dgc), every rank compresses the running sum of
    its own gradients. It never receives those of other ranks, as in DGC (Lin et al., ICLR 2018,
    arXiv:1712.01887; with ``dgc`` what is sent is subtracted from it). Parameters that are too
    small to be compressed keep their first moment here.

    The compression's steps count, not this optimizer's. So all parameters freeze when its warm-up
    ends, also if a GradScaler has skipped steps. A parameter with fewer than half of freeze_step
    updates by then, because it was not used, freezes when it has had that half.

    Args:
        freeze_step: updates of a parameter's second moment; a seventh of all steps is enough
        floor: minimum denominator after that, as a share of its tensor's root mean square.
            Otherwise elements whose gradient has always been 0 (rare words) would be divided by 0.
        compression: result of ``compress()`` or ``compress_fsdp()``, with ``warmup_steps`` as
            freeze_step. Its ``shared_momentum`` must be 0 or beta 1. So must the codec's momentum,
            in a topology that encodes every rank's gradient separately: ps, star, or hierarchical
            with one device for each host. A :class:`DistributedOptimizer` around this one sets its
            own.

    Raises:
        ValueError: for a value out of range, or that is not the compression's; also in
            ``add_param_group()`` and ``load_state_dict()``, which then change nothing
        TypeError: for another kind of compression
    """

    def __init__(
        self,
        params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        freeze_step: int,
        floor: float = 0.1,
        compression: Synchronizer | None = None,
    ) -> None:
        if hasattr(compression, "parts"):
            raise TypeError(
                "FrozenAdamW takes the compression of one process group, and several reduce this "
                "model's gradients: leave compression out"
            )
        if compression is not None and not isinstance(compression, Synchronizer):
            raise TypeError(
                "compression must be what hipress.torch.compress() or compress_fsdp() returned, "
                f"not {compression.__class__.__name__}"
            )
        self._denominators: dict[torch.Tensor, torch.Tensor] = {}
        self.compression = compression
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "freeze_step": freeze_step,
                "floor": floor,
            },
        )
        if compression is not None:
            self.attach(compression)

    def __getstate__(self) -> dict:
        """Return the state of a copy, which cannot include a compression."""
        if self.compression is not None:
            raise TypeError(
                "a FrozenAdamW with a compression, which belongs to a process group, cannot be "
                "copied or saved whole: use its state_dict()"
            )
        return super().__getstate__()

    def __setstate__(self, state: dict) -> None:
        """Set the state of a copy, also in ``load_state_dict()``."""
        super().__setstate__(state)
        self.__dict__.setdefault("compression", None)
        self._denominators = {}  # computed from the state

    def check(self, settings: Settings) -> None:
        """Check that a compression with these settings suits this optimizer."""
        for group in self.param_groups:
            self._check_compression(group, settings)

    def attach(self, compression: Synchronizer) -> None:
        """Use a compression with checked settings. :class:`DistributedOptimizer` calls this."""
        self.compression = compression
        if compression.shared is not None:  # the second moment has no momentum
            compression.shared.compressed_only = True

    def add_param_group(self, param_group) -> None:
        """Add a group of parameters, as in torch.optim."""
        if isinstance(param_group, dict):
            self._check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    def _check(self, group: dict) -> None:
        freeze_step, (beta1, beta2) = group["freeze_step"], group["betas"]
        if not isinstance(freeze_step, int) or freeze_step < 1:
            raise ValueError(f"freeze_step must be a whole number from 1 on, not {freeze_step!r}")
        for name, value in (("beta 1", beta1), ("beta 2", beta2), ("floor", group["floor"])):
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1), not {value!r}")
        for name in ("lr", "eps", "weight_decay"):
            if not group[name] >= 0:
                raise ValueError(f"{name} must be 0 or more, not {group[name]!r}")
        if self.compression is not None:
            self._check_compression(group, self.compression.settings)

    @staticmethod
    def _check_compression(group: dict, settings: Settings) -> None:
        freeze_step, beta1 = group["freeze_step"], group["betas"][0]
        if freeze_step != settings.warmup_steps:
            raise ValueError(
                f"freeze_step must be the compression's warmup_steps, {settings.warmup_steps}, "
                f"not {freeze_step} (dgc's gradients go uncompressed until then with warmup=0)"
            )
        if settings.any_momentum not in (0.0, beta1):
            raise ValueError(
                "the compression's momentum must be 0 or beta 1, "
                f"{beta1}, not {settings.any_momentum}"
            )
        settings.check_momentum()

    def load_state_dict(self, state_dict) -> None:
        """Load a state of this class, or of torch.optim.AdamW."""
        ours = [{name: g[name] for name in ("freeze_step", "floor")} for g in self.param_groups]
        for group, more in zip(state_dict["param_groups"], ours):  # super() compares their numbers
            self._check({**self.defaults, **more, **group})
        super().load_state_dict(state_dict)
        for group, more in zip(self.param_groups, ours):
            for name, value in more.items():
                group.setdefault(name, value)
        for state in self.state.values():  # AdamW updates it in every step
            state.setdefault("exp_avg_sq_updates", int(state["step"]))

    def _update(self, parameter: torch.Tensor, group: dict) -> None:
        state, (beta1, beta2) = self.state[parameter], group["betas"]
        if not state:
            state["step"] = torch.tensor(0.0, dtype=torch.float32, device="cpu")
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
            state["exp_avg_sq_updates"] = 0
        state["step"] += 1
        given = parameter
        gradient, average, square = parameter.grad, state["exp_avg"], state["exp_avg_sq"]
        if is_dtensor(given):
            parameter, gradient, average, square = (
                tensor.to_local() for tensor in (parameter, gradient, average, square)
            )
        if parameter.is_complex():
            parameter, gradient, average, square = map(
                torch.view_as_real, (parameter, gradient, average, square)
            )
        step, updates = int(state["step"]), state["exp_avg_sq_updates"]
        enough, has_momentum = group["freeze_step"], False
        if self.compression is not None and self.compression.compresses_now:
            enough /= 2
            has_momentum = self.compression.momentum(given) != 0
        if has_momentum:  # earlier gradients fade here, new ones have the codec's momentum
            average.mul_(beta1)
        else:
            average.lerp_(gradient, 1 - beta1)
        if updates >= enough:
            denominator = self._denominators.get(given)
            if denominator is None:
                denominator = self._denominator(square, updates, group)
                minimum = group["floor"] * _root_mean_square(denominator, given)
                denominator = self._denominators[given] = denominator.clamp_(min=minimum)
        else:
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            state["exp_avg_sq_updates"] = updates + 1
            denominator = self._denominator(square, updates + 1, group)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        rate = group["lr"] / (1 - beta1**step)
        parameter.addcdiv_(average, denominator, value=-rate)
        if has_momentum:
            parameter.addcdiv_(gradient, denominator, value=-rate * (1 - beta1))

    @staticmethod
    def _denominator(square: torch.Tensor, updates: int, group: dict) -> torch.Tensor:
        unbiased = (1 - group["betas"][1] ** updates) ** 0.5
        return square.sqrt().div_(unbiased).add_(group["eps"])


def _root_mean_square(values: torch.Tensor, parameter: torch.Tensor) -> float:
    """Return the root mean square of a parameter. ``values`` may be this rank's shard of it."""
    if is_dtensor(parameter):
        total = values.square().sum()
        for dim in range(parameter.device_mesh.ndim):
            if not parameter.placements[dim].is_replicate():
                dist.all_reduce(total, group=parameter.device_mesh.get_group(dim))
        return float((total / parameter.numel()).sqrt())
    return float(values.square().mean().sqrt())
