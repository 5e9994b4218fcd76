"""Momentum that is the same on all ranks, and that every rank compresses."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from hipress.torch.dtypes import floats
from hipress.torch.gradient import Gradient
from hipress.torch.state import optimizer_steps

_log = logging.getLogger("hipress")


class MomentumAccess(NamedTuple):
    """Access to a result that the engine keeps with the gradient's key: float32 in host memory."""

    get: Callable[[], torch.Tensor]
    set: Callable[[torch.Tensor], None]
    roll_back: Callable[[int], None]


class SharedMomentum:
    """Running sum of gradients, of which every rank compresses the next value.

    A rank's gradient is mostly noise. A codec of few bits must also encode the noise, and the rest
    stays in the residual. Therefore every rank encodes ``factor`` times the last step's result,
    which all ranks have, plus its own gradient. The mean of that over the ranks is the next result.
    The new gradient is a small part of it, so the residual is smaller. This is the momentum of
    1-bit Adam (Tang et al., ICML 2021, arXiv:2102.02888, algorithm 1). With a lossless codec it is
    that of torch.optim.SGD.

    A result with a NaN or Inf, whose step a GradScaler skips, is not kept.

    ``shard_offsets`` are the first elements of parts of parameters, by name. Each rank adds
    ``share`` of the last result: 1 where results are means, otherwise one divided by the number of
    ranks.
    """

    compressed_only = False
    """Whether uncompressed gradients come without momentum. Otherwise they also get momentum."""

    def __init__(
        self, factor: float, shard_offsets: Mapping[str, int] | None = None, share: float = 1.0
    ) -> None:
        self.factor, self._shard_offsets, self._share = factor, shard_offsets or {}, share
        self.sums: dict[str, torch.Tensor] = {}
        """Last results by gradient: float32 on the gradient's device; of a shard, if it is one."""
        self.loaded: dict[str, tuple[int, torch.Tensor]] = {}
        """Loaded results that no step has used: their first element in the parameter, and values.
        """
        self._in_keys: dict[str, MomentumAccess] = {}
        """Results that the engine's keys keep, so that they are not in ``sums``."""
        self._before: dict[str, tuple] | None = None
        """Results from before this transaction: sum, loaded, access. None without a transaction."""

    def renewed(self) -> SharedMomentum:
        """Return the momentum of the same job before its first step."""
        found = SharedMomentum(self.factor, self._shard_offsets, self._share)
        found.compressed_only = self.compressed_only
        return found

    @property
    def weight(self) -> float:
        """Factor by which each rank multiplies the last result, if all ranks add it."""
        return self.factor * self._share

    def add(self, flat: torch.Tensor, gradients: Sequence[Gradient]) -> None:
        """Add ``weight`` times the last results to this rank's gradients, before compression."""
        for pieces, last in self._pieces(flat, gradients):
            _add(pieces, last, self.weight)

    def keep(self, flat: torch.Tensor, results: Sequence[Gradient]) -> None:
        """Keep results for the next step, except those with a NaN or Inf."""
        for pieces, last in self._pieces(flat, results):
            total = sum(piece.sum(dtype=torch.float32) for piece in pieces)  # on the device
            on_device = total.device.type != "cpu"
            if not on_device and not math.isfinite(total.item()):
                continue
            for piece, kept in zip(pieces, last):
                kept.copy_(torch.where(total.isfinite(), piece, kept) if on_device else piece)

    def add_uncompressed(self, flat: torch.Tensor, results: Sequence[Gradient]) -> None:
        """Add momentum to uncompressed results, and keep them for the next step."""
        if not self.compressed_only:
            for pieces, last in self._pieces(flat, results):
                _add(pieces, last, self.factor)
            self.keep(flat, results)

    def _pieces(
        self, flat: torch.Tensor, gradients: Sequence[Gradient]
    ) -> Iterator[tuple[list[torch.Tensor], list[torch.Tensor]]]:
        """Yield the pieces of each gradient, and the same pieces of its last result."""
        for gradient in gradients:
            pieces = [flat[piece] for piece in gradient.slices()]
            last = self._last_result(gradient.name, flat.device, gradient.count)
            yield pieces, list(last.split([len(piece) for piece in pieces]))

    def begin_transaction(self) -> None:
        """Start to save results before they change, for :meth:`roll_back`."""
        self._before = {}

    def commit(self) -> None:
        """Keep all changes of the transaction."""
        self._before = None

    def roll_back(self, transaction: int) -> None:
        """Restore all results from before the transaction, except those of keys created since."""
        for access in self._in_keys.values():
            access.roll_back(transaction)
        for name, (values, loaded, access) in (self._before or {}).items():
            if access is None and name in self._in_keys:
                continue
            for known, value in (
                (self.sums, values),
                (self.loaded, loaded),
                (self._in_keys, access),
            ):
                known.pop(name, None)
                if value is not None:
                    known[name] = value
        self._before = None

    def _save(self, name: str) -> None:
        if self._before is not None and name not in self._before:
            values = self.sums.get(name)
            values = None if values is None else values.clone()
            self._before[name] = values, self.loaded.get(name), self._in_keys.get(name)

    def move_to_key(self, name: str, count: int, access: MomentumAccess) -> None:
        """Move a gradient's last result to the engine's key, which keeps it from now on."""
        self._save(name)
        if name in self.sums or name in self.loaded or name in self._in_keys:
            access.set(self._last_result(name, torch.device("cpu"), count))
        self.sums.pop(name, None)
        self._in_keys[name] = access

    def state(self) -> dict[str, tuple[int, torch.Tensor]]:
        """Return last results by gradient: first element in the parameter, values on the host."""
        found = dict(self.loaded)
        here = {name: values.to("cpu", copy=True) for name, values in self.sums.items()}
        in_keys = {name: access.get() for name, access in self._in_keys.items()}
        for name, values in {**here, **in_keys}.items():
            found[name] = (self._shard_offsets.get(name, 0), values)
        return found

    def clear(self) -> None:
        """Reset all results."""
        self.sums.clear()
        self.loaded.clear()
        for access in self._in_keys.values():
            access.set(torch.zeros_like(access.get()))

    def load(self, name: str, offset: int, values: torch.Tensor) -> None:
        """Load these elements of a parameter, in addition to those loaded before, perhaps again."""
        first, known = self.loaded.get(name, (offset, values[:0]))
        end = offset + values.numel()
        if known.numel() and first <= offset and end <= first + known.numel():
            return
        low, high = min(first, offset), max(first + known.numel(), end)
        both = floats(high - low)
        both[first - low : first - low + known.numel()] = known
        both[offset - low : end - low] = values
        self.loaded[name] = (low, both)

    def load_keys(self) -> None:
        """Move loaded results to the engine's keys, after everything is loaded."""
        for name in set(self.loaded).intersection(self._in_keys):
            access = self._in_keys.pop(name)
            self.move_to_key(name, access.get().numel(), access)

    def _last_result(self, name: str, device: torch.device, count: int) -> torch.Tensor:
        """Return the last result of a gradient, float32[count] on ``device``."""
        self._save(name)
        access = self._in_keys.pop(name, None)
        if access is not None:
            self.sums[name] = access.get()
        found = self.sums.get(name)
        if found is None:
            found = torch.zeros(count, dtype=torch.float32, device=device)
            start = self._shard_offsets.get(name, 0)
            first, values = self.loaded.pop(name, (start, found[:0]))
            low, high = max(start, first), min(start + count, first + values.numel())
            if low < high:
                found[low - start : high - start] = values[low - first : high - first]
        if found.device != device:
            found = found.to(device)
        self.sums[name] = found
        return found


