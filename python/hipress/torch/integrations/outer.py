"""Outer weights and outer optimizers on PyTorch's tensors; see :mod:`hipress.local_sgd`."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

import torch
import torch.distributed as dist

from hipress.autotune.methods import UNCOMPRESSED
from hipress.local_sgd.outer import Arrival, Fragment
from hipress.local_sgd.schedule import split
from hipress.torch import exchange
from hipress.torch.autotune.frontend import settings_for
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.dtypes import is_dtensor, local_of
from hipress.torch.gradient import Gradient, packed
from hipress.torch.integrations.site import Site
from hipress.torch.settings import AUTO, Settings
from hipress.torch.start import start
from hipress.torch.synchronizer import Synchronizer

Named = list[tuple[str, torch.nn.Parameter]]
Model = Union[torch.nn.Module, Sequence[torch.nn.Module]]
"""A model, or modules that are one fragment each."""
_OF_WHOLE_PARAMETERS = ("Adafactor", "LBFGS", "Muon")
"""Optimizers of PyTorch whose step of an element depends on other elements of its parameter."""


class TensorWeights:
    """See :class:`hipress.local_sgd.outer.Weights`. Outer weights are on ``device``.

    Weights of a sharded parameter are those of this rank's shard.
    """

    def __init__(
        self,
        named: Named,
        optimizers: Iterable[torch.optim.Optimizer],
        device: torch.device | str | None = None,
        site: Site | None = None,
    ) -> None:
        self.parameters = dict(named)
        self._optimizers, self._device = list(optimizers), device or "cpu"
        self._site = site or Site()
        self._known = {id(p): p for p in (*self._trained(), *self.parameters.values())}

    def _trained(self) -> list[torch.Tensor]:
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        return [p for group in groups for p in group["params"] if p.requires_grad]

    def check(self) -> None:
        """Check that the optimizers train only parameters that they had at the beginning."""
        for parameter in self._trained():
            if id(parameter) not in self._known:
                raise RuntimeError(
                    f"a parameter of shape {tuple(parameter.shape)} is trained now, and was not "
                    "when its optimizer was given: it would not be synchronized. What is unfrozen "
                    "or added later needs a new DiLoCo (LocalSGD, State)"
                )

    def copy(self, name: str) -> torch.Tensor:
        """Return a float32 copy."""
        values = local_of(self.parameters[name]).detach()
        return values.to(self._device, torch.float32, copy=True)

    @torch.no_grad()
    def subtract(self, name: str, outer: torch.Tensor, out: torch.Tensor) -> None:
        """Write outer weights minus weights to ``out``."""
        torch.sub(outer, local_of(self.parameters[name]).to(outer), out=out)

    @torch.no_grad()
    def update(self, name: str, outer: torch.Tensor, alpha: float) -> None:
        """Set the weights to ``alpha * weights + (1 - alpha) * outer``; alpha is 0 if frozen."""
        weights = local_of(self.parameters[name])
        outer = outer.to(weights)
        mixes = alpha and self.parameters[name].requires_grad
        weights.copy_(torch.lerp(outer, weights, alpha) if mixes else outer)

    def forget_non_finite(self) -> None:
        """Reset the states of parameters for which an optimizer has a NaN or Inf.

        The ranks of a site reset the states of the same parameters.
        """
        states = [
            [local_of(value) for value in state.values() if isinstance(value, torch.Tensor)]
            for optimizer in self._optimizers
            for state in optimizer.state.values()
            if isinstance(state, dict)
        ]
        damaged = [not all(bool(t.isfinite().all()) for t in tensors) for tensors in states]
        for tensors, is_damaged in zip(states, self._site.max(damaged)):
            for tensor in tensors if is_damaged else ():  # including the count of steps
                tensor.zero_()


class OuterOptimizers:
    """See :class:`hipress.local_sgd.outer.OuterOptimizer`.

    There is one optimizer for all fragments, or one for each. They get the outer weights instead of
    the parameters.
    """

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], weights: TensorWeights) -> None:
        self._optimizers, self._weights = optimizers, weights
        self._outer: dict[str, torch.nn.Parameter] = {}

    def attach(self, outer: Mapping[str, torch.Tensor]) -> None:
        """Replace the optimizers' parameters by the outer weights, in the same memory."""
        self._outer = {name: torch.nn.Parameter(values) for name, values in outer.items()}
        known = {id(self._weights.parameters[name]): p for name, p in self._outer.items()}
        for optimizer in _distinct(self._optimizers):
            for group in optimizer.param_groups:
                group["params"] = [known[id(p)] for p in group["params"] if id(p) in known]

    def step(self, fragment: Fragment) -> None:
        """Change the outer weights in their memory.

        Frozen parameters become the mean of the ranks' weights, because momentum would move them.
        """
        for name, outer in fragment.outer.items():
            if self._weights.parameters[name].requires_grad:
                self._outer[name].grad = fragment.mean[name]
            else:
                outer -= fragment.mean[name]
        # There are more fragments than optimizers if type "auto" has split the model again.
        self._optimizers[min(fragment.number, len(self._optimizers) - 1)].step()
        for name in fragment.outer:  # an optimizer of several fragments skips weights without one
            self._outer[name].grad = None

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizers' states."""
        distinct = enumerate(_distinct(self._optimizers))
        return {f"outer_optimizer/{n}": optimizer.state_dict() for n, optimizer in distinct}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        for number, optimizer in enumerate(_distinct(self._optimizers)):
            optimizer.load_state_dict(state[f"outer_optimizer/{number}"])


