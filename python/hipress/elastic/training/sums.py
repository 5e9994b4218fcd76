"""Compressed sums of gradients in NumPy arrays, in steps that can be rolled back.

States of compression are kept by gradient and task, and move to the next view's sums. A residual is
in units of a gradient, whatever was encoded, because results are sums and not means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from hipress.compression.compressor import Compressor
from hipress.config import CompressionConfig
from hipress.dtypes import FLAGS, STORAGE
from hipress.runtime.encodes import OWN, Codecs, bindings, random_stream, transactions
from hipress.runtime.engine import Bucket, Engine
from hipress.topology import topologies
from hipress.topology.graph import PARTITION_ELEMENTS, Graph, Partition, Task, worker
from hipress.topology.origins import first_encoders
from hipress.topology.program import flatten

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


class Remembered:
    """State of one gradient on one worker: float32 arrays of its size, and a count of encodes."""

    def __init__(self, size: int) -> None:
        self.size, self.step = size, 0
        self.states: dict[str, np.ndarray] = {}

    def add(self, name: str, span: slice, values: np.ndarray) -> None:
        """Add a task's state of these elements."""
        self.states.setdefault(name, np.zeros(self.size, np.float32))[span] += values

    def move_to(self, codec: Compressor, span: slice, own: bool) -> None:
        """Move these elements' states to a task's new codec.

        Args:
            own: whether the task encodes the worker's own gradient alone. Otherwise it gets only
                the residual.
        """
        states = {n: np.zeros(span.stop - span.start, np.float32) for n in codec.state_names}
        for name, whole in self.states.items():
            if name == "residual" or (own and name in states):
                part = whole[span].copy()
                whole[span] = 0
                if name in states or part.any():
                    states[name] = part
        codec.load_state_dict({**codec.state_dict(), "states": states, "step": self.step})


class Gradients:
    """Gradients of one type that travel together in one flat array.

    Args:
        sizes: elements, by name
        dtype: by name, "float32"
    """

    def __init__(self, sizes: Mapping[str, int], dtype: str) -> None:
        self.flat = np.zeros(sum(sizes.values()), STORAGE[dtype])
        self.dtype, self.slices, at = FLAGS[dtype], {}, 0
        for name, size in sizes.items():
            self.slices[name] = slice(at, at + size)
            at += size
        self.bucket: Bucket | None = None


def buckets(sizes: Mapping[str, tuple[int, str]], most: float = _BUCKET_BYTES) -> list[Gradients]:
    """Group gradients into buckets. The last layer's come first, as in the backward pass.

    Args:
        sizes: elements and type by name, in the order of the layers
        most: maximum bytes of a group, unless one gradient has more
    """
    found, names, used, kind = [], {}, 0, ""
    for name, (size, dtype) in reversed(sizes.items()):
        wide = size * np.dtype(STORAGE[dtype]).itemsize
        if names and (used + wide > most or dtype != kind):
            found.append(Gradients(names, kind))
            names, used = {}, 0
        names[name], kind = size, dtype
        used += wide
    return [*found, Gradients(names, kind)] if names else found


