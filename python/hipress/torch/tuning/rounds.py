"""Type "auto" of DiLoCo on a process group: what its ranks measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from hipress.secopa.choice import Measured
from hipress.torch.executors.staging import current, device_of
from hipress.torch.settings import Settings
from hipress.torch.tuning.auto import Ranks, Shape
from hipress.torch.tuning.choice import Meter, settings_of
from hipress.torch.tuning.following import Following, GroupNumbers
from hipress.tuning.rounds import BUDGET_SECONDS
from hipress.tuning.ways import ROUND_WAYS, UNCOMPRESSED, Way

Named = Sequence[tuple[str, torch.nn.Parameter]]


class GroupOfRounds(GroupNumbers):
    """The ranks of a group; what a :class:`hipress.tuning.rounds.RoundChoice` asks of them.

    :param settings: of type "auto"
    :param compression: that synchronises the weights
    :param named: the weights
    :param device: where pseudo-gradients are
    :param cut: the weights of each fragment, if there are so many
    """

    def __init__(
        self, settings: Settings, compression: Following, named: Named,
        device: torch.device | str | None, cut: Callable[[int], Sequence[Named]],
    ) -> None:  # fmt: skip
        super().__init__(compression, device_of([p for _, p in named]))
        self._settings, self._shapes, self._cut = settings, _shapes(named), cut
        engine, where = compression.engine, torch.device(device or "cpu")
        self._ranks = Ranks(
            settings, engine, compression.collective.group, where, torch.float32,
            numbers=self._device,
        )  # fmt: skip
        peers = engine.world_size
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
        meter = Meter(
            self._settings, self._ranks, self._shapes, self.ways, {},
            budget=BUDGET_SECONDS, round_trips=True,
        )  # fmt: skip
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

    def use(self, way: Way) -> None:
        """Sets the compression up for this way, while nothing is under way."""
        settings = settings_of(way, self._settings, self._shapes)
        if settings.config != self._of.settings.config:
            self._of.replace_codec(settings)


def _shapes(named: Named) -> Mapping[str, Shape]:
    return {name: tuple(p.shape) for name, p in named}
