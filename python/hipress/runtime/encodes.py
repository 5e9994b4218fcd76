"""How the tasks of a graph that encode do it: with which codec, and numbers of transactions."""

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
"""The kind of tasks that never compress."""
OWN = "own"
"""The kind of tasks that encode one rank's own gradient."""
transactions = itertools.count(1)
"""The numbers by which steps can be put back: no state meets one twice."""


class Codecs:
    """The codecs of one compression setting, by what they encode.

    A worker's own gradient goes by the codec that the user chose, a sum of several by that codec's
    form for sums (2bit's threshold grows with the number of summands; dgc's has no momentum, for
    the gradients had it already). With ``average``, the encode whose payload all ranks decode
    encodes the mean, in scale a sum of one; so no rank makes a pass over memory to divide.
    """

    def __init__(self, type: str, params: Mapping[str, object], average: bool = True) -> None:
        self._type, self._params, self.average = type, dict(params), average
        self._own = Compressor(type, **self._params)  # checks type and parameters
        self._shared: dict[object, Compressor] = {}
        self._lock = threading.Lock()

    def kind(self, task: Task, final: bool) -> object:
        """Return the kind of an ENCODE task: PLAIN, OWN, or the number of summands in a sum's
        scale.

        :param final: whether its payload is the result, see :func:`.origins.results`
        """
        if task.num_summands == casync.PLAIN:
            return PLAIN
        if task.of_gradient:
            return OWN
        return 1 if final and self.average else task.num_summands

    def identity(self, kind: object) -> bool:
        """Check whether payloads of this kind are elements as they are."""
        return kind == PLAIN or self._type == "none"

    def make(self, kind: object) -> Compressor:
        """Make a compressor with a residual of its own."""
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
    """Return the number that tells apart the random numbers of tasks that share a seed."""
    return zlib.crc32(f"{name}/{index}/{rank}".encode())


class EncodeBinding(NamedTuple):
    """The codec and scale of one task of a rank's program: HipressEncodeBinding in c_api.h."""

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
    """How each task of a rank that encodes does so.

    :param dtype: the gradient's type flag
    :param mean: what a sum of all ranks is multiplied by
    :param state_of: the state of a task of this index and kind
    :param wide: whether uncompressed sums on their way through others are float32, whatever the
        gradient's type; what all ranks get at the end has that type
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
