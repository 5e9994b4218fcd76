"""Momentum that is compressed, and a warning where the optimizer has one besides."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

if TYPE_CHECKING:
    from hipress.torch.synchronizer import Synchronizer

_log = logging.getLogger("hipress")


class SharedMomentum:
    """The running sum of gradients, of which every rank compresses its next value.

    A rank's gradient is mostly noise, which a codec of few bits must say, too, and what it cannot
    say waits in the residual. So every rank encodes ``factor`` times the result of the step before,
    which all have, plus its own gradient; the mean of that over the ranks is the next result. The
    new gradient is a small part of it, and what is left unsaid the smaller. This is the momentum of
    1-bit Adam (Tang et al., ICML 2021, arXiv:2102.02888, algorithm 1). Where nothing is lost it is
    that of torch.optim.SGD.

    A result with a NaN or Inf, whose step a GradScaler skips, is not kept.

    :param begins: for gradients that are a part of a parameter's: which of its elements comes first
    """

    compressed_only = False
    """Whether gradients that go uncompressed come as they are; else they get momentum, too."""

    def __init__(self, factor: float, begins: Mapping[str, int] | None = None) -> None:
        self.factor, self.begins = factor, begins or {}
        self.sums: dict[str, torch.Tensor] = {}
        """float32, where the gradient is; of a sharded parameter's shard."""
        self.loaded: dict[str, torch.Tensor] = {}
        """Of whole parameters, from another job's state, until they are asked for."""

    def add(self, flat: torch.Tensor, entries: Sequence[tuple], share: float = 1.0) -> None:
        """To gradients: ``factor`` times the result before, and of that ``share``."""
        for name, offset, count in entries:
            before = self._sum(name, flat, count)
            flat[offset : offset + count].add_(before, alpha=self.factor * share)

    def keep(self, flat: torch.Tensor, entries: Sequence[tuple]) -> None:
        """Results, for the next step."""
        for name, offset, count in entries:
            result, before = flat[offset : offset + count], self._sum(name, flat, count)
            finite = result.sum(dtype=torch.float32).isfinite()  # one number, on the device
            if flat.device.type != "cpu":
                before.copy_(torch.where(finite, result, before))
            elif finite:
                before.copy_(result)

    def state(self) -> dict[str, tuple[int, torch.Tensor]]:
        """By gradient: which element of the parameter comes first, and the sums, in host memory."""
        found = {name: (0, values) for name, values in self.loaded.items()}
        for name, values in self.sums.items():
            found[name] = (self.begins.get(name, 0), values.to("cpu", copy=True))
        return found

    def load(self, parts: Mapping[str, Sequence[tuple[int, torch.Tensor]]]) -> None:
        """Goes on from all parts of each gradient that there are."""
        self.sums.clear()
        self.loaded = {}
        for name, of in parts.items():
            whole = torch.zeros(max(begin + values.numel() for begin, values in of))
            for begin, values in of:
                whole[begin : begin + values.numel()] = values
            self.loaded[name] = whole

    def _sum(self, name: str, flat: torch.Tensor, count: int) -> torch.Tensor:
        found = self.sums.get(name)
        if found is None and name in self.loaded:
            begin = self.begins.get(name, 0)
            found = self.loaded.pop(name)[begin : begin + count].clone()
        if found is None:
            found = torch.zeros(count, device=flat.device)
        if found.device != flat.device:
            found = found.to(flat.device)
        self.sums[name] = found
        return found


def watch(compression: Synchronizer) -> None:
    """Looks once, in the first step of the optimizer of these gradients, whether it has a momentum
    of its own besides the compression's, and warns on rank 0 if so.

    For ``compress()`` does not know the optimizer, which is often made later.
    """
    global _looking
    _watched.add(compression)
    if not _looking:  # for good: PyTorch goes through its hooks while they are called
        register_optimizer_step_pre_hook(_look)
        _looking = True


_watched: weakref.WeakSet[Synchronizer] = weakref.WeakSet()
_looking = False


def _look(optimizer: torch.optim.Optimizer, *others: object) -> None:
    for compression in list(_watched):
        group = next(
            (g for g in optimizer.param_groups if any(map(compression.momentum, g["params"]))), None
        )
        if group is not None:
            _watched.discard(compression)
            problem = doubled(compression, optimizer, group)
            if problem and compression.rank == 0:
                _log.warning("%s", problem)


def doubled(compression: Synchronizer, optimizer: torch.optim.Optimizer, group: dict) -> str:
    """What is wrong with an optimizer's group of parameters whose gradients come with momentum."""
    if getattr(optimizer, "compression", None) is compression:  # a FrozenAdamW, which knows
        return ""
    settings, name = compression.settings, type(optimizer).__name__
    mine = "shared_momentum" if settings.shared_momentum else f"{settings.type} momentum"
    who = "the compression" if settings.shared_momentum else settings.type
    own, beta = group.get("momentum", 0.0), float(group.get("betas", (0.0,))[0])
    if not own and not beta:
        return ""
    has, instead = (
        (f"momentum {own}", f"give {name} momentum=0") if own
        else (f"beta 1 {beta}", "use hipress.torch.FrozenAdamW(..., compression=...)")
    )  # fmt: skip
    return (
        f"{who} has momentum {settings.any_momentum} and {name} has {has}: with both it "
        f"counts twice, and training may diverge; {instead}, or give {mine}=0"
    )
