"""The engine's keys of one set of gradients: one for each that is compressed, which stays whatever
bucket it is in, and those of what goes uncompressed, which are a bucket's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from hipress.casync.graph import Graph
from hipress.casync.topology import MIN_PARTITION_ELEMENTS
from hipress.torch.executors.engine import Engine
from hipress.torch.executors.host_bucket import add_key
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings
from hipress.torch.state.error_feedback import Codecs, Places
from hipress.torch.state.momentum import Held, SharedMomentum

MESSAGE_ELEMENTS = 1024
"""Elements of what goes uncompressed that are worth a message of their own: 4 KiB of float32."""

RING_ELEMENTS = 64 * 1024
"""Elements a rank from which on uncompressed sums go round a ring by default: it takes more steps,
and never has two ranks send to the same one."""


class Keys:
    """Makes keys when they are first needed, which all ranks do together and in the same order.

    :param places: what encodes of compressed gradients remember
    :param shared: momentum of compressed gradients
    """

    def __init__(
        self, engine: Engine, settings: Settings, places: Places, shared: SharedMomentum | None
    ) -> None:
        self._engine, self._settings = engine, settings
        self._places, self._shared = places, shared
        self._average = places.codecs.average
        self._coded: dict[tuple, int] = {}

    def coded(
        self, gradient: Gradient, dtype: torch.dtype, graph_of: Callable[[Gradient], Graph]
    ) -> int:
        """The key of a gradient that is compressed."""
        about = (gradient._replace(offset=0), dtype)
        if about not in self._coded:
            weight = self._shared.weight if self._shared is not None else 0.0
            self._coded[about] = key = add_key(
                self._engine, gradient, graph_of(gradient), dtype, self._places, self._about(),
                weight,
            )  # fmt: skip
            if self._shared is not None:
                self._shared.hand_over(gradient.name, gradient.count, self._held(key, gradient))
        return self._coded[about]

    def _held(self, key: int, gradient: Gradient) -> Held:
        engine, count = self._engine, gradient.count
        return Held(
            lambda: engine.momentum(key, count), lambda values: engine.set_momentum(key, values)
        )

    def fused(
        self, name: str, count: int, dtype: torch.dtype, of: Sequence[Gradient], home: int
    ) -> int:
        """The key of numbers in a buffer of their own, which go as they are.

        :param of: the gradients they come from
        :param home: says on which rank a sum that is not cut, or the first part, is made
        """
        title = f"{name} of {listed([g.name for g in of])}"
        graph = self.plain_graph(count, home)
        return self._plain(Gradient(title, 0, count), graph, dtype, wide=True)

    def plain_graph(self, count: int, home: int) -> Graph:
        """The graph of so many numbers that go as they are, cut for all ranks to sum a part."""
        size = self._engine.world_size
        # Topologies do so by themselves if there are many.
        long = count >= size * MIN_PARTITION_ELEMENTS
        partitions = None if long else max(1, min(size, count // MESSAGE_ELEMENTS))
        return self._settings.graph(count, size, home, partitions=partitions)

    def in_place(self, run: Gradient, dtype: torch.dtype, graph: Graph) -> int:
        """The key of neighbours that go uncompressed, as they lie."""
        return self._plain(run, graph, dtype, wide=False)

    def ring_graph(self, count: int, home: int) -> Graph:
        """The graph of what goes uncompressed as it lies: a ring if that is long and the topology
        is "ps", else by the topology."""
        size = self._engine.world_size
        long = count >= size * RING_ELEMENTS
        topology = "ring" if long and self._settings.topology == "colocated" else None
        return self._settings.graph(count, size, home, topology=topology)

    def drop(self, keys: Sequence[int]) -> None:
        """Forgets keys that were a bucket's own."""
        for key in keys:
            self._engine.drop_key(key)

    def _plain(self, gradient: Gradient, graph: Graph, dtype: torch.dtype, wide: bool) -> int:
        """Whoever passes sums on has nothing to remember."""
        engine = self._engine
        places = Places(Codecs("none", {}, self._average), engine.rank, engine.world_size)
        return add_key(engine, gradient, graph, dtype, places, self._about(), wide=wide)

    def _about(self) -> str:
        return f"{self._settings.describe()} average={self._average}"


def neighbours(gradients: Sequence[Gradient]) -> list[Gradient]:
    """Gradients that lie side by side, as one each: in the flat tensor, or in each of its rows."""
    found: list[list[Gradient]] = []
    for gradient in gradients:
        last = found[-1][-1] if found else None
        width = last and (last.chunk or last.count)
        if last and gradient.stride == last.stride and gradient.offset == last.offset + width:
            found[-1].append(gradient)
        else:
            found.append([gradient])
    return [_joined(run) for run in found]


def _joined(run: Sequence[Gradient]) -> Gradient:
    name, first = f"uncompressed {listed([g.name for g in run])}", run[0]
    if len(run) == 1:
        return first._replace(name=name)
    if not first.chunk:
        return Gradient(name, first.offset, sum(g.count for g in run))
    chunk = sum(g.chunk for g in run)
    rows = max(-(-g.count // g.chunk) for g in run)  # with what fills up the last chunks
    return Gradient(name, first.offset, rows * chunk, chunk, first.stride)


def listed(names: list[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
