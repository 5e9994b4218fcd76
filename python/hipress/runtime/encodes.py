"""Codecs and transaction numbers of a graph's encode tasks."""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hipress.compression.compressor import Compressor
from hipress.dtypes import FLOAT32
from hipress.topology import graph as casync
from hipress.topology.graph import Graph, Op, Task, worker
from hipress.topology.origins import results

PLAIN = "plain"
"""Kind of tasks that never compress."""
OWN = "own"
"""Kind of tasks that encode one rank's own gradient."""
transactions = itertools.count(1)
"""Numbers by which steps can be rolled back. No state sees a number twice."""


class Codecs:
    """Codecs of one compression setting, by what they encode.

    The codec that the user chose encodes a worker's own gradient. A sum is encoded by that codec's
    form for sums: 2bit's threshold grows with the number of summands, and dgc's form has no
    momentum, because the gradients already include it. With ``average``, the encode whose payload
    all ranks decode encodes the mean, with the scale of a single gradient. No rank then needs a
    pass over memory to divide.
    """

    def __init__(self, type: str, params: Mapping[str, object], average: bool = True) -> None:
        self._type, self._params, self.average = type, dict(params), average
        self._own = Compressor(type, **self._params)  # checks type and parameters
        self._shared: dict[object, Compressor] = {}
        self._lock = threading.Lock()

    def kind(self, task: Task, final: bool) -> object:
        """Return the kind of an ENCODE task: PLAIN, OWN, or the number of summands in a sum's
        scale.

        Args:
            task: An ENCODE task.
            final: Whether its payload is the result; see :func:`.origins.results`.
        """
        if task.num_summands == casync.PLAIN:
            return PLAIN
        if task.of_gradient:
            return OWN
        return 1 if final and self.average else task.num_summands

    def identity(self, kind: object) -> bool:
        """Check whether payloads of this kind are the unmodified elements."""
        return kind == PLAIN or self._type == "none"

    def make(self, kind: object) -> Compressor:
        """Make a compressor with a new residual."""
        if kind == PLAIN:
            return Compressor("none")
        if kind == OWN:
            return Compressor(self._type, **self._params)
        return self._own.for_sum_of(kind)

    def decoder(self, kind: object) -> Compressor:
        """Return a compressor for decoding only, which any number of threads may share."""
        with self._lock:
            if kind not in self._shared:
                self._shared[kind] = self.make(kind)
            return self._shared[kind]


def random_stream(name: str, index: int, rank: int) -> int:
    """Return a number that separates the random numbers of tasks with the same seed."""
    return zlib.crc32(f"{name}/{index}/{rank}".encode())


class EncodeBinding(NamedTuple):
    """Codec and scale of one task of a rank's program: HipressEncodeBinding in c_api.h."""

    task: int
    codec: Compressor
    wire: int
    factor: float


def bindings(
    graph: Graph,
    rank: int,
    codecs: Codecs,
    dtype: int,
    mean: float,
    state_of: Callable[[int, Task, object], Any],
    wide: bool = True,
) -> list[EncodeBinding]:
    """Return the codec and state of each encode task of a rank.

    Args:
        dtype: Type flag of the gradient.
        mean: Factor of a sum over all ranks.
        state_of: Function that returns the state of a task, by its index and kind.
        wide: Whether uncompressed sums are sent as float32, whatever the gradient's type. The final
            result has the gradient's type.
    """
    node, final, bound = worker(rank), results(graph), []
    for t, task in enumerate(graph.tasks.get(node, [])):
        if task.op != Op.ENCODE:
            continue
        ends = (node, t) in final
        codec = state_of(t, task, codecs.kind(task, ends))
        narrow = task.of_gradient or ends or not wide
        factor = mean if ends and not task.of_gradient else 1.0
        bound.append(EncodeBinding(t, codec, dtype if narrow else FLOAT32, factor))
    return bound
