"""Outer weights and their optimizer: what training that synchronises weights has of its own.

Between two synchronisations each rank trains by itself. The weights of the last one, in float32 and
the same on all ranks, are the *outer weights*; the *pseudo-gradient* is what a rank has moved away
from them. An outer optimizer steps the outer weights by the mean of the pseudo-gradients.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from hipress.autotune.methods import UNCOMPRESSED
from hipress.checked import typed
from hipress.fragments import cut
from hipress.torch import exchange
from hipress.torch.autotune.frontend import settings_for
from hipress.torch.autotune.synchronizer import TunedSynchronizer
from hipress.torch.gradient import packed
from hipress.torch.integrations.checks import refuse_replicated
from hipress.torch.settings import AUTO, Settings
from hipress.torch.sharded import is_dtensor
from hipress.torch.start import start
from hipress.torch.synchronizer import Synchronizer

Named = list[tuple[str, torch.nn.Parameter]]


class Outer:
    """The outer weights of a model's fragments, and the optimizers that step them.

    :param parts: the parameters of each fragment
    :param optimizers: of each fragment; one may be that of several. They get the outer weights in
        place of the parameters
    :param device: where the outer weights are; None: in host memory
    """

    def __init__(
        self,
        parts: Sequence[Named],
        optimizers: Sequence[torch.optim.Optimizer],
        device: torch.device | str | None = None,
    ) -> None:
        self._device, self._optimizers = device, optimizers
        self.fragments = [Fragment(i, part, device, {}) for i, part in enumerate(parts)]
        outer = {id(p): f.outer[name] for f in self.fragments for name, p in f.named}
        for optimizer in _distinct(optimizers):
            for group in optimizer.param_groups:
                group["params"] = [outer[id(p)] for p in group["params"] if id(p) in outer]

    def cut(self, parts: Sequence[Named]) -> None:
        """Has the same outer weights, of which one optimizer steps all and none is under way,
        travel in these fragments from now on."""
        known = {name: weights for f in self.fragments for name, weights in f.outer.items()}
        self.fragments = [Fragment(i, part, self._device, known) for i, part in enumerate(parts)]
        self._optimizers = [self._optimizers[0]] * len(parts)

    def take(self, fragment: Fragment, alpha: float = 0.0, average: bool = False) -> bool:
        """Waits for a fragment's mean, makes the outer optimizer's step with it, and the fragment's
        weights. If the mean has a NaN or Inf, which it has on all ranks or on none, its weights are
        the outer weights again.

        :param alpha: the share of its own weights that stays
        :param average: whether the outer weights become the mean of the ranks' instead
        :returns: whether all of the mean is finite
        :raises HipressError: if a rank has died or is silent; nothing has changed then
        """
        finite = fragment.finish()
        if finite and average:
            fragment.average()
        elif finite:
            fragment.set_gradients()
            self._optimizers[fragment.number].step()
            fragment.clear_gradients()
        fragment.update(alpha if finite else 0.0)
        return finite

    def state_dict(self, under_way: bool = True) -> dict[str, Any]:
        """Outer weights and optimizers, and what fragments have under way, unless it is left out.
        """
        found: dict[str, Any] = {}
        for fragment in self.fragments:
            found.update(fragment.state(under_way))
        for number, optimizer in enumerate(_distinct(self._optimizers)):
            found[f"outer_optimizer/{number}"] = optimizer.state_dict()
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what :meth:`state_dict` returned.

        :raises ValueError: if it is another model's
        """
        for fragment in self.fragments:
            fragment.load(state)
        for number, optimizer in enumerate(_distinct(self._optimizers)):
            optimizer.load_state_dict(state[f"outer_optimizer/{number}"])


