"""Training that synchronises weights every H steps instead of gradients in each.

Each rank trains on its own for ``sync_every`` *inner* steps. Then the ranks average how far they
have come, the *pseudo-gradients* (weights of the last synchronisation minus weights now), and an
*outer* optimizer makes one step with that mean (Douillard et al., DiLoCo, arXiv:2311.08105). With
several fragments each part of the model is synchronised at a step of its own, and with a delay it
travels while training goes on (Douillard et al., Streaming DiLoCo, arXiv:2501.18512). What a codec
leaves out of a pseudo-gradient stays in its residual for the next one (Sarfi et al., SparseLoCo,
arXiv:2508.15706).

A synchronisation of m parameters sends what an all-reduce of m gradients does, by the same graphs
and codecs, so H steps send H times less than DDP with the same compression.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist

from hipress.config import CompressionConfig
from hipress.torch.gradient import packed
from hipress.torch.integrations.optimizer import broadcast_parameters
from hipress.torch.settings import MIN_SIZE, Settings
from hipress.torch.start import start
from hipress.torch.synchronizer import Synchronizer

_log = logging.getLogger("hipress")
Named = list[tuple[str, torch.nn.Parameter]]


class DiLoCo:
    """Synchronises a model's weights every ``sync_every`` steps of the inner optimizer.

    >>> inner = torch.optim.AdamW(model.parameters(), lr=4e-4)
    >>> outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    >>> with hipress.torch.DiLoCo(model, inner, outer, sync_every=30, compression="sparseloco"):
    ...     for inputs, targets in batches:
    ...         loss_of(model, inputs, targets).backward()
    ...         inner.step()
    ...         inner.zero_grad()

    All ranks begin with the first rank's parameters. Buffers, such as batch normalisation's running
    means, stay each rank's own. Where the ranks of a site average gradients in each step, by
    DistributedDataParallel on the site's process group, ``group`` is one rank of each site.

    :param model_fragments: the model; or modules that together are what is synchronised, each of
        which travels at a step of its own
    :param inner_optimizer: makes the steps that count; of any class
    :param outer_optimizer: over the same parameters, or one for each fragment. It gets float32
        copies of the parameters instead, which are the same on all ranks
    :param sync_every: H, inner steps between two synchronisations of the same weights
    :param fragments: into how many parts of about equal size a model is cut
    :param fragment_sync_delay: inner steps that a fragment may travel, fewer than ``sync_every``;
        with 0 training waits for it
    :param fragment_update_alpha: the share of a rank's own weights that stays when a fragment is
        back, in [0, 1)
    :param backup_device: where the float32 copies are; default: in host memory
    :param compression: a codec's name, a mapping with its name as "type" and its parameters, or a
        :class:`hipress.CompressionConfig`
    :param group: process group; default: all ranks
    :param topology, min_size: see :func:`hipress.torch.compress`
    :param timeout: seconds to wait for another rank; default: the group's
    :raises ValueError: on every rank, if any rank's setting is wrong or they differ
    """

    def __init__(
        self,
        model_fragments: torch.nn.Module | Sequence[torch.nn.Module],
        inner_optimizer: torch.optim.Optimizer,
        outer_optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
        sync_every: int,
        *,
        fragments: int = 1,
        fragment_sync_delay: int = 0,
        fragment_update_alpha: float = 0.0,
        backup_device: torch.device | str | None = None,
        compression: str | Mapping[str, Any] | CompressionConfig = "none",
        group: dist.ProcessGroup | None = None,
        topology: str = "ps",
        min_size: int = MIN_SIZE,
        timeout: float | None = None,
    ) -> None:
        group = group or dist.group.WORLD
        parts = _parts(model_fragments, fragments if _is_count(fragments) else 1)
        named = [pair for part in parts for pair in part]
        single = isinstance(outer_optimizer, torch.optim.Optimizer)
        outer_optimizers = [outer_optimizer] * len(parts) if single else list(outer_optimizer)

        def make_settings() -> Settings:
            _check(inner_optimizer, named, sync_every, fragment_sync_delay, fragment_update_alpha)
            if not _is_count(fragments):
                raise ValueError(f"fragments must be 1 or more, not {fragments!r}")
            if (many := max(len(parts), fragments)) > sync_every:
                raise ValueError(f"sync_every is {sync_every}, too few steps for {many} fragments")
            _check_outer(outer_optimizers, parts)
            settings = Settings.of(compression, topology=topology, min_size=min_size)
            if settings.encode_on != "host":
                raise ValueError("DiLoCo encodes in host memory: leave encode_on out")
            return settings

        schedule = f"every {sync_every}, delay {fragment_sync_delay}, {[len(p) for p in parts]}"
        types = {name: torch.float32 for name, _ in named}
        settings, engine = start(
            make_settings, group, named, timeout, dtypes=types, schedule=schedule
        )
        broadcast_parameters(named, dist.get_global_rank(group, 0), group)
        self.step, self.sync_every = 0, sync_every
        self._delay, self._alpha = fragment_sync_delay, fragment_update_alpha
        self._inner, self._hook = inner_optimizer, None
        self._fragments = [_Fragment(i, part, backup_device) for i, part in enumerate(parts)]
        self._outer = outer_optimizers
        _adopt(self._outer, self._fragments)
        self.compression = Synchronizer(settings, engine, group, named)

    def __enter__(self) -> DiLoCo:
        self._hook = self._inner.register_step_post_hook(lambda *_: self._after_inner_step())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hook.remove()
        if error is None:
            self.finish()

    def finish(self) -> None:
        """Waits for the fragments that are under way, and takes their results."""
        for fragment in self._fragments:
            if fragment.under_way:
                self._take(fragment)

    def _after_inner_step(self) -> None:
        self.step += 1
        for fragment in self._fragments:
            if fragment.under_way and self.step == fragment.due:
                self._take(fragment)
            if self._begins(fragment):
                fragment.begin(self.compression, self.step + self._delay)
                if not self._delay:
                    self._take(fragment)
        self.compression.poll()

    def _begins(self, fragment: _Fragment) -> bool:
        """Whether the fragment is synchronised after this step: they take turns, and the last one's
        turn is when ``step`` is a multiple of ``sync_every``."""
        turn = (fragment.number + 1) * self.sync_every // len(self._fragments)
        return self.step % self.sync_every == turn % self.sync_every

    def _take(self, fragment: _Fragment) -> None:
        """Makes the outer optimizer's step with a fragment's mean, and the fragment's weights."""
        if not fragment.finish():
            _log.warning(
                "step %d: a pseudo-gradient of fragment %d has a NaN or Inf; its weights are those "
                "of the synchronisation before again", self.step, fragment.number
            )  # fmt: skip
            fragment.update(0.0)
            return
        fragment.set_gradients()
        self._outer[fragment.number].step()
        fragment.clear_gradients()
        fragment.update(self._alpha)
        if fragment is self._fragments[-1]:
            self.compression.step += 1

    def state_dict(self) -> dict[str, Any]:
        """All but the model and the inner optimizer: the outer weights and optimizer, fragments
        that are under way, and residuals. Keys of a rank's residuals begin with its number, so the
        states of all ranks fit into one torch.distributed.checkpoint."""
        found: dict[str, Any] = {"step": self.step}
        for fragment in self._fragments:
            found.update(fragment.state())
        for number, optimizer in enumerate(_distinct(self._outer)):
            found[f"outer_optimizer/{number}"] = optimizer.state_dict()
        found["compression"] = self.compression.state_dict()
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from ``state``. With another number of ranks or another topology it must hold the
        residuals of all ranks, see :mod:`hipress.torch.state`.

        :raises ValueError: if it is another model's
        """
        for fragment in self._fragments:
            fragment.load(state)
        for number, optimizer in enumerate(_distinct(self._outer)):
            optimizer.load_state_dict(state[f"outer_optimizer/{number}"])
        self.compression.load_state_dict(state["compression"])
        self.step = state["step"]


class LocalSGD(DiLoCo):
    """Averages the weights of all ranks every ``sync_every`` steps (Stich, ICLR 2019).

    >>> with hipress.torch.LocalSGD(model, optimizer, sync_every=8):
    ...     train()

    :param more: see :class:`DiLoCo`
    """

    def __init__(
        self,
        model: torch.nn.Module | Sequence[torch.nn.Module],
        optimizer: torch.optim.Optimizer,
        sync_every: int,
        **more: Any,
    ) -> None:
        parameters = [p for part in _parts(model, 1) for _, p in part]
        # A step of length 1 against the mean of (before - now) ends at the mean of now.
        super().__init__(model, optimizer, torch.optim.SGD(parameters, lr=1.0), sync_every, **more)


class _Fragment:
    """Parameters that are synchronised together.

    :param device: where the outer weights are; None: in host memory
    """

    def __init__(self, number: int, named: Named, device: torch.device | str | None) -> None:
        self.number, self._named = number, named
        self.outer: dict[str, torch.nn.Parameter] = {}
        for name, parameter in named:
            copy = parameter.detach().to(device or "cpu", torch.float32, copy=True)
            self.outer[name] = torch.nn.Parameter(copy)
        self._gradients = packed((name, parameter.numel()) for name, parameter in named)
        self._flat = torch.zeros(sum(g.count for g in self._gradients), device=device or "cpu")
        self._future: torch.futures.Future | None = None
        self.due = 0
        """The inner step after which the result is taken."""

    @property
    def under_way(self) -> bool:
        return self._future is not None

    def _views(self) -> Iterable[tuple[torch.nn.Parameter, torch.nn.Parameter, torch.Tensor]]:
        """Each parameter, its outer weights and its pseudo-gradient."""
        pieces = self._flat.split([gradient.count for gradient in self._gradients])
        for (name, parameter), piece in zip(self._named, pieces):
            yield parameter, self.outer[name], piece.view(parameter.shape)

    @torch.no_grad()
    def begin(self, compression: Synchronizer, due: int) -> None:
        """Starts to average the pseudo-gradients; ``finish`` must have ended the last ones."""
        for parameter, outer, pseudo_gradient in self._views():
            torch.sub(outer, parameter.to(outer), out=pseudo_gradient)
        what = f"fragment {self.number}"
        self._future = compression.synchronize(self._flat, self._gradients, what)
        self.due = due

    def finish(self) -> bool:
        """Waits for the mean, and says whether all of it is finite: it is so on all ranks or on
        none.

        :raises HipressError: if a rank has died or is silent
        """
        future, self._future = self._future, None
        future.wait()
        return bool(self._flat.isfinite().all())

    def set_gradients(self) -> None:
        for _, outer, pseudo_gradient in self._views():
            outer.grad = pseudo_gradient

    def clear_gradients(self) -> None:
        """An optimizer of several fragments steps those that have a gradient."""
        for outer in self.outer.values():
            outer.grad = None

    @torch.no_grad()
    def update(self, alpha: float) -> None:
        """Makes the weights alpha times what they are, and the rest outer weights."""
        for parameter, outer, _ in self._views():
            outer = outer.to(parameter)
            parameter.copy_(torch.lerp(outer, parameter, alpha) if alpha else outer)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {f"outer/{n}": w.detach().clone() for n, w in self.outer.items()}
        if self.under_way:
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
        self._future = None
        mean = state.get(f"under_way/{self.number}/mean")
        if mean is not None:
            if mean.shape != self._flat.shape:
                raise ValueError("the state was cut into other fragments")
            self._flat.copy_(mean)
            self._future, self.due = torch.futures.Future(), state[f"under_way/{self.number}/due"]
            self._future.set_result(self._flat)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _parts(model: torch.nn.Module | Sequence[torch.nn.Module], fragments: int) -> list[Named]:
    """The trained parameters of each fragment, by names that are unique among all."""
    if isinstance(model, torch.nn.Module):
        return _cut([(n, p) for n, p in model.named_parameters() if p.requires_grad], fragments)
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


def _cut(named: Named, fragments: int) -> list[Named]:
    """Neighbours in so many runs of about equal size, of which none is empty."""
    total, before, runs = sum(p.numel() for _, p in named), 0, {}
    for name, parameter in named:
        middle = before + parameter.numel() / 2
        runs.setdefault(int(middle * fragments / max(total, 1)), []).append((name, parameter))
        before += parameter.numel()
    return list(runs.values())


def _distinct(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.optim.Optimizer]:
    return list({id(optimizer): optimizer for optimizer in optimizers}.values())


def _check_outer(optimizers: Sequence[torch.optim.Optimizer], parts: Sequence[Named]) -> None:
    if len(optimizers) != len(parts):
        raise ValueError(f"{len(optimizers)} outer optimizers for {len(parts)} fragments")
    known = {id(p) for o in _distinct(optimizers) for g in o.param_groups for p in g["params"]}
    if missing := {id(p) for part in parts for _, p in part} - known:
        raise ValueError(f"the outer optimizer lacks {len(missing)} of the model's parameters")
    if any(optimizer.state for optimizer in optimizers):
        raise ValueError("the outer optimizer has made steps before: make a new one")


def _adopt(optimizers: Sequence[torch.optim.Optimizer], fragments: Sequence[_Fragment]) -> None:
    """Gives the outer optimizers the outer weights in place of the model's parameters."""
    outer = {id(p): f.outer[name] for f in fragments for name, p in f._named}
    for optimizer in _distinct(optimizers):
        for group in optimizer.param_groups:
            group["params"] = [outer[id(p)] for p in group["params"] if id(p) in outer]


def _check(
    inner: torch.optim.Optimizer, named: Named, sync_every: int, delay: int, alpha: float
) -> None:
    if not named:
        raise ValueError("there is no parameter to synchronise")
    if not _is_count(sync_every):
        raise ValueError(f"sync_every must be 1 or more, not {sync_every!r}")
    if delay != 0 and not (_is_count(delay) and delay < sync_every):
        raise ValueError(
            f"fragment_sync_delay must be in [0, sync_every) = [0, {sync_every}), not {delay!r}"
        )
    if not 0 <= alpha < 1:
        raise ValueError(f"fragment_update_alpha must be in [0, 1), not {alpha!r}")
    if not hasattr(inner, "register_step_post_hook"):
        raise ValueError(f"{type(inner).__name__} has no register_step_post_hook()")
