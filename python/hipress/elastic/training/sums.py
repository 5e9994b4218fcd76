"""Compressed sums of gradients in NumPy arrays, in steps that can be rolled back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from hipress.config import CompressionConfig
from hipress.dtypes import FLAGS, STORAGE
from hipress.runtime.engine import Bucket, Engine
from hipress.runtime.error_feedback import Codecs, ErrorFeedback, OwnState
from hipress.topology import topologies
from hipress.topology.graph import PARTITION_ELEMENTS, Graph

MIN_SIZE = 1024
"""Minimum elements of a compressed gradient by default. Smaller ones of a bucket travel together.
"""
_BUCKET_BYTES = 25 << 20
"""Maximum size of a bucket in bytes, unless one gradient has more."""
_MESSAGE_ELEMENTS = 1024
"""Minimum uncompressed elements for a separate message: 4 KiB of float32."""


def min_size(config: CompressionConfig) -> int:
    """Return the elements of the smallest gradient that is compressed."""
    return MIN_SIZE if config.min_size is None else config.min_size


class Gradients:
    """Gradients of one type that travel together in one flat array.

    Args:
        sizes: elements, by name
        dtype: by name, "float32"
    """

    def __init__(self, sizes: Mapping[str, int], dtype: str) -> None:
        self.flat = np.zeros(sum(sizes.values()), STORAGE[dtype])
        self.dtype, self.slices, offset = FLAGS[dtype], {}, 0
        for name, size in sizes.items():
            self.slices[name] = slice(offset, offset + size)
            offset += size
        self.bucket: Bucket | None = None


def buckets(
    sizes: Mapping[str, tuple[int, str]], max_bytes: float = _BUCKET_BYTES
) -> list[Gradients]:
    """Group gradients into buckets. The last layer's come first, as in the backward pass.

    Args:
        sizes: elements and type by name, in the order of the layers
        max_bytes: maximum bytes of a group, unless one gradient has more
    """
    groups, names, used, group_type = [], {}, 0, ""
    for name, (size, dtype) in reversed(sizes.items()):
        num_bytes = size * np.dtype(STORAGE[dtype]).itemsize
        if names and (used + num_bytes > max_bytes or dtype != group_type):
            groups.append(Gradients(names, group_type))
            names, used = {}, 0
        names[name], group_type = size, dtype
        used += num_bytes
    return [*groups, Gradients(names, group_type)] if names else groups


class Sums:
    """Sums of one view. All its workers construct it with the same arguments.

    Args:
        config: configuration of the compression
        sizes: see :func:`buckets`
        one_bucket: whether all gradients travel together
        uncompressed: remaining steps of a warm-up
    """

    def __init__(
        self,
        engine: Engine,
        config: CompressionConfig,
        sizes: Mapping[str, tuple[int, str]],
        one_bucket: bool = False,
        uncompressed: int = 0,
    ) -> None:
        self.engine, self.sizes = engine, sizes
        self.buckets = buckets(sizes, math.inf if one_bucket else _BUCKET_BYTES)
        self._uncompressed_feedback = ErrorFeedback(
            Codecs("none", {}, average=False), engine.rank, engine.world_size
        )
        self._owners = {name: owner for owner, name in enumerate(sizes)}
        self._elements = {name: size for name, (size, _) in sizes.items()}
        self._steps: list[Future[None]] = []
        self._uncompressed, self._made = uncompressed, 0
        self._set(config)

    def _set(self, config: CompressionConfig) -> None:
        self.config, warm = config, replace(config, params=config.warm_up()[0])
        codecs = Codecs(config.type, warm.codec_params, average=False)
        self.error_feedback = ErrorFeedback(codecs, self.engine.rank, self.engine.world_size)

    def replace(self, config: CompressionConfig) -> None:
        """Continue with another compression, on all workers before the same step's first bucket.

        The states of the present compression move to it. If the step is rolled back, the states are
        also, but the compression stays.

        Raises:
            HipressError: if the job has failed
        """
        self.engine.await_encodes()
        states, transaction = self.carry_over(), self.error_feedback.transaction
        self._set(config)
        self.error_feedback.reshard(states)
        self.error_feedback.transaction = transaction
        for gradients in self.buckets:
            gradients.bucket = None

    def reshard(self, states: Mapping[str, OwnState]) -> None:
        """Adopt this worker's states of an earlier view, before :meth:`prepare`."""
        self.error_feedback.reshard(states)

    def prepare(self) -> None:
        """Create all keys together with the other workers.

        Raises:
            HipressError: if a worker is missing
        """
        for gradients in self.buckets:
            gradients.bucket = self._bucket(gradients)

    def _bucket(self, of: Gradients) -> Bucket:
        keys, small = [], {}
        compressed = self.config.type != "none"
        for name, span in of.slices.items():
            size, decision = span.stop - span.start, self.config.decisions.get(name)
            if size and self._is_large(name, size) and self._made >= self._uncompressed:
                graph = self._graph(size, name, decision and decision.partitions)
                keys.append((self._key(name, graph, of.dtype, compressed), span.start))
            elif size:
                small[name] = span
        fusion = 0
        if small:
            count, first = sum(s.stop - s.start for s in small.values()), next(iter(small))
            parts = max(1, min(self.engine.world_size, count // _MESSAGE_ELEMENTS))
            graph = self._graph(count, first, None if count >= PARTITION_ELEMENTS else parts)
            fusion = self._key(f"fusion buffer of {first}", graph, of.dtype)
        spans = [(s.start, s.stop - s.start) for s in small.values()]
        own = [key for key, _ in keys] + [fusion] * bool(fusion)
        return Bucket(self.engine, of.dtype, [(0, of.flat.size)], keys, fusion, spans, own_keys=own)

    def compresses(self, name: str, size: int) -> bool:
        """Return whether a gradient of so many elements is compressed after a warm-up."""
        return self.config.type != "none" and size > 0 and self._is_large(name, size)

    def _is_large(self, name: str, size: int) -> bool:
        decision = self.config.decisions.get(name)
        return decision.compress if decision else size >= min_size(self.config)

    def _graph(self, size: int, name: str, partitions: int | None = None) -> Graph:
        wanted = self.config.topology
        topology = topologies.among_workers("ps" if wanted in (None, "auto") else wanted)
        return topologies.build(
            topology,
            size,
            self.engine.world_size,
            home=self._owners[name],
            devices_per_host=self.config.devices_per_host or 1,
            partitions=partitions,
        )

    def _key(self, name: str, graph: Graph, dtype: int, compressed: bool = False) -> int:
        error_feedback = self.error_feedback if compressed else self._uncompressed_feedback
        key = self.engine.add_key(
            name, graph, dtype, str(replace(self.config, plan=None)), error_feedback
        )
        error_feedback.finish_reshard([name])
        return key

    # Steps.

    def begin_step(self) -> None:
        """Prepare a step. All workers call this before its first bucket is filled.

        Raises:
            HipressError: if a worker dies or is silent meanwhile
        """

    def before_round(self, step: int, steps: int, seconds: float) -> None:
        """Prepare the sums of an outer step. All workers call this before them.

        Args:
            step: number of inner steps so far
            steps: inner steps of the outer step
            seconds: mean duration of an inner step

        Raises:
            HipressError: if a worker dies or is silent meanwhile
        """

    def took(self, seconds: float) -> None:
        """Record how long the sums of an outer step took."""

    def make_keys(self, of: Gradients) -> None:
        """Create a bucket's keys together with the other workers, if it has none.

        Raises:
            HipressError: if a worker is missing
        """
        if of.bucket is None:
            of.bucket = self._bucket(of)

    def start(self, of: Gradients) -> Future[None]:
        """Start to replace a bucket's gradients by their sums, in the same order on all workers.

        Raises:
            HipressError: if new keys are needed, and a worker is missing
        """
        self.make_keys(of)
        what = f"the bucket of {next(iter(of.slices))}"
        future = of.bucket.begin(of.flat.ctypes.data, self.error_feedback.transaction, what)
        self._steps = [step for step in self._steps if not step.done()] + [future]
        return future

    def reduce(self, load: Callable[[Gradients], None]) -> Iterator[Gradients]:
        """Make a step: replace all gradients by their sums.

        Args:
            load: Function that writes this worker's gradients into a bucket.

        Returns:
            Iterator over the buckets, each of which has its sums.

        Raises:
            HipressError: if a worker has died or is silent
        """
        self.begin_step()
        pending = []
        for gradients in self.buckets:
            load(gradients)
            pending.append((self.start(gradients), gradients))
        for future, gradients in pending:
            future.result()
            yield gradients

    def begin_transaction(self) -> None:
        """Start a step that :meth:`roll_back` can undo, after the previous step has ended."""
        if self.error_feedback.transaction:
            self._made += 1
            if self._made == self._uncompressed:  # after the warm-up, other keys are needed
                for gradients in self.buckets:
                    gradients.bucket = None
        self._steps = []
        self.error_feedback.begin_transaction()

    def roll_back(self) -> None:
        """Restore the states of compression, bit for bit, from before this step.

        The step may have failed, be in progress or be complete. The worker may have to leave the
        job for that.
        """
        self.engine.end_steps(self._steps)
        if self.error_feedback.transaction:
            self.error_feedback.roll_back()

    def commit(self) -> None:
        """End a step whose result other workers have: what was sent stays sent."""
        self.engine.end_steps(self._steps)
        self.error_feedback.commit()

    def carry_over(self) -> dict[str, OwnState]:
        """Return the states of this worker, when no step is in progress."""
        return self.error_feedback.carry_over(self._elements)

    def common_state(self) -> dict[str, Any]:
        """Return nothing: workers have no state of the compression in common but their choice."""
        return {}

    def load_common_state(self, state: Mapping[str, Any]) -> None:
        """Do nothing; see :meth:`common_state`."""

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice of type "auto" as JSON, or None if there is none."""
        return None
