"""What encodes and what it keeps: a residual at every place of a graph that encodes."""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from hipress.casync import graph as casync
from hipress.casync.graph import Graph, Partition, Task
from hipress.compression import Compressor
from hipress.torch.state.checkpoint import OWN, Place, Total, own_places
from hipress.torch.state.low_rank import Factors

PLAIN = "plain"
_log = logging.getLogger("hipress")


class Codecs:
    """The codecs of one compression setting, by what they encode.

    A worker's own gradient goes by the codec that the user chose, a sum of several by that codec's
    form for sums (2bit's threshold grows with the number of terms; dgc's has no momentum, for the
    gradients had it already). With ``average``, the encode whose payload everybody decodes encodes
    the mean, a sum of one term in scale; so nobody makes a pass over memory to divide.
    """

    def __init__(self, type: str, params: Mapping[str, object], average: bool = True) -> None:
        self._type, self._params, self.average = type, dict(params), average
        self._own = Compressor(type, **self._params)  # checks type and parameters
        self._shared: dict[object, Compressor] = {}
        self._lock = threading.Lock()

    def kind(self, task: Task, final: bool) -> object:
        """What an ENCODE task encodes: PLAIN, OWN, or the number of terms in a sum's scale.

        :param final: whether its payload is the result, see :func:`hipress.casync.origins.results`
        """
        if task.num_summands == casync.PLAIN:
            return PLAIN
        if task.of_gradient:
            return OWN
        return 1 if final and self.average else task.num_summands

    def identity(self, kind: object) -> bool:
        """Whether payloads of this kind are elements as they are."""
        return kind == PLAIN or self._type == "none"

    def make(self, kind: object) -> Compressor:
        """A compressor with a residual of its own."""
        if kind == PLAIN:
            return Compressor("none")
        if kind == OWN:
            return Compressor(self._type, **self._params)
        return self._own.for_sum_of(kind)

    def decoder(self, kind: object) -> Compressor:
        """A compressor for decoding only, which any number of threads may do with one."""
        with self._lock:
            if kind not in self._shared:
                self._shared[kind] = self.make(kind)
            return self._shared[kind]


def stream(name: str, index: int, rank: int) -> int:
    """What tells apart the random numbers of places that share a seed."""
    return zlib.crc32(f"{name}/{index}/{rank}".encode())