class TensorAverage:
    """See :class:`hipress.local_sgd.outer.Average`; by a synchronizer of gradients.

    Elastic jobs set ``synchronizer`` in each view. Pseudo-gradients are in host memory, unless
    another ``device`` is given. A mean is used on all ranks of a ``site`` or on none.
    """

    def __init__(
        self,
        device: torch.device | str | None = None,
        synchronizer: Synchronizer | None = None,
        site: Site | None = None,
    ) -> None:
        self._device, self.synchronizer = device or "cpu", synchronizer
        self._site = site or Site()
        self._gradients: list[list[Gradient]] = []
        self._flat: list[torch.Tensor] = []
        self._futures: dict[int, torch.futures.Future] = {}

    def allocate(self, fragments: Sequence[Fragment]) -> None:
        """Allocate one tensor for each fragment, with a view of it for each parameter."""
        self._gradients, self._flat = [], []
        for fragment in fragments:
            found = packed((name, outer.numel()) for name, outer in fragment.outer.items())
            size = sum(each.count for each in found)
            flat = torch.zeros(size, dtype=torch.float32, device=self._device)
            pieces = flat.split([each.count for each in found])
            fragment.mean = {
                name: piece.view(outer.shape)
                for (name, outer), piece in zip(fragment.outer.items(), pieces)
            }
            self._gradients.append(found)
            self._flat.append(flat)

    def start(self, fragment: Fragment, arrival: Arrival) -> None:
        """Start to average."""
        number = fragment.number
        flat, gradients = self._flat[number], self._gradients[number]
        future = self.synchronizer.synchronize(flat, gradients, f"fragment {number}")
        future.add_done_callback(arrival.mark)
        self._futures[number] = future

    def finish(self, fragment: Fragment) -> bool:
        """Wait for the mean; return whether it is finite, on all ranks of the site."""
        flat, error = self._flat[fragment.number], None
        try:
            self._futures[fragment.number].wait()
        except Exception as failure:
            error = failure
        # One pass, in which a NaN prevails; isfinite().all() takes 15 times as long.
        finite = not flat.numel() or all(math.isfinite(bound) for bound in flat.aminmax())
        engine, what = self.synchronizer.engine, f"fragment {fragment.number}"
        (is_damaged,) = self._site.settle(error, [not finite], engine, what)
        if not is_damaged and fragment.number == len(self._flat) - 1:
            self.synchronizer.step += 1
        return not is_damaged

    def state_dict(self, fragment: Fragment) -> dict[str, Any]:
        """Return the mean of a pending fragment."""
        if not fragment.is_pending:
            return {}
        number = fragment.number
        self._futures[number].wait()
        prefix = f"under_way/{number}"
        return {f"{prefix}/mean": self._flat[number].clone(), f"{prefix}/due": fragment.due}

    def load_state_dict(self, fragment: Fragment, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        number = fragment.number
        mean = state.get(f"under_way/{number}/mean")
        if mean is None:
            return
        if mean.shape != self._flat[number].shape:
            raise ValueError("the state was cut into other fragments")
        self._flat[number].copy_(mean)
        self._futures[number] = torch.futures.Future()
        self._futures[number].set_result(self._flat[number])
        fragment.due, fragment.is_pending = state[f"under_way/{number}/due"], True


def parts_of(model: Model, fragments: int) -> list[Named]:
    """Return the trained parameters of each fragment, by names that are unique among all."""
    if isinstance(model, torch.nn.Module):
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        sizes = [p.numel() for _, p in named]
        return [[named[i] for i in run] for run in split(sizes, fragments)]
    parts: list[Named] = []
    seen: set[int] = set()
    for number, module in enumerate(model):
        part = [
            (f"{number}.{name}", p)
            for name, p in module.named_parameters()
            if p.requires_grad and id(p) not in seen
        ]
        seen.update(id(p) for _, p in part)
        parts.append(part)
    return [part for part in parts if part]


def names_of(parts: Sequence[Named]) -> list[list[str]]:
    """Return the names of each fragment's parameters."""
    return [[name for name, _ in part] for part in parts]


def parameters_in(model: Model) -> Named:
    """Return all parameters, also frozen ones, with names for errors."""
    if isinstance(model, torch.nn.Module):
        return list(model.named_parameters())
    return [(f"{i}.{name}", p) for i, m in enumerate(model) for name, p in m.named_parameters()]


def frozen_that_differ(model: Model, group: dist.ProcessGroup) -> Named:
    """Return the frozen parameters, if the ranks of the group, which all call this, differ."""
    frozen = [(name, p) for name, p in parameters_in(model) if not p.requires_grad]
    digest = 0
    for _, parameter in frozen:
        flat = local_of(parameter).detach().cpu().contiguous().flatten()
        digest = zlib.crc32(flat.view(torch.uint8).numpy(), digest)
    digests = exchange.gather(group, digest, "digests of weights", int)
    return frozen if len(set(digests)) > 1 else []


def _distinct(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.optim.Optimizer]:
    return list({id(optimizer): optimizer for optimizer in optimizers}.values())


def check(parts: Sequence[Named], optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Check the parameters of each fragment, and the outer optimizers, of which each has one."""
    if not any(parts):
        raise ValueError("there is no parameter to synchronize")
    every = [pair for part in parts for pair in part]
    for name, parameter in every:
        if not parameter.is_floating_point():
            kind = str(parameter.dtype).removeprefix("torch.")
            raise ValueError(
                f"parameter {name!r} is {kind}; weights that can be synchronized are real numbers"
            )
    if len(optimizers) != len(parts):
        raise ValueError(f"{len(optimizers)} outer optimizers for {len(parts)} fragments")
    known = {id(p) for o in _distinct(optimizers) for g in o.param_groups for p in g["params"]}
    if missing := {id(p) for part in parts for _, p in part} - known:
        raise ValueError(f"the outer optimizer lacks {len(missing)} of the model's parameters")
    if any(optimizer.state for optimizer in optimizers):
        raise ValueError("the outer optimizer has made steps before: make a new one")
    whole = [type(o).__name__ for o in optimizers if type(o).__name__ in _OF_WHOLE_PARAMETERS]
    if whole and any(is_dtensor(p) for _, p in every):
        raise ValueError(
            f"the outer optimizer is {whole[0]}, which needs whole parameters, and those of this "
            "model are sharded: use one that treats each element alone, such as SGD"
        )


def connect(
    make_settings: Callable[[], Settings],
    group: dist.ProcessGroup,
    named: Named,
    timeout: float | None,
    kind: type[TunedSynchronizer] = TunedSynchronizer,
    **same: str,
) -> tuple[Settings, TunedSynchronizer]:
    """Connect the ranks of a group to average pseudo-gradients, as start() does.

    Return the settings and a synchronizer. With type "auto", it does not compress until the caller
    chooses. Each rank averages its own shards of sharded parameters.
    """
    named = [(name, local_of(p)) for name, p in named]
    types = {name: torch.float32 for name, _ in named}
    settings, engine = start(make_settings, group, named, timeout, dtypes=types, **same)
    shapes = {name: tuple(p.shape) for name, p in named}
    present = settings_for(UNCOMPRESSED, settings, shapes) if settings.type == AUTO else settings
    return settings, kind(present, engine, group, named)
