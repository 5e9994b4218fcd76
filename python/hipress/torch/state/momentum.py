"""Momentum that is compressed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch

from hipress.torch.dtypes import floats


class Held(NamedTuple):
    """A result that is kept elsewhere: where the gradient is synchronised."""

    get: Callable[[], torch.Tensor]
    """Its elements, float32 in host memory."""
    set: Callable[[torch.Tensor], None]


class SharedMomentum:
    """The running sum of gradients, of which every rank compresses its next value.

    A rank's gradient is mostly noise, which a codec of few bits must encode, too, and what it
    cannot stays in the residual. So every rank encodes ``factor`` times the result of the step
    before, which all have, plus its own gradient; the mean of that over the ranks is the next
    result. The new gradient is a small part of it, and the residual the smaller. This is the
    momentum of 1-bit Adam (Tang et al., ICML 2021, arXiv:2102.02888, algorithm 1). Where nothing is
    lost it is that of torch.optim.SGD.

    A result with a NaN or Inf, whose step a GradScaler skips, is not kept.

    :param begins: for gradients that are a part of a parameter's: which of its elements comes first
    :param share: how much of the result before each of the ranks adds, if all do: 1 where results
        are means, else one by the number of ranks
    """

    compressed_only = False
    """Whether gradients that go uncompressed come as they are; else they get momentum, too."""

    def __init__(
        self, factor: float, begins: Mapping[str, int] | None = None, share: float = 1.0
    ) -> None:
        self.factor, self.begins, self._share = factor, begins or {}, share
        self.sums: dict[str, torch.Tensor] = {}
        """float32, where the gradient is; of a sharded parameter's shard."""
        self.loaded: dict[str, tuple[int, torch.Tensor]] = {}
        """What was loaded and nobody has asked for yet, and which of the parameter's elements comes
        first in it."""
        self._held: dict[str, Held] = {}
        """What the engine's keys keep, so that it is not in ``sums``."""

    def add(
        self,
        gradient: Sequence[torch.Tensor],
        before: Sequence[torch.Tensor],
        compressed: bool = True,
    ) -> None:
        """To a gradient's pieces: ``factor`` times the result before.

        :param before: the same elements of :meth:`of`
        :param compressed: whether every rank's gradient gets it; else what they have come to
        """
        # Rounded twice, as the library does: with alpha= some devices would round once.
        for piece, last in zip(gradient, before):
            piece.add_(last * (self.weight if compressed else self.factor))

    @property
    def weight(self) -> float:
        """What each rank multiplies the result before by, if all add it."""
        return self.factor * self._share

    def keep(self, result: Sequence[torch.Tensor], before: Sequence[torch.Tensor]) -> None:
        """A whole result, in pieces, for the next step; not one with a NaN or Inf."""
        total = sum(piece.sum(dtype=torch.float32) for piece in result)  # a number on the device
        on_device = total.device.type != "cpu"
        if not on_device and not math.isfinite(total.item()):
            return
        for piece, last in zip(result, before):
            last.copy_(torch.where(total.isfinite(), piece, last) if on_device else piece)

    def hand_over(self, name: str, count: int, to: Held) -> None:
        """From now on a gradient's result before, which is in host memory, is kept elsewhere,
        beginning with what is here."""
        if name in self.sums or name in self.loaded or name in self._held:
            to.set(self.of(name, floats(0), count))
        self.sums.pop(name, None)
        self._held[name] = to

    def state(self) -> dict[str, tuple[int, torch.Tensor]]:
        """By gradient: which element of the parameter comes first, and the sums, in host memory."""
        found = dict(self.loaded)
        here = {name: values.to("cpu", copy=True) for name, values in self.sums.items()}
        elsewhere = {name: held.get() for name, held in self._held.items()}
        for name, values in {**here, **elsewhere}.items():
            found[name] = (self.begins.get(name, 0), values)
        return found

    def clear(self) -> None:
        self.sums.clear()
        self.loaded.clear()
        for held in self._held.values():
            held.set(torch.zeros_like(held.get()))

    def load(self, name: str, begin: int, values: torch.Tensor) -> None:
        """Goes on from these elements of a parameter, and from those loaded before. Ranks that had
        the same ones may give them again."""
        first, known = self.loaded.get(name, (begin, values[:0]))
        end = begin + values.numel()
        if known.numel() and first <= begin and end <= first + known.numel():
            return
        low, high = min(first, begin), max(first + known.numel(), end)
        both = torch.zeros(high - low, dtype=torch.float32)
        both[first - low : first - low + known.numel()] = known
        both[begin - low : end - low] = values
        self.loaded[name] = (low, both)

    def settle(self) -> None:
        """Gives what was loaded to where it is kept, once all is loaded."""
        for name in set(self.loaded).intersection(self._held):
            held = self._held[name]
            count = held.get().numel()
            del self._held[name]
            self.hand_over(name, count, held)

    def of(self, name: str, flat: torch.Tensor, count: int) -> torch.Tensor:
        """The result before of a gradient of ``count`` elements in ``flat``, where that is."""
        held = self._held.pop(name, None)
        if held is not None:
            self.sums[name] = held.get()
        found = self.sums.get(name)
        if found is None:
            found = torch.zeros(count, dtype=torch.float32, device=flat.device)
            begin = self.begins.get(name, 0)
            first, values = self.loaded.pop(name, (begin, found[:0]))
            low, high = max(begin, first), min(begin + count, first + values.numel())
            if low < high:
                found[low - begin : high - begin] = values[low - first : high - first]
        if found.device != flat.device:
            found = found.to(flat.device)
        self.sums[name] = found
        return found
