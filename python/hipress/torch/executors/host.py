"""Executor of buckets in host memory, by the native engine.

A gradient is a key of the engine, which stays when DDP moves the gradient to another bucket.
Uncompressed gradients have keys of the bucket.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch

from hipress.errors import HipressError
from hipress.native.library import lib
from hipress.runtime.engine import Bucket
from hipress.runtime.error_feedback import Codecs, ErrorFeedback
from hipress.topology.graph import Graph, Task, worker
from hipress.torch.dtypes import FLAGS
from hipress.torch.executors.collectives import AllReduce
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.staging import Staged
from hipress.torch.executors.user_group import GroupAllReduce, GroupReduceScatter
from hipress.torch.gradient import Gradient, contiguous_slices, merge_adjacent, summarize
from hipress.torch.low_rank import Factors
from hipress.torch.private import backend
from hipress.torch.settings import Settings
from hipress.torch.state.momentum import MomentumAccess, SharedMomentum


def add_key(
    engine: ProcessGroupEngine,
    gradient: Gradient,
    graph: Graph,
    dtype: torch.dtype,
    error_feedback: ErrorFeedback,
    about: str,
    momentum: float = 0.0,
    float32_sums: bool = True,
) -> int:
    """Start to create the key of a gradient, see :meth:`hipress.runtime.engine.Engine.add_key`."""
    return engine.add_key(
        gradient.name,
        graph,
        FLAGS[dtype],
        f"{about} {gradient._replace(offset=0)}",
        error_feedback,
        lambda element: gradient.at(element) - gradient.offset,
        momentum,
        float32_sums,
    )


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
        engine: ProcessGroupEngine,
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
        """Send matrices, whose states are ``factors``, as low-rank factors.

        All P and the fused gradients use one key, and all Q another one.
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
        """Start a step in ``host``, the flat tensor, which must stay valid until its end.

        ``done`` is called in any thread at the end of the step, with its error.
        """

        def on_done(error: HipressError | None, nonfinite: bool) -> None:
            if error is None and not nonfinite:
                for factors in self._factors:
                    factors.step += 1
            done(error)

        for factors in self._factors:
            factors.save(transaction)
        self.start(host.data_ptr(), transaction, on_done)