def _add(pieces: Sequence[torch.Tensor], last: Sequence[torch.Tensor], factor: float) -> None:
    # Rounded twice, as the library does: with alpha= some devices would round once.
    for piece, values in zip(pieces, last):
        piece.add_(values * factor)


def watch_optimizers(compression: Any) -> None:
    """Check whether the optimizer of a Synchronizer's gradients also has a momentum.

    Rank 0 then logs a warning. The check runs once, in the optimizer's first step. ``compress()``
    cannot do it, because the optimizer is often made later.
    """
    optimizer_steps.watch(compression, _check)


def _check(compression: Any, optimizer: torch.optim.Optimizer) -> None:
    shared = compression.shared

    def has_momentum(parameter: torch.nn.Parameter) -> bool:
        if shared is not None and not shared.compressed_only:
            return id(parameter) in compression.names
        return compression.momentum(parameter) > 0

    problems = (
        _doubled(compression, optimizer, group)
        for group in optimizer.param_groups
        if any(map(has_momentum, group["params"]))
    )
    problem = next(filter(None, problems), "")
    if problem and compression.rank == 0:
        _log.warning("%s", problem)


def _doubled(compression: Any, optimizer: torch.optim.Optimizer, group: dict) -> str:
    """Return a warning if an optimizer's group also has a momentum, otherwise an empty string."""
    if getattr(optimizer, "compression", None) is compression:  # a FrozenAdamW, which knows
        return ""
    settings, name = compression.settings, type(optimizer).__name__
    mine = "shared_momentum" if settings.shared_momentum else f"{settings.type} momentum"
    who = "the compression" if settings.shared_momentum else settings.type
    own, beta = group.get("momentum", 0.0), float(group.get("betas", (0.0,))[0])
    if not own and not beta:
        return ""
    has, instead = (
        (f"momentum {own}", f"give {name} momentum=0")
        if own
        else (f"beta 1 {beta}", "use hipress.torch.FrozenAdamW(..., compression=...)")
    )
    return (
        f"{who} has momentum {settings.any_momentum} and {name} has {has}: with both it "
        f"counts twice, and training may diverge; {instead}, or give {mine}=0"
    )