class DevicePlace:
    """What one place on a GPU remembers, with the state_dict() of a Compressor.

    :param codecs, kind: of its codec
    :param count: elements that it encodes
    """

    def __init__(self, codecs: Codecs, kind: object, count: int, device: torch.device) -> None:
        self._make = lambda: codecs.make(kind)
        self.codec = self._make()
        self.state_names = self.codec.state_names
        self.states = {
            name: torch.zeros(count, dtype=torch.float32, device=device)
            for name in self.state_names
        }
        self.step = self.stream = 0
        self.carried: torch.Tensor | None = None
        """What a codec without a residual has taken over of another's, until it is encoded."""
        self._device = device

    def state_dict(self) -> dict[str, Any]:
        """In host memory: waits for the device."""
        states = {name: values.cpu().numpy() for name, values in self.states.items()}
        if self.carried is not None and bool(self.carried.any()):
            states["residual"] = self.carried.cpu().numpy()
        about = {"type": self.codec.type, "config": self.codec.config}
        return {**about, "step": self.step, "stream": self.stream, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As a Compressor's, which checks it.

        :raises ValueError: if it is not such a state
        """
        host = self._make()
        host.load_state_dict(dict(state))
        found = host.state_dict()
        for name, values in self.states.items():
            if name in found["states"]:
                values.copy_(torch.from_numpy(found["states"][name]))
            else:
                values.zero_()
        left = None if "residual" in self.states else found["states"].get("residual")
        self.carried = None if left is None else torch.from_numpy(left).to(self._device)
        self.step, self.stream = found["step"], found["stream"]


class Places:
    """All compressors of one rank, by gradient name and task.

    They stay when DDP puts gradients into other buckets, because they know nothing of buckets.
    Those of gradients that are encoded on a GPU are :class:`DevicePlace`, once ``device`` is set.

    :param begins: for gradients that are a part of a parameter's: which of its elements comes first
    """

    def __init__(
        self, codecs: Codecs, rank: int, world_size: int, begins: Mapping[str, int] | None = None
    ) -> None:
        self.codecs, self._begins = codecs, begins or {}
        self.rank, self._world_size = rank, world_size
        self.device: torch.device | None = None
        self.made: dict[tuple[str, int], Compressor | DevicePlace | Factors] = {}
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.kinds: dict[tuple[str, int], object] = {}
        self.restored: dict[tuple[str, int], Place] = {}
        """What was loaded for places that are yet to be made."""
        self.totals: dict[str, Total] = {}
        """What was loaded to be dealt out to gradients that are yet to be compressed."""
        self._told: set[str] = set()

    def get(
        self, name: str, graph: Graph, index: int, task: Task, kind: object
    ) -> Compressor | DevicePlace:
        """The compressor of task ``index`` of this rank in ``name``'s graph."""
        key = (name, index)
        if key not in self.made:
            partition = graph.partitions[task.partition]
            partition = replace(partition, offset=partition.offset + self._begins.get(name, 0))
            compressor = self._make(kind, partition.count)
            compressor.stream = stream(name, index, self.rank)
            owners = own_places(graph, task.partition) if kind == OWN else 0
            self._settle(key, compressor, partition, kind, owners)
        return self.made[key]

    def factors(self, name: str, shape: Sequence[int], rank: int) -> Factors:
        """What is remembered of a whole gradient that goes by factors of this rank."""
        key = (name, 0)
        if key not in self.made:
            made = Factors(shape, rank)
            self._settle(key, made, Partition(0, made.rows * made.cols), OWN, self._world_size)
        return self.made[key]

    def _settle(
        self, key: tuple[str, int], place: Any, partition: Partition, kind: object, owners: int
    ) -> None:
        """Takes over a new place, and gives it what was loaded for it.

        :param owners: ranks that encode their own gradient's partition by itself, if this one does
        """
        name, _ = key
        if key in self.restored:
            _restore(place, self.restored.pop(key))
        elif name in self.totals and kind == OWN:
            shares = (self._world_size if self.codecs.average else 1) / owners
            self.totals[name].give(place, partition, shares)
        elif name in self.totals:
            self.totals[name].age(place)
        self.made[key], self.partitions[key], self.kinds[key] = place, partition, kind

    def _make(self, kind: object, count: int) -> Compressor | DevicePlace:
        if self.device is not None:
            return DevicePlace(self.codecs, kind, count, self.device)
        compressor = self.codecs.make(kind)
        compressor._size = count  # the engine encodes without Compressor.encode
        return compressor

    def restore(self, places: Mapping[tuple[str, int], Place], totals: dict[str, Total]) -> None:
        """Sets the states of places, those that are yet to be made among them.

        :param totals: what was to be dealt out and had not been
        """
        for key in set(places) & set(self.made):
            _restore(self.made[key], places[key])
        self.restored = {key: place for key, place in places.items() if key not in self.made}
        self.totals = totals

    def redistribute(self, totals: dict[str, Total]) -> None:
        """Deals out what other places have left.

        :raises ValueError: after the first step, when the places have residuals of their own
        """
        if self.made:
            raise ValueError("the state of another job must be loaded before the first step")
        self.restored, self.totals = {}, totals

    def dealt_out(self, names: Iterable[str]) -> None:
        """All places of these gradients have been made, on all ranks."""
        for name in names:
            self.totals.pop(name, None)

    def tell_unclaimed(self, names: Iterable[str]) -> None:
        """Logs of which of these gradients, that are not compressed, something was loaded."""
        loaded = {name for name, _ in self.restored} | set(self.totals)
        unclaimed = sorted(loaded.intersection(names) - self._told)
        self._told.update(unclaimed)
        if unclaimed:
            _log.warning(
                "what was left unsaid of %s waits in the state, unused: by this plan or min_size "
                "it goes uncompressed", unclaimed,
            )  # fmt: skip


def _restore(compressor: Compressor | DevicePlace | Factors, place: Place) -> None:
    kept = {"step": place.fields["step"], "stream": place.fields["stream"], "states": place.states}
    compressor.load_state_dict({**compressor.state_dict(), **kept})
