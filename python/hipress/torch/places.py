"""What encodes and what it keeps: a residual at every place of a graph that encodes."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping

from hipress.casync.graph import GRADIENT, Graph, Task
from hipress.compression import Compressor

PLAIN, OWN = "plain", "own"


class Codecs:
    """The codecs of one compression setting, by what they encode.

    A worker's own gradient goes by the codec that the user chose, a sum of several by that codec's
    form for sums (2bit's threshold grows with the number of terms; dgc's has no momentum, for the
    gradients had it already). Whoever encodes the sum of all workers' encodes the mean, if
    ``average``: then a sum of one term, in scale.
    """

    def __init__(self, type: str, params: Mapping[str, object], world_size: int, average: bool):
        self._type, self._params = type, dict(params)
        self._world_size, self._average = world_size, average
        self._own = Compressor(type, **self._params)  # checks type and parameters
        self._shared: dict[object, Compressor] = {}
        self._lock = threading.Lock()

    def kind(self, task: Task) -> object:
        """What an ENCODE task encodes: PLAIN, OWN, or the number of terms in a sum's scale."""
        if task.terms == 0:
            return PLAIN
        if task.inputs == (GRADIENT,):
            return OWN
        return 1 if self.means(task) else task.terms

    def means(self, task: Task) -> bool:
        """Whether an ENCODE task has the sum of all and is to encode their mean."""
        return self._average and task.inputs != (GRADIENT,) and task.terms == self._world_size

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


class Places:
    """All compressors of one rank, by gradient name and task.

    They stay when DDP puts gradients into other buckets, because they know nothing of buckets.
    """

    def __init__(self, codecs: Codecs, rank: int) -> None:
        self.codecs = codecs
        self._rank = rank
        self.made: dict[tuple[str, int], Compressor] = {}
        self.partitions: dict[tuple[str, int], tuple[int, int, bool]] = {}
        """Of each place: the offset of its partition, its count, whether it encodes the mean."""

    def get(self, name: str, graph: Graph, task: Task, index: int) -> Compressor:
        """The compressor of task ``index`` of this rank in ``name``'s graph."""
        key = (name, index)
        if key not in self.made:
            partition = graph.partitions[task.partition]
            self.made[key] = self.codecs.make(self.codecs.kind(task))
            means = self.codecs.means(task)
            self.partitions[key] = (partition.offset, partition.count, means)
        return self.made[key]

    def stream(self, name: str, index: int) -> int:
        """32 bits that tell apart places whose random numbers have one seed."""
        return zlib.crc32(f"{name}/{index}/{self._rank}".encode())
