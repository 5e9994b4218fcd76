"""Type "auto" of DiLoCo on a process group: what its ranks measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from hipress.secopa.choice import Measured
from hipress.secopa.rounds import measure_each
from hipress.torch.executors.staging import current, device_of
from hipress.torch.settings import Settings
from hipress.torch.tuning.auto import Ranks, Shape
from hipress.torch.tuning.choice import Meter, settings_of
from hipress.torch.tuning.following import Following
from hipress.torch.tuning.numbers import GroupNumbers, Numbers
from hipress.tuning.ways import ROUND_WAYS, UNCOMPRESSED, Way

Named = Sequence[tuple[str, torch.nn.Parameter]]


class GroupOfRounds:
    """The ranks of a group; what a :class:`hipress.tuning.rounds.RoundChoice` asks of them.

    :param settings: of type "auto"
    :param compression: that synchronises the weights
    :param named: the weights
    :param device: where pseudo-gradients are
    :param cut: the weights of each fragment, if there are so many
    :param numbers: compares numbers; default: the group
    """

    def __init__(
        self, settings: Settings, compression: Following, named: Named,
        device: torch.device | str | None, cut: Callable[[int], Sequence[Named]],
        numbers: Numbers | None = None,
    ) -> None:  # fmt: skip
        self._of, self._settings = compression, settings
        self._shapes, self._cut = _shapes(named), cut
        self._device, engine = device_of([p for _, p in named]), compression.engine
        group, where = compression.collective.group, torch.device(device or "cpu")
        numbers = numbers or GroupNumbers(engine, group, self._device)
        self._ranks = Ranks(settings, engine, group, where, torch.float32, numbers=numbers)
        self.begin_maxima, self.end_maxima = numbers.begin_maxima, numbers.end_maxima
        self.rank, peers = engine.rank, engine.world_size
        self.elements = sum(map(math.prod, self._shapes.values()))
        self.raw = 4 * self.elements * 2 * (peers - 1) / peers
        self.alone = "there is one rank" if peers == 1 else ""
        compressible = any(
            settings.compresses(name, math.prod(shape)) for name, shape in self._shapes.items()
            if len(shape) > 1
        )  # fmt: skip
        self.ways: Sequence[Way] = ROUND_WAYS if compressible else (UNCOMPRESSED,)
        """From gentle to lossy."""

    def measure(self) -> list[Measured]:
        meter = Meter(self._settings, self._ranks, self._shapes, self.ways, {}, measure_each)
        with current(self._device):
            return meter.measure_again()

    def fragments(self, way: int, count: int) -> list[float]:
        parts = [_shapes(part) for part in self._cut(count)]
        sizes = [sum(map(math.prod, shapes.values())) for shapes in parts]
        largest = sizes.index(max(sizes))
        with current(self._device):
            meter = Meter(self._settings, self._ranks, parts[largest], self.ways, {})
            seconds = meter.seconds_of(way)
        return [seconds * size / sizes[largest] for size in sizes]

    def bytes_sent(self) -> int:
        return self._of.engine.member.stats()["bytes_sent"]

    def use(self, way: Way) -> None:
        """Sets the compression up for this way, while nothing is under way."""
        settings = settings_of(way, self._settings, self._shapes)
        if settings.config != self._of.settings.config:
            self._of.replace_codec(settings)


def _shapes(named: Named) -> Mapping[str, Shape]:
    return {name: tuple(p.shape) for name, p in named}
