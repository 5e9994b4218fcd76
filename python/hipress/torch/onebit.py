"""1-bit Adam and 1-bit LAMB with the arguments and state names of DeepSpeed's optimizers.

They are for scripts that used DeepSpeed's classes. FrozenAdamW is the optimizer for new scripts.
"""

from __future__ import annotations

import abc
import logging
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hipress.planning.plan import Decision
from hipress.torch.integrations import first_forward
from hipress.torch.integrations.ddp import Compression, compress
from hipress.torch.optim import ByParameter
from hipress.torch.settings import MIN_SIZE

__all__ = ["OneBitAdam", "OneBitLamb"]

_log = logging.getLogger("hipress")

_DEEPSPEED_ONLY = (
    "worker_error",
    "server_error",
    "tensor_size",
    "corrected_tensor_size",
    "server_chunk_size",
)
"""Entries of DeepSpeed's states for its own exchange, which are not loaded."""


class _OneBitOptimizer(ByParameter):
    """Optimizer that compresses its momentum to one bit per element after ``freeze_step`` steps.

    Its momentum ``exp_avg`` is the average m of Adam. The compression keeps the sum
    m / (1 - beta 1) as its shared momentum. So a gradient after the warm-up is the next value of
    that sum.
    """

    def __init__(
        self,
        params: Any,
        defaults: dict,
        *,
        freeze_step: int,
        amsgrad: bool,
        ignored: dict[str, Any],
        **settings: Any,
    ) -> None:
        if amsgrad:
            raise ValueError(f"{type(self).__name__} has no AMSGrad variant: leave amsgrad out")
        if isinstance(freeze_step, bool) or not isinstance(freeze_step, int) or freeze_step < 1:
            raise ValueError(f"freeze_step must be a whole number from 1 on, not {freeze_step!r}")
        self.freeze_step = freeze_step
        self.compression: Compression | None = None
        """The model's compression, or None before the first forward pass with gradients."""
        self._settings = settings
        self._compression_state: Mapping[str, Any] | None = None
        """State of the compression to load when it begins."""
        self._momentum_is_shared = False
        """Whether the compression has the momentum of the steps so far."""
        super().__init__(params, defaults)
        first = self.param_groups[0]["betas"][0]
        if any(group["betas"][0] != first for group in self.param_groups):
            raise ValueError("beta 1 must be the same in all parameter groups")
        given = [name for name, value in ignored.items() if value]
        if given and (not dist.is_initialized() or dist.get_rank() == 0):
            _log.warning(
                "%s ignores %s, which has no effect on HiPress's own connections: leave it out",
                type(self).__name__,
                " and ".join(given),
            )
        first_forward.watch(self, _OneBitOptimizer._start)

    def __getstate__(self) -> dict:
        """Refuse to copy the optimizer, whose compression belongs to a process group."""
        raise TypeError(
            f"{type(self).__name__} cannot be copied or saved whole: use its state_dict()"
        )

    def add_param_group(self, param_group: dict) -> None:
        """Add a group of parameters, as in torch.optim."""
        group = {**self.defaults, **param_group}
        beta1, beta2 = group["betas"]
        for name, value in (("beta 1", beta1), ("beta 2", beta2)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1), not {value!r}")
        for name in ("lr", "eps", "weight_decay"):
            if not group[name] >= 0:
                raise ValueError(f"{name} must be 0 or more, not {group[name]!r}")
        super().add_param_group(param_group)

    def _start(self, model: DistributedDataParallel) -> bool:
        """Compress the model if it has this optimizer's parameters. Return whether it has."""
        names = {id(p): name for name, p in model.module.named_parameters()}
        mine = [p for group in self.param_groups for p in group["params"]]
        if not any(id(p) in names for p in mine):
            return False
        if not all(id(p) in names for p in mine):
            raise ValueError(
                f"{type(self).__name__} has parameters outside this DistributedDataParallel "
                "model: give each model an optimizer of its own"
            )
        plan = {
            names[id(p)]: Decision(compress=False, partitions=1)
            for group in self.param_groups
            if group.get("non_freeze", False)
            for p in group["params"]
        }
        self.compression = compress(
            model,
            "onebit",
            shared_momentum=self.param_groups[0]["betas"][0],
            warmup_steps=self.freeze_step,
            plan=plan or None,
            **self._settings,
        )
        if self.compression.shared is not None:  # None if beta 1 is 0
            self.compression.shared.compressed_only = True
        self._resume()
        return True

    def load_state_dict(
        self, state_dict: dict, compression_state: Mapping[str, Any] | None = None
    ) -> None:
        """Load a state of this class, or of DeepSpeed's class, on all ranks.

        The state contains the number of steps and the momentum, so training continues in the
        warm-up or after it. Compression errors (``worker_error``, ``server_error``) start from
        zero, as in DeepSpeed. ``exp_avg_mask`` stays the one of this optimizer.

        Args:
            state_dict: state of the optimizer
            compression_state: this rank's ``optimizer.compression.state_dict()``, which contains
                the compression errors. With it training continues with the same bits.

        Raises:
            RuntimeError: if training has begun, because its compression errors belong to it
        """
        if self.compression is not None:
            raise RuntimeError(
                f"{type(self).__name__} loads a state before the first forward pass only: make a "
                "new model and optimizer, and load the state then"
            )
        groups = []
        for saved, group in zip(state_dict["param_groups"], self.param_groups):
            saved = {**self.defaults, **saved}
            saved.pop("exp_avg_mask", None)
            if "exp_avg_mask" in group:
                saved["exp_avg_mask"] = group["exp_avg_mask"]
            groups.append(saved)
        groups += state_dict["param_groups"][len(groups) :]  # super() refuses another number
        super().load_state_dict({**state_dict, "param_groups": groups})
        for state in self.state.values():
            for name in _DEEPSPEED_ONLY:
                state.pop(name, None)
            state["step"] = int(state["step"])
        self._compression_state = compression_state

    def _resume(self) -> None:
        """Continue the compression at the step of a loaded state."""
        if self._compression_state is not None:
            self.compression.load_state_dict(self._compression_state)
            self._compression_state = None
            self._momentum_is_shared = self.compression.compresses_now
        else:
            steps = (state["step"] for state in self.state.values())
            self.compression.step = max(steps, default=0)
        if self.compression.step >= self.freeze_step and not self._momentum_is_shared:
            self._share_momentum()

    def _share_momentum(self) -> None:
        """Set the compression's shared momentum to the momentum of all steps so far."""
        compression, shared = self.compression, self.compression.shared
        for group in self.param_groups if shared is not None else ():
            for parameter in group["params"]:
                if "exp_avg" in self.state[parameter] and compression.momentum(parameter):
                    name = compression.names[id(parameter)]
                    momentum = self.state[parameter]["exp_avg"].detach().float()
                    # In the order of the elements in memory, which DDP's buckets have.
                    strides = parameter.stride()
                    order = sorted(range(parameter.dim()), key=lambda dim: -strides[dim])
                    flat = momentum.permute(order).reshape(-1).cpu() / (1 - group["betas"][0])
                    shared.sums.pop(name, None)
                    shared.loaded.pop(name, None)
                    shared.load(name, 0, flat)
            shared.load_keys()
        self._momentum_is_shared = True

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Make one step. ``closure`` computes loss and gradients again, as in torch.optim.

        Raises:
            RuntimeError: if there are several ranks, and no model in DistributedDataParallel with
                these parameters has had a forward pass; or if beta 1 has changed
        """
        if self.compression is None and closure is None:
            self._check_single()
        elif self.compression is not None:
            beta1 = self.compression.settings.shared_momentum
            if any(group["betas"][0] != beta1 for group in self.param_groups):
                raise RuntimeError(f"beta 1 must stay {beta1}, the compression's shared momentum")
        loss = super().step(closure)
        if self.compression is None:
            self._check_single()
        elif not self._momentum_is_shared and self.compression.step >= self.freeze_step:
            self._share_momentum()
        return loss

    def _check_single(self) -> None:
        """Refuse gradients of several ranks without a model, except zeros.

        torch.distributed.checkpoint steps with zeros to create an optimizer's state.
        """
        gradients = (p.grad for group in self.param_groups for p in group["params"])
        if (
            dist.is_initialized()
            and dist.get_world_size() > 1
            and any(gradient is not None and bool(gradient.any()) for gradient in gradients)
        ):
            raise RuntimeError(
                f"{type(self).__name__} found no model: wrap it in DistributedDataParallel, and "
                "make the optimizer with its parameters before the first forward pass"
            )

    def _update(self, parameter: torch.Tensor, group: dict) -> None:
        state, (beta1, beta2) = self.state[parameter], group["betas"]
        if "exp_avg" not in state:
            self._init_state(parameter, state)
        state["step"] += 1
        gradient, average = parameter.grad, state["exp_avg"]
        if self.compression is None:
            frozen = state["step"] > self.freeze_step
        else:
            frozen = self.compression.compresses_now
        before = average.clone() if frozen else average
        if frozen and self._momentum_is_shared and self.compression.momentum(parameter):
            average.copy_(gradient).mul_(1 - beta1)
        else:
            average.mul_(beta1).add_(gradient, alpha=1 - beta1)
        if frozen and "exp_avg_mask" in group:
            mask = group["exp_avg_mask"] = group["exp_avg_mask"].to(average.device)
            average.mul_(mask)
        if not frozen or group.get("non_freeze", False):
            state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            frozen = False
        denominator = state["exp_avg_sq"].sqrt().add_(group["eps"])
        update = average / denominator
        if frozen:  # one bit cannot be zero, and would be divided by eps alone
            update.masked_fill_(state["exp_avg_sq"] == 0, 0)
        self._apply(parameter, group, update, denominator, before if frozen else None)

    def _init_state(self, parameter: torch.Tensor, state: dict) -> None:
        state["step"] = 0
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)

    @abc.abstractmethod
    def _apply(
        self,
        parameter: torch.Tensor,
        group: dict,
        update: torch.Tensor,
        denominator: torch.Tensor,
        before: torch.Tensor | None,
    ) -> None:
        """Apply an update, without weight decay and rate, to its parameter.

        ``before`` is the last step's momentum if the denominator is frozen, otherwise None.
        """


class OneBitAdam(_OneBitOptimizer):
    """1-bit Adam with DeepSpeed's arguments (Tang et al., ICML 2021, arXiv:2102.02888).

    For ``freeze_step`` steps it is Adam with uncompressed gradients. Then the second moment stays
    constant, and the ranks exchange the first moment with one bit per element and error feedback:

    >>> model = DistributedDataParallel(network)
    >>> optimizer = hipress.torch.onebit.OneBitAdam(model.parameters(), lr=1e-3, freeze_step=500)

    The optimizer finds its model in the model's first forward pass with gradients. It then calls
    :func:`hipress.torch.compress`, so that pass raises the errors of ``compress()``. After the
    warm-up ``parameter.grad`` contains the sum of past gradients: do not clip it.

    The formulas are DeepSpeed's: moments have no bias correction, and weight decay is decoupled.
    These differ: every gradient of fewer than ``min_size`` elements stays uncompressed, and
    elements whose second moment is zero after the warm-up do not change. A compressed element is
    the mean of the tensor's elements of its sign, where DeepSpeed takes the root mean square. So
    steps after the warm-up are somewhat smaller with the same ``lr``.

    A parameter group may have ``exp_avg_mask``, a tensor by which its momentum is multiplied after
    the warm-up, and ``non_freeze=True``: its gradients stay uncompressed and its second moment is
    updated in all steps.

    The names in ``state_dict()`` are DeepSpeed's: ``step``, ``exp_avg``, ``exp_avg_sq``.

    Args:
        params: parameters of one model, or groups of them
        deepspeed: ignored; DeepSpeed's engine
        lr: learning rate
        freeze_step: steps before compression begins
        bias_correction: ignored, as in DeepSpeed
        betas: decay of both moments. Beta 1 must be the same in all groups and steps
        eps: term added to the denominator
        eps_inside_sqrt: ignored, as in DeepSpeed
        weight_decay: decoupled weight decay
        max_grad_norm: ignored, as in DeepSpeed
        amsgrad: must be False
        cuda_aware: ignored; rank 0 logs this
        comm_backend_name: ignored; rank 0 logs this
        topology: see :func:`hipress.torch.compress`, also for the arguments below
        min_size: gradients of fewer elements are not compressed
        devices_per_host: ranks on each host, for topology "hierarchical"
        encode_on: "host" or "device"
        timeout: seconds to wait for another rank

    Raises:
        ValueError: for a value out of range
    """

    def __init__(
        self,
        params: Any,
        deepspeed: Any = None,
        lr: float = 1e-3,
        freeze_step: int = 100000,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
        weight_decay: float = 0.0,
        max_grad_norm: float = 0.0,
        amsgrad: bool = False,
        cuda_aware: bool = False,
        comm_backend_name: str | None = None,
        *,
        topology: str | None = None,
        min_size: int = MIN_SIZE,
        devices_per_host: int = 1,
        encode_on: str = "host",
        timeout: float | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "bias_correction": bias_correction,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "max_grad_norm": max_grad_norm,
            },
            freeze_step=freeze_step,
            amsgrad=amsgrad,
            ignored={"cuda_aware": cuda_aware, "comm_backend_name": comm_backend_name},
            topology=topology,
            min_size=min_size,
            devices_per_host=devices_per_host,
            encode_on=encode_on,
            timeout=timeout,
        )

    def _apply(
        self,
        parameter: torch.Tensor,
        group: dict,
        update: torch.Tensor,
        denominator: torch.Tensor,
        before: torch.Tensor | None,
    ) -> None:
        parameter.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=group["lr"])


class OneBitLamb(_OneBitOptimizer):
    """1-bit LAMB with DeepSpeed's arguments (Li et al., HiPC 2022, arXiv:2104.06069).

    For ``freeze_step`` steps it is LAMB with uncompressed gradients. Then the second moment and the
    average of each tensor's LAMB coefficient stay constant. The ranks exchange the first moment
    with one bit per element. In each step the coefficient is multiplied by a factor: the largest
    ratio of the constant denominator to one of gradients that are recomputed from the momentum.

    :class:`OneBitAdam` describes how it finds its model, the arguments that are not listed here and
    the differences from DeepSpeed. DeepSpeed compresses all momenta as one tensor and first scales
    them with ``scaling_coeff``. Here each tensor is compressed separately, which needs no such
    coefficient; a loaded one is kept. ``non_freeze`` is not supported, as in DeepSpeed.

    The names in ``state_dict()`` are DeepSpeed's: ``step``, ``exp_avg``, ``exp_avg_sq``,
    ``exp_avg_sq_fresh``, ``lamb_coeff_freeze``, ``last_factor``.

    Args:
        max_coeff: largest LAMB coefficient, in the warm-up
        min_coeff: smallest LAMB coefficient, in the warm-up
        coeff_beta: decay of the average LAMB coefficient
        factor_max: largest factor of the constant LAMB coefficient
        factor_min: smallest factor of the constant LAMB coefficient
        factor_threshold: largest relative change of the factor in a step

    Raises:
        ValueError: for a value out of range
    """

    def __init__(
        self,
        params: Any,
        deepspeed: Any = None,
        lr: float = 1e-3,
        freeze_step: int = 100000,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
        weight_decay: float = 0.0,
        max_grad_norm: float = 0.0,
        max_coeff: float = 10.0,
        min_coeff: float = 0.01,
        amsgrad: bool = False,
        cuda_aware: bool = False,
        comm_backend_name: str | None = None,
        coeff_beta: float = 0.9,
        factor_max: float = 4.0,
        factor_min: float = 0.5,
        factor_threshold: float = 0.1,
        *,
        topology: str | None = None,
        min_size: int = MIN_SIZE,
        devices_per_host: int = 1,
        encode_on: str = "host",
        timeout: float | None = None,
    ) -> None:
        self.coeff_beta, self.factor_threshold = coeff_beta, factor_threshold
        self.factor_max, self.factor_min = factor_max, factor_min
        super().__init__(
            params,
            {
                "lr": lr,
                "bias_correction": bias_correction,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "max_grad_norm": max_grad_norm,
                "max_coeff": max_coeff,
                "min_coeff": min_coeff,
            },
            freeze_step=freeze_step,
            amsgrad=amsgrad,
            ignored={"cuda_aware": cuda_aware, "comm_backend_name": comm_backend_name},
            topology=topology,
            min_size=min_size,
            devices_per_host=devices_per_host,
            encode_on=encode_on,
            timeout=timeout,
        )

    def add_param_group(self, param_group: dict) -> None:
        """Add a group of parameters, as in torch.optim."""
        if param_group.get("non_freeze", False):
            raise ValueError("OneBitLamb has no non_freeze groups: leave non_freeze out")
        super().add_param_group(param_group)

    def _init_state(self, parameter: torch.Tensor, state: dict) -> None:
        super()._init_state(parameter, state)
        state["exp_avg_sq_fresh"] = torch.zeros_like(parameter)
        state["lamb_coeff_freeze"], state["last_factor"] = 0.0, 1.0

    def _apply(
        self,
        parameter: torch.Tensor,
        group: dict,
        update: torch.Tensor,
        denominator: torch.Tensor,
        before: torch.Tensor | None,
    ) -> None:
        state, unscaled = self.state[parameter], float(update.norm())
        if group["weight_decay"] > 0:
            update = update.add(parameter, alpha=group["weight_decay"])
        if before is None:
            state["exp_avg_sq_fresh"].copy_(state["exp_avg_sq"])
            coefficient = self._coefficient(parameter, group, update)
        else:
            self._update_fresh(state, group, before)
            fresh = state["exp_avg_sq_fresh"].sqrt().add_(group["eps"])
            factor = float((denominator / fresh).max()) if parameter.numel() else 1.0
            if group["weight_decay"] > 0:
                norm = float(update.norm())
                share = min(1.0, unscaled / norm) if norm else 1.0
                factor = factor * share + (1 - share)
            factor = min(max(factor, self.factor_min), self.factor_max)
            last, threshold = state["last_factor"], self.factor_threshold
            factor = min(max(factor, last * (1 - threshold)), last * (1 + threshold))
            state["last_factor"] = factor
            coefficient = state["lamb_coeff_freeze"] * factor
        parameter.sub_(update, alpha=group["lr"] * coefficient)

    def _coefficient(self, parameter: torch.Tensor, group: dict, update: torch.Tensor) -> float:
        """Return LAMB's coefficient of a tensor in the warm-up, and add it to the average."""
        weight_norm, update_norm = float(parameter.norm()), float(update.norm())
        coefficient = 1.0
        if weight_norm and update_norm:
            coefficient = weight_norm / update_norm
            coefficient = min(max(coefficient, group["min_coeff"]), group["max_coeff"])
        if coefficient != 1.0:
            state = self.state[parameter]
            kept = self.coeff_beta * state["lamb_coeff_freeze"]
            state["lamb_coeff_freeze"] = kept + (1 - self.coeff_beta) * coefficient
        return coefficient

    @staticmethod
    def _update_fresh(state: dict, group: dict, before: torch.Tensor) -> None:
        """Update the second moment of gradients that the change of the momentum implies."""
        beta1, beta2 = group["betas"]
        gradient = (state["exp_avg"] - beta1 * before) / (1 - beta1)
        state["exp_avg_sq_fresh"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
