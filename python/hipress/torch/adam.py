"""AdamW for gradients that compression delays."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hipress.torch.hook import Compression


class FrozenAdamW(torch.optim.Optimizer):
    """AdamW whose second moment stays as it is after ``freeze_step`` steps.

    Adam divides by the size of past gradients. What error feedback delays comes later in larger
    lumps, which Adam then divides by their own size, so part of them is lost. With a denominator
    that no longer changes, the step is linear in the gradients and nothing is (1-bit Adam, Tang et
    al., ICML 2021, arXiv:2102.02888, freezes it so). Let the gradients of these first steps go
    uncompressed:

    >>> hipress.torch.compress(model, "onebit", warmup_steps=500)
    >>> optimizer = hipress.torch.FrozenAdamW(model.parameters(), lr=1e-3, freeze_step=500)

    Until then it is torch.optim.AdamW, whose state it loads and whose state it saves.

    With ``compression``, the codec takes the first moment where it has a ``momentum``: every rank
    then compresses its own running mean of gradients, which varies less than they do, and here the
    steps are linear in what arrives:

    >>> compression = hipress.torch.compress(model, "ternary", momentum=0.9, warmup_steps=500)
    >>> optimizer = hipress.torch.FrozenAdamW(
    ...     model.parameters(), lr=1e-3, freeze_step=500, compression=compression)

    Parameters that are too small to be compressed keep their first moment here.

    :param freeze_step: a seventh of all steps is enough
    :param floor: from then on no denominator is below this share of its tensor's root mean square;
        else elements whose gradient was 0 all along (rare words) would be divided by 0
    :param compression: what ``compress()`` returned, with ``warmup_steps`` as freeze_step and a
        ``momentum`` of 0 or beta 1
    :raises ValueError: for a value out of range, or that is not the compression's
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
        compression: Compression | None = None,
    ) -> None:
        if not isinstance(freeze_step, int) or freeze_step < 1:
            raise ValueError(f"freeze_step must be a whole number from 1 on, not {freeze_step!r}")
        for name, value in (("beta 1", betas[0]), ("beta 2", betas[1]), ("floor", floor)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1), not {value!r}")
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            if not value >= 0:
                raise ValueError(f"{name} must be 0 or more, not {value!r}")
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "freeze_step": freeze_step, "floor": floor,
            },
        )  # fmt: skip
        self._denominators: dict[torch.Tensor, torch.Tensor] = {}
        self._compression = compression
        if compression is not None:
            self._check(compression)

    def _check(self, compression: Compression) -> None:
        warmup = compression.settings.warmup_steps
        for group in self.param_groups:
            if group["freeze_step"] != warmup:
                raise ValueError(
                    f"freeze_step must be the compression's warmup_steps, {warmup}, not "
                    f"{group['freeze_step']} (dgc's gradients go uncompressed until then with "
                    "warmup=0)"
                )
            inside = compression.settings.momentum
            if inside not in (0.0, group["betas"][0]):
                raise ValueError(
                    f"the compression's momentum must be 0 or beta 1, {group['betas'][0]}, not "
                    f"{inside}"
                )

    def load_state_dict(self, state_dict) -> None:
        """Goes on from a state of this class, or of torch.optim.AdamW."""
        ours = [(group["freeze_step"], group["floor"]) for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, (freeze_step, floor) in zip(self.param_groups, ours, strict=True):
            group.setdefault("freeze_step", freeze_step)
            group.setdefault("floor", floor)
        self._denominators.clear()

    @torch.no_grad()
    def step(self, closure: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
        """One step; ``closure`` computes loss and gradients anew, as in torch.optim."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: torch.Tensor, group: dict) -> None:
        gradient, state, (beta1, beta2) = parameter.grad, self.state[parameter], group["betas"]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step = int(state["step"])
        frozen, inside = step > group["freeze_step"], False
        if self._compression is not None and self._compression.compresses_now:
            frozen = True  # also if a GradScaler has skipped steps of the warm-up
            inside = self._compression.momentum(parameter) != 0
        if inside:  # what came before fades here, what comes now has the codec's momentum
            state["exp_avg"].mul_(beta1)
        else:
            state["exp_avg"].lerp_(gradient, 1 - beta1)
        if frozen:
            denominator = self._denominators.get(parameter)
            if denominator is None:
                last = max(1, min(step - 1, group["freeze_step"]))
                denominator = self._denominator(state, last, group)
                least = group["floor"] * float(denominator.square().mean().sqrt())
                denominator = self._denominators[parameter] = denominator.clamp_(min=least)
        else:
            state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            denominator = self._denominator(state, step, group)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        rate = group["lr"] / (1 - beta1**step)
        parameter.addcdiv_(state["exp_avg"], denominator, value=-rate)
        if inside:
            parameter.addcdiv_(gradient, denominator, value=-rate * (1 - beta1))

    @staticmethod
    def _denominator(state: dict, step: int, group: dict) -> torch.Tensor:
        unbiased = (1 - group["betas"][1] ** step) ** 0.5
        return state["exp_avg_sq"].sqrt().div_(unbiased).add_(group["eps"])
