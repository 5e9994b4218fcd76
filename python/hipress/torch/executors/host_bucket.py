"""Calls of the native engine for a bucket of gradients in host memory.

The work of a key on this rank is its graph's program. Codec, state and scale of each encode are
bound to it here (``src/casync/flow.h``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from hipress.errors import HipressError
from hipress.native.library import lib
from hipress.runtime.encodes import bindings
from hipress.runtime.engine import Bucket
from hipress.topology.graph import Graph, worker
from hipress.topology.program import flatten
from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.engine import Engine
from hipress.torch.gradient import Gradient, contiguous_slices
from hipress.torch.low_rank import Factors
from hipress.torch.state.error_feedback import ErrorFeedback


def add_key(
    engine: Engine,
    gradient: Gradient,
    graph: Graph,
    dtype: torch.dtype,
    error_feedback: ErrorFeedback,
    about: str,
    momentum: float = 0.0,
    wide: bool = True,
) -> int:
    """Start to create the key of a gradient on all ranks together, and return its number.

    Args:
        error_feedback: codecs and states of this rank's tasks
        about: settings that must be the same on all ranks
        momentum: see :meth:`Engine.add_key`
        wide: whether partial sums of uncompressed gradients are float32 in messages, whatever the
            gradient's type; the final result has that type
    """
    node, codecs = worker(engine.rank), error_feedback.codecs
    mean = 1.0 / engine.world_size if codecs.average else 1.0
    bound = bindings(
        graph,
        engine.rank,
        codecs,
        FLAGS[dtype],
        mean,
        lambda t, task, kind: error_feedback.state_of(gradient.name, graph, t, task, kind),
        wide,
    )
    start = gradient.offset
    program = flatten(graph, node, lambda element: gradient.at(element) - start)
    last = gradient.at(gradient.count - 1) - start + 1
    text = f"{about} {dtype} {gradient._replace(offset=0)} {graph.partitions}"
    return engine.add_key(gradient.name, program, last, FLAGS[dtype], text, bound, mean, momentum)


def _spans(gradients: Iterable[Gradient]) -> list[tuple[int, int]]:
    return [(piece.start, piece.stop - piece.start) for piece in contiguous_slices(gradients)]


class HostBucket(Bucket):
    """Bucket of PyTorch; see :class:`hipress.runtime.engine.Bucket`.

    Args:
        dtype: type of the flat tensor
        gradients: all gradients of the bucket
        fused: gradients that travel in a fusion buffer, by the key ``fusion``
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
        own_keys: Sequence[int] = (),
    ) -> None:
        self._factors: list[Factors] = []
        spans = _spans(gradients), _spans(fused)
        super().__init__(engine, FLAGS[dtype], spans[0], keys, fusion, spans[1], checked, own_keys)

    def set_low_rank(
        self, p: int, q: int, factors: Sequence[Factors], matrices: Sequence[Gradient]
    ) -> None:
        """Send matrices as low-rank factors.

        All P and the fused gradients use one key, and all Q another one.

        Args:
            factors: the states of the matrices
        """
        self._factors = list(factors)
        addresses = np.array([ctypes.addressof(f.matrix) for f in factors], np.uint64)
        offsets = np.array([gradient.offset for gradient in matrices], np.int64)
        self._engine.check(
            lib.HipressBucketSetLowRank(
                self._handle,
                self._engine.member.handle,
                p,
                q,
                addresses.ctypes.data,
                offsets.ctypes.data,
                len(factors),
            )
        )

    def run(
        self, host: torch.Tensor, done: Callable[[HipressError | None], None], transaction: int = 0
    ) -> None:
        """Start a step. Its memory must stay valid until the step has ended.

        Args:
            host: the flat tensor
            done: called in any thread when the step has ended, with its error
            transaction: number with which the step can be rolled back, or 0 if it cannot
        """

        def on_done(error: HipressError | None, nonfinite: bool) -> None:
            if error is None and not nonfinite:
                for factors in self._factors:
                    factors.step += 1
            done(error)

        for factors in self._factors:
            factors.save(transaction)
        self.start(host.data_ptr(), transaction, on_done)