class HostExecutor:
    """Executor that creates buckets, and their keys when they are first needed.

    All ranks do that together and in the same order.

    Args:
        collective: graphs by which gradients travel
        error_feedback: states of compressed gradients
        shared: momentum of compressed gradients, if there is one
        shapes: shapes of gradients in flat tensors, by name
    """

    def __init__(
        self,
        settings: Settings,
        engine: ProcessGroupEngine,
        collective: AllReduce,
        error_feedback: ErrorFeedback,
        shared: SharedMomentum | None,
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.engine, self.shared, self._shapes = engine, shared, shapes
        self._settings, self._collective = settings, collective
        self._error_feedback = error_feedback
        self._keys: dict[tuple, int] = {}
        """Keys of compressed gradients."""
        self._to_move: dict[str, MomentumAccess] = {}
        """Destinations of the momentum of gradients whose keys have had no step."""

    def __del__(self) -> None:
        self.engine.retire_keys(self._keys.values())

    @property
    def transaction(self) -> int:
        """Number with which new steps can be rolled back, or 0 if they cannot."""
        return self._error_feedback.transaction

    def codecs_warm_up(self, step: int) -> bool:
        """Return False, because buckets do not change after a codec's warm-up."""
        return False

    def tasks(self) -> dict[str, tuple[Graph, list[Task]]]:
        """Return the graphs of compressed gradients with a key, and this rank's tasks of them."""
        node = worker(self.engine.rank)
        graphs = {each.name: self._collective.graph(each) for each, _ in self._keys}
        return {name: (graph, graph.tasks.get(node, [])) for name, graph in graphs.items()}

    def poll(self) -> None:
        """Do nothing, because errors reach the future of a step."""

    def join(self) -> None:
        """Do nothing, because a step ends with its future."""

    def bucket(
        self,
        flat: torch.Tensor,
        compressed: Sequence[Gradient],
        uncompressed: Sequence[Gradient],
        codecs_warm_up: bool = False,
    ) -> HostSteps:
        """Prepare the steps of a bucket, on all ranks together.

        ``flat`` has the form of the tensors in the steps. Raises HipressError if ranks differ, or
        one is missing.
        """
        if self._needs_user_group(flat):
            native = self._native(flat.dtype, compressed, (), ()) if compressed else None
            group = self._collective.on_user_group(uncompressed) if uncompressed else None
        else:
            fuses = compressed and self._collective.fuses_small
            limit = self._settings.min_size if fuses else 0
            fused = [g for g in uncompressed if g.count < limit]
            in_place = [g for g in uncompressed if g.count >= limit]
            native, group = self._native(flat.dtype, compressed, fused, in_place), None
        return HostSteps(self, native, group, compressed, uncompressed)

    def _needs_user_group(self, flat: torch.Tensor) -> bool:
        """Return whether the engine cannot send the uncompressed gradients.

        These are other dtypes, and gradients on a GPU whose process group is NCCL's.
        """
        if flat.dtype not in FLAGS:
            return True
        staged = isinstance(self.engine.staging(flat.device), Staged)
        return staged and backend(self._collective.group, flat.device).name() == "nccl"

    def _native(
        self,
        dtype: torch.dtype,
        compressed: Sequence[Gradient],
        fused: Sequence[Gradient],
        in_place: Sequence[Gradient],
    ) -> HostBucket:
        """Return the engine's part of a bucket.

        Gradients travel compressed, packed in a fusion buffer, or uncompressed in place.
        """
        rank, keys, own = self._settings.rank if compressed else 0, [], []
        if rank:
            factors = [self._factors(gradient, rank) for gradient in compressed]
            sizes_p, sizes_q = zip(*(each.sizes for each in factors))
            count_p = sum(sizes_p) + sum(g.count for g in fused)
            owner = self._collective.owner(compressed[0])
            own.append(self._fused_key("P", count_p, torch.float32, compressed, owner))
            own.append(self._fused_key("Q", sum(sizes_q), torch.float32, compressed, owner + 1))
        else:
            keys += [(self._compressed_key(g, dtype), g.offset) for g in compressed]
            if fused:
                count, owner = sum(g.count for g in fused), self._collective.owner(fused[0])
                own.append(self._fused_key("fusion buffer", count, dtype, fused, owner))
        fusion = own[0] if fused else 0
        for run in merge_adjacent(in_place):
            graph = self._collective.uncompressed_graph(run)
            own.append(self._add_uncompressed(run, graph, dtype, float32_sums=False))
            keys.append((own[-1], run.offset))
        every = (*compressed, *fused, *in_place)
        made = HostBucket(self.engine, dtype, every, keys, fusion, fused, bool(compressed), own)
        if rank:
            made.set_low_rank(*own[:2], factors, compressed)
        return made

    def _factors(self, gradient: Gradient, rank: int) -> Factors:
        shape = self._shapes[gradient.name]
        return self._error_feedback.state_of_gradient(
            gradient.name, gradient.count, lambda: Factors(shape, rank)
        )

    def _compressed_key(self, gradient: Gradient, dtype: torch.dtype) -> int:
        about = (gradient._replace(offset=0), dtype)
        if about not in self._keys:
            engine, count, shared = self.engine, gradient.count, self.shared
            self._keys[about] = key = add_key(
                engine,
                gradient,
                self._collective.graph(gradient),
                dtype,
                self._error_feedback,
                self._about(),
                shared.weight if shared else 0.0,
            )
            if shared:
                access = MomentumAccess(
                    lambda: engine.momentum(key, count),
                    lambda values: engine.set_momentum(key, values),
                    lambda transaction: engine.roll_back_momentum(key, transaction),
                )
                self._to_move[gradient.name] = access
        return self._keys[about]

    def move_momentum(self, gradients: Sequence[Gradient]) -> None:
        """Move the shared momentum of these gradients to their keys, in their first step.

        Until then, for example in a warm-up, they have the momentum of uncompressed gradients.
        """
        for gradient in gradients if self._to_move else ():
            access = self._to_move.pop(gradient.name, None)
            if access is not None:
                self.shared.move_to_key(gradient.name, gradient.count, access)

    def _fused_key(
        self, what: str, count: int, dtype: torch.dtype, of: Sequence[Gradient], owner: int
    ) -> int:
        """Return the key of uncompressed elements of these gradients in a fusion buffer."""
        fused = Gradient(f"{what} of {summarize([g.name for g in of])}", 0, count)
        graph = self._collective.fused_graph(count, owner)
        return self._add_uncompressed(fused, graph, dtype, float32_sums=True)

    def _add_uncompressed(
        self, gradient: Gradient, graph: Graph, dtype: torch.dtype, float32_sums: bool
    ) -> int:
        engine = self.engine
        codecs = Codecs("none", {}, self._collective.average)
        stateless, about = ErrorFeedback(codecs, engine.rank, engine.world_size), self._about()
        return add_key(engine, gradient, graph, dtype, stateless, about, 0.0, float32_sums)

    def _about(self) -> str:
        return f"{self._settings.describe()} average={self._collective.average}"


class HostSteps:
    """Steps of one bucket, through host memory.

    Args:
        native: the engine's part; None if it has none
        group_sum: the part of the user's process group, if it has any
        compressed: compressed gradients
        uncompressed: uncompressed gradients
    """

    def __init__(
        self,
        executor: HostExecutor,
        native: HostBucket | None,
        group_sum: GroupAllReduce | GroupReduceScatter | None,
        compressed: Sequence[Gradient],
        uncompressed: Sequence[Gradient],
    ) -> None:
        self.native, self._executor, self._group_sum = native, executor, group_sum
        self._compressed, self._uncompressed = compressed, uncompressed

    def start(self, flat: torch.Tensor, what: str) -> torch.futures.Future:
        """Start a step, and return the future of ``flat``. ``what`` names the bucket in errors."""
        engine = self._executor.engine
        self._executor.move_momentum(self._compressed)
        staging = engine.staging(flat.device)
        future = staging.future()
        staged = staging.fetch(flat) if self.native else None
        pending = self._group_sum.start(flat) if self._group_sum else None
        transaction = self._executor.transaction

        def launch() -> None:
            try:
                self.native.run(staged.host(engine.timeout), on_done, transaction)
            except Exception as error:
                finish(error)

        def on_done(error: Exception | None) -> None:
            if pending is None:
                finish(error)
            else:  # it waits for the user's group, as no thread of the library's may
                engine.submit(lambda: finish(error))

        def finish(error: Exception | None) -> None:
            try:
                if error is not None:
                    raise engine.fail(error, what)
                with staging.returning(), torch.no_grad():
                    if staged is not None:
                        staged.copy_back()
                    if pending is not None:
                        engine.wait(pending.work, what, flat.device)
                        pending.unpack()
                    if self._executor.shared:
                        self._executor.shared.add_uncompressed(flat, self._uncompressed)
                    future.set_result(flat)
            except Exception as problem:
                future.set_exception(engine.fail(problem, what))

        if staged is None:
            engine.submit(lambda: finish(None))
        elif isinstance(staging, Staged):
            engine.submit(launch)
        else:
            launch()
        return future