class Fragment:
    """Parameters that are synchronised together.

    :param device: where the outer weights are; None: in host memory
    :param outer: outer weights by name, of those that have some already
    """

    def __init__(
        self, number: int, named: Named, device: torch.device | str | None,
        outer: Mapping[str, torch.nn.Parameter],
    ) -> None:  # fmt: skip
        self.number, self.named = number, named
        self.outer: dict[str, torch.nn.Parameter] = {}
        for name, parameter in named:
            if name in outer:
                self.outer[name] = outer[name]
            else:
                copy = parameter.detach().to(device or "cpu", torch.float32, copy=True)
                self.outer[name] = torch.nn.Parameter(copy)
        self._gradients = packed((name, parameter.numel()) for name, parameter in named)
        self._flat = torch.zeros(sum(g.count for g in self._gradients), device=device or "cpu")
        self._future: torch.futures.Future | None = None
        self.due = 0
        """The inner step after which the result is taken."""
        self._began = self.seconds = 0.0
        """Those that the last mean was on its way; 0 if it was loaded."""

    @property
    def under_way(self) -> bool:
        return self._future is not None

    @torch.no_grad()
    def begin_with_weights(self) -> None:
        """Makes the outer weights what the weights are."""
        for name, parameter in self.named:
            self.outer[name].copy_(parameter)

    def _views(self) -> Iterable[tuple[torch.nn.Parameter, torch.nn.Parameter, torch.Tensor]]:
        """Each parameter, its outer weights and its pseudo-gradient."""
        pieces = self._flat.split([gradient.count for gradient in self._gradients])
        for (name, parameter), piece in zip(self.named, pieces):
            yield parameter, self.outer[name], piece.view(parameter.shape)

    @torch.no_grad()
    def begin(self, compression: Synchronizer, due: int) -> None:
        """Starts to average the pseudo-gradients; ``finish`` must have ended the last ones."""
        for parameter, outer, pseudo_gradient in self._views():
            torch.sub(outer, parameter.to(outer), out=pseudo_gradient)
        what, self._began, self.seconds = f"fragment {self.number}", time.perf_counter(), 0.0
        self._future = compression.synchronize(self._flat, self._gradients, what)
        self._future.add_done_callback(self._arrived)
        self.due = due

    def _arrived(self, _: object) -> None:
        if self._began:
            self.seconds = time.perf_counter() - self._began

    def finish(self) -> bool:
        """Waits for the mean, and says whether all of it is finite: it is so on all ranks or on
        none.

        :raises HipressError: if a rank has died or is silent
        """
        future, self._future = self._future, None
        future.wait()
        if not self.seconds:  # the callback may be late
            self._arrived(future)
        # One pass, in which a NaN prevails; isfinite().all() takes 15 times as long.
        bounds = self._flat.aminmax() if self._flat.numel() else ()
        return all(math.isfinite(bound) for bound in bounds)

    @torch.no_grad()
    def set_gradients(self) -> None:
        """Gives the outer weights their gradients. Those of parameters that are frozen become the
        mean of the ranks' weights, and stay so, which momentum would move on."""
        for parameter, outer, pseudo_gradient in self._views():
            if parameter.requires_grad:
                outer.grad = pseudo_gradient
            else:
                outer.sub_(pseudo_gradient)

    @torch.no_grad()
    def average(self) -> None:
        """Makes the outer weights the mean of the ranks' weights."""
        for _, outer, pseudo_gradient in self._views():
            outer.sub_(pseudo_gradient)

    def clear_gradients(self) -> None:
        """An optimizer of several fragments steps those that have a gradient."""
        for outer in self.outer.values():
            outer.grad = None

    @torch.no_grad()
    def update(self, alpha: float) -> None:
        """Makes the weights alpha times what they are, and the rest outer weights; frozen ones all
        outer weights."""
        for parameter, outer, _ in self._views():
            outer = outer.to(parameter)
            mixes = alpha and parameter.requires_grad
            parameter.copy_(torch.lerp(outer, parameter, alpha) if mixes else outer)

    def abandon(self) -> None:
        """Forgets what is under way."""
        self._future = None

    def state(self, under_way: bool = True) -> dict[str, Any]:
        found: dict[str, Any] = {f"outer/{n}": w.detach().clone() for n, w in self.outer.items()}
        if under_way and self.under_way:
            self._future.wait()
            found[f"under_way/{self.number}/mean"] = self._flat.clone()
            found[f"under_way/{self.number}/due"] = self.due
        return found

    def load(self, state: Mapping[str, Any]) -> None:
        for name, outer in self.outer.items():
            values = state.get(f"outer/{name}")
            if values is None or values.shape != outer.shape:
                raise ValueError(f"the state has no weights {name!r} of shape {tuple(outer.shape)}")
            with torch.no_grad():
                outer.copy_(values)
        self._future, self._began, self.seconds = None, 0.0, 0.0
        mean = state.get(f"under_way/{self.number}/mean")
        if mean is not None:
            if mean.shape != self._flat.shape:
                raise ValueError("the state was cut into other fragments")
            self._flat.copy_(mean)
            self._future, self.due = torch.futures.Future(), state[f"under_way/{self.number}/due"]
            self._future.set_result(self._flat)


def parts_of(model: torch.nn.Module | Sequence[torch.nn.Module], fragments: int) -> list[Named]:
    """The trained parameters of each fragment, by names that are unique among all."""
    if isinstance(model, torch.nn.Module):
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        return [[named[i] for i in run] for run in cut([p.numel() for _, p in named], fragments)]
    parts: list[Named] = []
    seen: set[int] = set()
    for number, module in enumerate(model):
        part = [
            (f"{number}.{name}", p) for name, p in module.named_parameters()
            if p.requires_grad and id(p) not in seen
        ]  # fmt: skip
        seen.update(id(p) for _, p in part)
        parts.append(part)
    return [part for part in parts if part]


