"""Synchronizer of flat tensors of named gradients, which every front end uses in each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from hipress.errors import HipressError
from hipress.runtime.error_feedback import Codecs, ErrorFeedback, GlobalState
from hipress.torch.executors.collectives import AllReduce
from hipress.torch.executors.cuda.executor import CudaExecutor, CudaSteps
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.host import HostExecutor, HostSteps
from hipress.torch.gradient import Gradient, summarize
from hipress.torch.settings import Settings, digest
from hipress.torch.state import checkpoint
from hipress.torch.state.momentum import SharedMomentum, watch_optimizers
from hipress.torch.stats import Stats, Traffic, reason


class Shards(NamedTuple):
    """Part of each parameter whose gradients a process group's ranks synchronize."""

    count: int
    """Number of parts of the parameters. Each part has such a process group."""
    index: int
    """Index of this part."""
    offsets: Mapping[str, int]
    """First element of the part, by parameter."""
    sizes: Mapping[str, int]
    """Elements of all parts, by parameter."""
    data_rank: int
    """Number that separates random numbers of ranks with different data or parts.

    Ranks of tensor parallelism have the same one. So a parameter that they all have, with equal
    gradients, stays equal.
    """


class _Transaction(NamedTuple):
    """Step that can be rolled back."""

    step: int
    buckets: list[torch.futures.Future]


