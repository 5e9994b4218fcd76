"""What encodes and what it keeps: a residual at every place of a graph that encodes."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping

from hipress.casync import graph
from hipress.casync.graph import Partition, Task
from hipress.compression import Compressor

PLAIN, OWN = "plain", "own"


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

        :param final: whether its payload is the result, see :func:`schedule.results`
        """
        if task.terms == graph.PLAIN:
            return PLAIN
        if task.inputs == (graph.GRADIENT,):
            return OWN
        return 1 if final and self.average else task.terms

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
        self.partitions: dict[tuple[str, int], Partition] = {}

    def get(self, name: str, index: int, partition: Partition, kind: object) -> Compressor:
        """The compressor of task ``index`` of this rank in ``name``'s graph."""
        key = (name, index)
        if key not in self.made:
            self.made[key] = self.codecs.make(kind)
            self.partitions[key] = partition
        return self.made[key]

    def stream(self, name: str, index: int) -> int:
        """32 bits that tell apart places whose random numbers have one seed."""
        return zlib.crc32(f"{name}/{index}/{self._rank}".encode())