class Trained:
    """What optimizers train besides what is synchronised, which stays each rank's own.

    :param named: what is synchronised
    """

    def __init__(self, named: Named, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        self._optimizers = list(optimizers)
        self._known = {id(p): p for p in (*self._now(), *(p for _, p in named))}

    def _now(self) -> list[torch.Tensor]:
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        return [p for group in groups for p in group["params"] if p.requires_grad]

    def check(self) -> None:
        """:raises RuntimeError: if they train more now than when this was made"""
        for parameter in self._now():
            if id(parameter) not in self._known:
                raise RuntimeError(
                    f"a parameter of shape {tuple(parameter.shape)} is trained now, and was not "
                    "when its optimizer was given: it would not be synchronised. What is unfrozen "
                    "or added later needs a new DiLoCo (LocalSGD, State)"
                )


def frozen_that_differ(
    model: torch.nn.Module | Sequence[torch.nn.Module], group: dist.ProcessGroup
) -> Named:
    """The parameters that are not trained, if they are not the same on all ranks of the group,
    which call this together: where all have loaded them nothing need be sent."""
    modules = [model] if isinstance(model, torch.nn.Module) else model
    named = [(f"{i}.{name}", p) for i, m in enumerate(modules) for name, p in m.named_parameters()]
    frozen = [(name, p) for name, p in named if not p.requires_grad]
    digest = 0
    for _, parameter in frozen:
        flat = parameter.detach().cpu().contiguous().flatten()
        digest = zlib.crc32(flat.view(torch.uint8).numpy(), digest)
    digests = exchange.gather(
        group, digest, "digests of weights", lambda found: typed(found, int, "digest")
    )
    return frozen if len(set(digests)) > 1 else []


def forget_non_finite(optimizer: torch.optim.Optimizer) -> None:
    """Has an optimizer begin anew with those parameters of which it remembers a NaN or Inf, such as
    a momentum: with that its next step would make the weights NaN again."""
    for state in optimizer.state.values():
        values = state.values() if isinstance(state, dict) else ()
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        if not all(bool(tensor.isfinite().all()) for tensor in tensors):
            for tensor in tensors:  # with its count of steps
                tensor.zero_()


def _distinct(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.optim.Optimizer]:
    return list({id(optimizer): optimizer for optimizer in optimizers}.values())


def check(parts: Sequence[Named], optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Checks what there is to synchronise, and how.

    :param parts: the parameters of each fragment
    :param optimizers: the outer optimizer of each
    :raises ValueError: if something is wrong
    """
    if not any(parts):
        raise ValueError("there is no parameter to synchronise")
    refuse_replicated(pair for part in parts for pair in part)
    for name, parameter in (pair for part in parts for pair in part):
        if is_dtensor(parameter):
            raise ValueError(
                f"parameter {name!r} is sharded, by FSDP2 perhaps; weights that can be "
                "synchronised are whole on each rank: compress gradients by "
                "hipress.torch.compress_fsdp(model, replicate_group=...)"
            )
        if not parameter.is_floating_point():
            kind = str(parameter.dtype).removeprefix("torch.")
            raise ValueError(
                f"parameter {name!r} is {kind}; weights that can be synchronised are real numbers"
            )
    if len(optimizers) != len(parts):
        raise ValueError(f"{len(optimizers)} outer optimizers for {len(parts)} fragments")
    known = {id(p) for o in _distinct(optimizers) for g in o.param_groups for p in g["params"]}
    if missing := {id(p) for part in parts for _, p in part} - known:
        raise ValueError(f"the outer optimizer lacks {len(missing)} of the model's parameters")
    if any(optimizer.state for optimizer in optimizers):
        raise ValueError("the outer optimizer has made steps before: make a new one")


def connect(
    make_settings: Callable[[], Settings],
    group: dist.ProcessGroup,
    named: Named,
    timeout: float | None,
    kind: type[TunedSynchronizer] = TunedSynchronizer,
    **same: str,
) -> tuple[Settings, TunedSynchronizer]:
    """Connects the ranks of a group, which all call this together, to average pseudo-gradients.

    :param make_settings, timeout, same: see :func:`hipress.torch.start.start`
    :param kind: of what is returned
    :returns: the settings, and what they are carried out by: with type "auto" uncompressed, until
        the caller chooses
    :raises ValueError: on every rank, if any rank's setting is wrong or they differ
    """
    types = {name: torch.float32 for name, _ in named}
    settings, engine = start(
        make_settings, group, named, timeout, dtypes=types, allow_auto=True, **same
    )
    shapes = {name: tuple(p.shape) for name, p in named}
    present = settings_for(UNCOMPRESSED, settings, shapes) if settings.type == AUTO else settings
    return settings, kind(present, engine, group, named)