class Sums:
    """Sums of one view. All its workers construct it with the same arguments.

    Args:
        config: configuration of the compression
        sizes: see :func:`buckets`
        most: see :func:`buckets`
        uncompressed: remaining steps of a warm-up
    """

    def __init__(
        self,
        engine: Engine,
        config: CompressionConfig,
        sizes: Mapping[str, tuple[int, str]],
        most: float = _BUCKET_BYTES,
        uncompressed: int = 0,
    ) -> None:
        self.engine, self.sizes, self.buckets = engine, sizes, buckets(sizes, most)
        self._plain = Codecs("none", {}, average=False)
        self._owners = {name: owner for owner, name in enumerate(sizes)}
        self._states: dict[tuple[str, int], tuple[Compressor, slice, bool]] = {}
        self._waiting: dict[str, Remembered] = {}
        self._steps: list[Future[None]] = []
        self._transaction = 0
        self._uncompressed, self._made = uncompressed, 0
        self._set(config)

    def _set(self, config: CompressionConfig) -> None:
        self.config, warm = config, replace(config, params=config.warm_up()[0])
        self._codecs = Codecs(config.type, warm.codec_params, average=False)

    def replace(self, config: CompressionConfig) -> None:
        """Continue with another compression, on all workers before the same step's first bucket.

        The states of the present compression move to it. If the step is rolled back, the states are
        also, but the compression stays.

        Raises:
            HipressError: if the job has failed
        """
        self.engine.await_encodes()
        self._waiting = self.remembered()
        self._set(config)
        for gradients in self.buckets:
            gradients.bucket = None

    def prepare(self, remembered: dict[str, Remembered]) -> None:
        """Create all keys together with the other workers, with the states of an earlier view.

        Raises:
            HipressError: if a worker is missing
        """
        self._waiting = remembered
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
        whole = [(0, of.flat.size)]
        return Bucket(self.engine, of.dtype, whole, keys, fusion, spans, own_keys=own)

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
        rank, codecs = self.engine.rank, self._codecs if compressed else self._plain
        tasks = graph.tasks.get(worker(rank), [])
        first = set(first_encoders(tasks).values())

        def state_of(index: int, task: Task, kind: object) -> Compressor:
            codec = codecs.make(kind)
            if compressed:
                part = graph.partitions[task.partition]
                self._keep(name, index, codec, part, kind == OWN, index in first)
            return codec

        bound = bindings(graph, rank, codecs, dtype, 1.0, state_of)
        about = f"{replace(self.config, plan=None)} {dtype} {name} {graph.partitions}"
        program = flatten(graph, worker(rank))
        return self.engine.add_key(name, program, graph.n, dtype, about, bound)

    def _keep(
        self, name: str, index: int, codec: Compressor, part: Partition, own: bool, first: bool
    ) -> None:
        """Keep a task's codec, and restore its state.

        The first task that encodes something with the worker's own gradient gets the whole state.
        Other tasks get the step only.
        """
        span = slice(part.offset, part.offset + part.count)
        codec.stream = random_stream(name, index, self.engine.rank)
        codec._size = part.count  # the engine encodes without Compressor.encode
        known = self._waiting.get(name)
        if known is not None and first:
            known.move_to(codec, span, own)
        elif known is not None:
            codec.load_state_dict({**codec.state_dict(), "step": known.step})
        self._states[name, index] = codec, span, own

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
        future = of.bucket.begin(of.flat.ctypes.data, self._transaction, what)
        self._steps = [step for step in self._steps if not step.done()] + [future]
        return future

    def begin_transaction(self) -> None:
        """Start a step that :meth:`roll_back` can undo, after the previous step has ended."""
        if self._transaction:
            self._made += 1
            if self._made == self._uncompressed:  # after the warm-up, other keys are needed
                for gradients in self.buckets:
                    gradients.bucket = None
        self._steps, self._transaction = [], next(transactions)

    def roll_back(self) -> None:
        """Restore the states of compression, bit for bit, from before this step.

        The step may have failed, be in progress or be complete. The worker may have to leave the
        job for that.
        """
        self.engine.settle(self._steps)
        if self._transaction:
            for codec, _, _ in self._states.values():
                codec.roll_back(self._transaction)
        self._transaction = 0

    def commit(self) -> None:
        """End a step whose result other workers have: what was sent stays sent."""
        self.engine.settle(self._steps)
        self._transaction = 0

    def remembered(self) -> dict[str, Remembered]:
        """Return and remove the states of this worker, when no step is in progress."""
        found = self._waiting
        for (name, _), (codec, span, own) in self._states.items():
            whole = found.setdefault(name, Remembered(self.sizes[name][0]))
            state = codec.state_dict()
            whole.step = max(whole.step, state["step"])
            for field, values in state["states"].items():
                if own or field == "residual":
                    whole.add(field, span, values)
        self._waiting, self._states = {}, {}
        return found

    def choice(self) -> Mapping[str, Any] | None:
        """Return the choice of type "auto" as JSON, or None if there is none."""
        return None

    def norm(self) -> float:
        """Return the 2-norm of all residuals, including those that no task has taken."""
        found = [codec.state_dict()["states"] for codec, _, _ in self._states.values()]
        found += [whole.states for whole in self._waiting.values()]
        residuals = [each["residual"] for each in found if "residual" in each]
        return math.sqrt(sum(float(np.square(r, dtype=np.float64).sum()) for r in residuals))


class Carried:
    """State that one view's sums leave for the next view, see :class:`.session.Carried`."""

    def __init__(self) -> None:
        self._found: dict[str, Remembered] = {}
        self.undecided: Sums | None = None
        self.choice: Mapping[str, Any] | None = None

    def take_from(self, compression: Sums) -> None:
        """Adopt the states of sums whose view has ended."""
        self.undecided, self._found = None, compression.remembered()
        self.choice = compression.choice()

    def give_to(self, compression: Sums) -> None:
        """Give these states to new sums."""
        compression.prepare(self._found)

    def to_copy(self) -> dict[str, Any]:
        """Return what a worker that joins must also have."""
        sizes = {name: (whole.size, whole.step) for name, whole in self._found.items()}
        return {"encoded": sizes, "choice": self.choice}

    def copy(self, found: Mapping[str, Any]) -> None:
        """Adopt another worker's :meth:`to_copy`, but keep this worker's residuals."""
        if self.undecided is not None:
            self.undecided.commit()
            self.take_from(self.undecided)
        self.choice = found["choice"]
        for name, (size, step) in found["encoded"].items():
            self._found.setdefault(name, Remembered(size)).step = step

    def norm(self, compression: Sums) -> float:
        """Return the 2-norm of all residuals of this worker."""
        return compression.norm()
