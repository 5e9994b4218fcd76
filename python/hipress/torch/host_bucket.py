"""A bucket of gradients in host memory, as the native engine synchronises it.

A gradient is a key of the engine's, which stays when DDP puts it into another bucket. What a key
does on this rank is its graph's program; how each encode of it is done, with which codec, state and
scale, is bound to it here (``src/casync/binding.h``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
import torch

from hipress._lib import FLOAT32, lib
from hipress.casync.graph import Graph, Op, worker
from hipress.casync.origins import results
from hipress.casync.program import flatten
from hipress.torch.dtypes import FLAGS
from hipress.torch.engine import Engine, Place
from hipress.torch.gradient import Gradient
from hipress.torch.low_rank import Factors
from hipress.torch.places import Places


def add_key(
    engine: Engine, gradient: Gradient, graph: Graph, dtype: torch.dtype, places: Places,
    about: str, momentum: float = 0.0, wide: bool = True,
) -> int:  # fmt: skip
    """Begins to make the key of a gradient, on all ranks together; returns its number.

    :param places: say how this rank's tasks encode, and keep what they remember
    :param about: settings that must be the same on all ranks
    :param momentum: see :meth:`Engine.add_key`
    :param wide: whether uncompressed sums on their way through others are float32, whatever the
        gradient's type; what all ranks get at the end has that type
    """
    node, final, average = worker(engine.rank), results(graph), places.codecs.average
    mean = 1.0 / engine.world_size if average else 1.0
    bound = []
    for t, task in enumerate(graph.tasks.get(node, [])):
        if task.op != Op.ENCODE:
            continue
        ends = (node, t) in final
        codec = places.get(gradient.name, graph, t, task, places.codecs.kind(task, ends))
        narrow = task.of_gradient or ends or not wide
        wire = FLAGS[dtype] if narrow else FLOAT32
        bound.append(Place(t, codec, wire, mean if ends and not task.of_gradient else 1.0))
    start = gradient.offset
    program = flatten(graph, node, lambda element: gradient.at(element) - start)
    last = gradient.at(gradient.count - 1) - start + 1
    text = f"{about} {dtype} {gradient._replace(offset=0)} {graph.partitions}"
    return engine.add_key(
        gradient.name, program, last, FLAGS[dtype], text, bound, mean, momentum
    )  # fmt: skip


def spans(pieces: Sequence[slice]) -> np.ndarray:
    """HipressSpan of each piece, neighbours as one."""
    found: list[list[int]] = []
    for piece in pieces:
        if found and sum(found[-1]) == piece.start:
            found[-1][1] += piece.stop - piece.start
        else:
            found.append([piece.start, piece.stop - piece.start])
    return np.array(found, np.int64).reshape(-1, 2)


class HostBucket:
    """A bucket that is synchronised in one call.

    :param dtype: of the flat tensor
    :param gradients: all of the bucket's
    :param keys: of gradients that travel in place, each with where it begins
    :param fused: gradients that travel one behind the other by the key ``fusion``
    :param checked: whether a NaN or Inf anywhere makes all results NaN, and leaves nothing in what
        is remembered; else it takes its natural way
    :raises hipress.HipressError: if ranks differ in their keys, or one is missing
    """

    def __init__(
        self,
        engine: Engine,
        dtype: torch.dtype,
        gradients: Sequence[Gradient],
        keys: Sequence[tuple[int, int]],
        fusion: int = 0,
        fused: Sequence[Gradient] = (),
        checked: bool = True,
    ) -> None:
        self._engine, self._handle = engine, ctypes.c_void_p()
        self._factors: list[Factors] = []
        every = spans([piece for g in gradients for piece in g.slices()])
        small = spans([piece for g in fused for piece in g.slices()])
        numbers = np.array([key for key, _ in keys], np.uint64)
        offsets = np.array([offset for _, offset in keys], np.int64)
        engine.await_keys()
        engine.check(
            lib.HipressBucketCreate(
                engine.member.handle, FLAGS[dtype], every.ctypes.data, len(every),
                numbers.ctypes.data, offsets.ctypes.data, len(keys), fusion, small.ctypes.data,
                len(small), int(checked), ctypes.byref(self._handle),
            )
        )  # fmt: skip

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and lib is not None:
            lib.HipressBucketFree(self._handle)

    def set_low_rank(
        self, p: int, q: int, factors: Sequence[Factors], matrices: Sequence[Gradient]
    ) -> None:
        """Makes matrices travel as factors: all P by one key, with what is fused behind, and all Q.

        :param factors: what is remembered of the matrices
        """
        self._factors = list(factors)
        addresses = np.array([ctypes.addressof(f.matrix) for f in factors], np.uint64)
        offsets = np.array([gradient.offset for gradient in matrices], np.int64)
        self._engine.check(
            lib.HipressBucketSetLowRank(
                self._handle, self._engine.member.handle, p, q, addresses.ctypes.data,
                offsets.ctypes.data, len(factors),
            )
        )  # fmt: skip

    def run(self, host: torch.Tensor, done: Callable[[str | None], None]) -> None:
        """Starts a step; all that it needs must stay until it is over.

        :param host: the flat tensor
        :param done: called in any thread when it is over, with the error's sentence
        """

        def over(error: str | None, spoilt: bool) -> None:
            if error is None and not spoilt:
                for factors in self._factors:
                    factors.step += 1
            done(error)

        self._engine.run(self._handle, host.data_ptr(), over)