class Synchronizer:
    """Compression of one set of gradients on one process group.

    Gradients of fewer than min_size elements are not compressed, and travel packed in a fusion
    buffer for each bucket. Larger uncompressed ones travel in place. The user's group all-reduces
    only gradients that the engine does not support: other types, and those on a GPU whose group is
    NCCL's.

    In checkpoints it is rank ``rank`` of ``world_size`` ranks that synchronize by ``topology``.

    Args:
        parameters: with their names, in an order that is the same on all ranks
        average: whether results are means instead of sums
        collective: default: an all-reduce
        shards: the part, if gradients are of a part of each parameter
        orders: order of a gradient's elements in the state, for each parameter whose own order it
            is not. A state of another order is not loaded
    """

    def __init__(
        self,
        settings: Settings,
        engine: ProcessGroupEngine,
        group: dist.ProcessGroup,
        parameters: Sequence[tuple[str, torch.nn.Parameter]],
        average: bool = True,
        collective: AllReduce | None = None,
        shards: Shards | None = None,
        orders: Mapping[str, str] | None = None,
    ) -> None:
        self.settings, self.engine, self.step, self.average = settings, engine, 0, average
        self.names = {id(parameter): name for name, parameter in parameters}
        self.sizes = sizes = {
            name: shards.sizes[name] if shards else parameter.numel()
            for name, parameter in parameters
        }
        self.collective = collective or AllReduce(
            settings, group, engine.world_size, sizes, average
        )
        self._shapes = {name: self._shape(parameter) for name, parameter in parameters}
        self.rank, self.world_size = engine.rank, engine.world_size
        self.group = group if shards is None else None
        """Process group of all ranks of the checkpoints, or None for all ranks of the job."""
        self.topology, offsets = self.collective.topology, None
        self._data_rank = engine.rank if shards is None else shards.data_rank
        if shards is not None:
            self.rank = engine.rank * shards.count + shards.index
            self.world_size *= shards.count
            self.topology += f" of {shards.count} shards"
            offsets = shards.offsets
        # Factors are not partitioned.
        decisions = {} if settings.rank else settings.decisions
        parts = sorted((n, d.partitions) for n, d in decisions.items() if d.compress)
        about = list(sizes.items()), offsets, average, settings.devices_per_host, parts
        self.orders = dict(orders or {})
        about += (sorted(self.orders.items()),) if self.orders else ()
        self.layout = digest(str(about))
        """Digest that is equal in jobs of one size in which each task encodes the same elements."""
        self._offsets = offsets
        self.error_feedback = self._new_error_feedback()
        self.shared: SharedMomentum | None = None
        if settings.shared_momentum:
            share = 1.0 if average else 1.0 / engine.world_size
            self.shared = SharedMomentum(settings.shared_momentum, offsets, share)
        self._executor: HostExecutor | CudaExecutor | None = None
        self._buckets: dict[tuple, HostSteps | CudaSteps] = {}
        self._unused: set[tuple] = set()
        """Keys of buckets that were prepared and have had no step yet."""
        self._traffic = Traffic()
        self._transaction: _Transaction | None = None
        if settings.any_momentum:
            watch_optimizers(self)

    def _new_error_feedback(self) -> ErrorFeedback:
        codecs = Codecs(*self.settings.codec, self.average)
        return ErrorFeedback(codecs, self._data_rank, self.engine.world_size, self._offsets)

    def replace_codec(self, settings: Settings) -> None:
        """Continue with another codec, on all ranks at the same step, before its first bucket.

        This rank's residuals are added to the next gradients. If a transaction is rolled back, the
        residuals are also, but the codec is not.

        Args:
            settings: settings that differ only in type, parameters and plan
        """
        remembered = self.error_feedback.carry_over(self.sizes)
        self._traffic.settle(self._reason)
        self.settings = settings
        self.error_feedback = self._new_error_feedback()
        self.error_feedback.reshard(remembered)
        if self._transaction:
            self.error_feedback.begin_transaction()
        self._executor, self._buckets, self._unused = None, {}, set()

    def _shape(self, parameter: torch.nn.Parameter) -> tuple[int, ...]:
        """Return the shape of a parameter's gradient in the flat tensor."""
        return tuple(parameter.shape)

    def prepare(self, buckets: Sequence[tuple[torch.Tensor, Sequence[Gradient], str]]) -> None:
        """Prepare the steps of these buckets, in a warm-up and after it, on all ranks together.

        Otherwise a bucket is prepared in its first step, and waits until all ranks have it in the
        same order. That is not possible where ranks may leave different parameters unused.

        Args:
            buckets: for each one a tensor of its dtype on its device, its gradients and its name

        Raises:
            HipressError: if ranks differ, or one is missing
        """
        if self.settings.encode_on == "device":
            return  # no rank waits for another one there
        for step in sorted({self.step, max(self.step, self.settings.warmup_steps)}):
            for flat, gradients, what in buckets:
                present = tuple(gradient for gradient in gradients if gradient.count)
                try:
                    if present:
                        key = self._key(flat, present, step)
                        self._prepare(key, flat)
                        self._unused.add(key)
                except Exception as error:
                    raise self.engine.fail(error, _named(what, present)) from None

    # Every step.

    def synchronize(
        self, flat: torch.Tensor, gradients: Sequence[Gradient], what: str
    ) -> torch.futures.Future:
        """Start to replace the gradients in ``flat`` by their means (or sums) over the ranks.

        ``flat`` is one-dimensional and contiguous, in host memory or on a GPU. ``what`` names the
        bucket in errors. The result is a future of ``flat``, or of a HipressError.
        """
        present = tuple(gradient for gradient in gradients if gradient.count)
        future = self._start(flat, present, what)
        if self._transaction:
            self._transaction.buckets.append(future)
        return future

    def _start(
        self, flat: torch.Tensor, gradients: tuple[Gradient, ...], what: str
    ) -> torch.futures.Future:
        what = _named(what, gradients)
        try:
            if gradients:
                return self._bucket(flat, gradients).start(flat, what)
        except Exception as error:
            future = self.engine.staging(flat.device).future()
            future.set_exception(self.engine.fail(error, what))
            return future
        future = self.engine.staging(flat.device).future()
        future.set_result(flat)
        return future

    def _bucket(self, flat: torch.Tensor, gradients: tuple[Gradient, ...]) -> HostSteps | CudaSteps:
        """Return the steps of the bucket with these gradients, prepared if it is new."""
        key = self._key(flat, gradients, self.step)
        warming_up = key[3]
        self._traffic.add(gradients, flat.element_size(), "in the warm-up" if warming_up else "")
        if key in self._unused:
            self._unused.remove(key)
            self._forget(key)
            self.engine.drop_retired_keys()
        elif key not in self._buckets:
            self._forget(key)
            self._prepare(key, flat)
        return self._buckets[key]

    def _key(self, flat: torch.Tensor, gradients: tuple[Gradient, ...], step: int) -> tuple:
        """Return the key of a bucket in ``_buckets``, which differs in a warm-up and after it."""
        if self._executor is None:
            parts = self.settings, self.engine, self.collective, self.error_feedback, self.shared
            if self.settings.encode_on == "device":
                self._executor = CudaExecutor(*parts, flat.device)
            else:
                self._executor = HostExecutor(*parts, self._shapes)
        warming_up = step < self.settings.warmup_steps
        codecs_warm_up = self._executor.codecs_warm_up(step)
        return gradients, flat.dtype, flat.device, warming_up, codecs_warm_up

    def _prepare(self, key: tuple, flat: torch.Tensor) -> None:
        """Prepare the bucket of this key."""
        gradients, _, _, warming_up, codecs_warm_up = key
        compressed, uncompressed = [], []
        for gradient in gradients:
            large = not warming_up and self.compresses(gradient.name, gradient.count)
            (compressed if large else uncompressed).append(gradient)
        self._buckets[key] = self._executor.bucket(flat, compressed, uncompressed, codecs_warm_up)
        self.error_feedback.finish_reshard(gradient.name for gradient in compressed)
        if not warming_up:
            self.error_feedback.warn_unused(gradient.name for gradient in uncompressed)

    def _forget(self, key: tuple) -> None:
        """Free earlier buckets of these gradients. Buckets that were prepared for later stay.

        DDP moves gradients to other buckets after the first step, and a warm-up ends.
        """
        names = {gradient.name for gradient in key[0]}
        # The backend's tensors of one count have one name in every dtype, and on every device.
        over = [
            old
            for old in self._buckets
            if old != key
            and old[1:3] == key[1:3]
            and (old not in self._unused or old[3:] > key[3:])  # a key of an earlier step
            and names.intersection(gradient.name for gradient in old[0])
        ]
        for old in over:
            del self._buckets[old]
            self._unused.discard(old)

    def compresses(self, name: str, count: int) -> bool:
        """Return whether a gradient of this name and size is compressed after a warm-up."""
        return self.settings.compresses(name, count, self._shapes.get(name, ()))

    def poll(self) -> None:
        """Raise an error that is known by now, without waiting.

        Raises:
            HipressError: error that all later calls also raise
        """
        if self._executor is not None:
            self._executor.poll()
        if self.engine.error:
            raise self.engine.error

    # Transactions: steps of a job that must continue when a rank dies.

    def begin_transaction(self) -> None:
        """Start a step that :meth:`roll_back` can undo. It lasts until the next call.

        Call this before a step's first bucket, when the previous step has ended.

        Raises:
            ValueError: if gradients are encoded on a GPU
            HipressError: if a bucket of the previous transaction is in progress
        """
        if self.settings.encode_on == "device":
            raise ValueError("only encode_on='host' has steps that can be rolled back")
        if self._transaction and not all(each.done() for each in self._transaction.buckets):
            raise HipressError("a transaction cannot begin before the step before it is over")
        self._transaction = _Transaction(self.step, [])
        self.error_feedback.begin_transaction()
        if self.shared:
            self.shared.begin_transaction()

    def roll_back(self) -> None:
        """Restore all state of this rank, bit for bit, from before the transaction.

        The state consists of residuals and other vectors of codecs, their steps, shared momentum,
        low rank's factors, and :attr:`step`. The step may have failed, be in progress or be
        complete. Gradients are not restored.

        States that the step created stay, and are zeros, or what was loaded for them. If the job
        has failed, or a bucket is in progress, this rank leaves the job. Otherwise all ranks roll
        back the same step, and may continue.

        Raises:
            ValueError: if no transaction has begun since the last call, or since a state was loaded
            HipressError: if a bucket that waits for the user's process group does not end
        """
        transaction = self._settled()
        if self.shared:
            self.shared.roll_back(self.error_feedback.transaction)
        self.error_feedback.roll_back()
        self.step, self._transaction = transaction.step, None

    def commit(self) -> None:
        """End a transaction whose step another rank has completed, but this rank perhaps has not.

        What this rank sent stays sent, because the other rank's results contain it. State that all
        ranks have in common must then be copied from the other rank: results, weights, shared
        momentum, low rank's ``start_q``. The engine's work ends as in :meth:`roll_back`.

        Raises:
            ValueError, HipressError: as :meth:`roll_back`
        """
        transaction = self._settled()
        if self.shared:
            self.shared.commit()
        self.error_feedback.commit()
        self.step, self._transaction = max(self.step, transaction.step + 1), None

    def _settled(self) -> _Transaction:
        """Return the transaction, after all threads have finished with it."""
        transaction = self._transaction
        if transaction is None:
            raise ValueError("there is no step to roll back: begin_transaction() was not called")
        self.engine.end_steps(transaction.buckets)
        return transaction

    # Information for users.

    def momentum(self, parameter: torch.nn.Parameter) -> float:
        """Return the codec's momentum for the gradients of a parameter after the warm-up, or 0.

        The codec multiplies earlier gradients by it before it adds the next one and encodes the
        sum. In some topologies only some ranks' gradients get it, see
        :meth:`Settings.check_momentum`.
        """
        name = self.names.get(id(parameter))
        if name is None or not self.compresses(name, math.prod(self._shapes[name])):
            return 0.0
        return self.settings.any_momentum

    @property
    def compresses_now(self) -> bool:
        """Whether the last step came after the warm-up."""
        return self.step > self.settings.warmup_steps

    def stats(self) -> Stats:
        """Return the bytes of this rank's compressed and uncompressed gradients, with reasons."""
        return self._traffic.stats(self._reason)

    def _reason(self, name: str, count: int) -> str:
        return reason(self.settings, name, count, self._shapes.get(name, ()))

    def state_dict(self) -> dict[str, Any]:
        """Return this rank's residuals, momentum and step, in host memory.

        torch.distributed.checkpoint saves and loads it for all ranks, also in a job of another
        size: ``dcp.save({"hipress": compression})``. See :mod:`hipress.torch.state.checkpoint`.
        """
        if self._executor is None:
            return checkpoint.state_dict(self)
        self._executor.join()
        state = checkpoint.state_dict(self)
        self._executor.poll()  # a state after a refused payload is not returned
        return state

    def global_state_dict(self) -> dict[str, Any]:
        """Return the states of all ranks on rank 0, and an empty dictionary on other ranks.

        All ranks call this together. It is for frameworks in which rank 0 saves one file and all
        ranks load it. Rank 0 needs memory for the states of all ranks.
        """
        return checkpoint.global_state_dict(self)

    @property
    def global_state(self) -> checkpoint.StateOfAllRanks:
        """Object whose ``state_dict()`` is :meth:`global_state_dict`.

        It is for frameworks that take such an object and call it on all ranks, for example
        ``accelerator.register_for_checkpointing(compression.global_state)``.
        """
        return checkpoint.StateOfAllRanks(self)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Load a state, on all ranks together.

        It may be from another number of ranks, topology or type, if the ranks together have the
        states of all its ranks.

        Raises:
            ValueError: if something is missing; the message names it
        """
        if self._executor is not None:
            self._executor.join()
        self._transaction, self.error_feedback.transaction = None, 0
        checkpoint.load_state_dict(self, saved)

    def before_load(self, world_size: int, type: str) -> None:
        """See :class:`hipress.torch.state.saved.Stateful`."""

    def reshard(self, states: dict[str, GlobalState]) -> None:
        """See :meth:`hipress.runtime.error_feedback.ErrorFeedback.reshard`."""
        tasks = {} if self._executor is None else self._executor.tasks()
        self.error_feedback.reshard(states, tasks)

    def after_load(self) -> None:
        """See :class:`hipress.torch.state.saved.Stateful`."""
        for gradients, _, _, warming_up, _ in self._buckets:
            names = [g.name for g in gradients if not self.compresses(g.name, g.count)]
            self.error_feedback.warn_unused([] if warming_up else names)


def _named(what: str, gradients: Sequence[Gradient]) -> str:
    """Return the name of a bucket in errors."""
    return f"{what} ({summarize([gradient.name for gradient in gradients])})"
