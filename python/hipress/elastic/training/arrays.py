"""Views of frameworks whose gradients are summed in NumPy arrays, by the native engine only."""

from __future__ import annotations

import abc
import math
import os
import pickle
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hipress.autotune.explanation import Explanation
from hipress.base import addresses
from hipress.config import AUTO, CompressionConfig
from hipress.dtypes import FLOAT32
from hipress.elastic.training import state
from hipress.elastic.training.array_outer_steps import ArrayOuterSteps
from hipress.elastic.training.outer_step_session import OuterStepSession
from hipress.elastic.training.sums import Carried, Sums
from hipress.elastic.training.tuned_sums import TunedGradients, TunedPseudoGradients, TunedSums
from hipress.errors import HipressError
from hipress.runtime import scheduler
from hipress.runtime.engine import Bucket, Engine
from hipress.runtime.error_feedback import Codecs, ErrorFeedback
from hipress.topology.graph import GRADIENT, PLAIN, Graph, Op, cut, worker

_MESSAGE = 1 << 20
"""Elements per message when a state is copied: 4 MiB."""
_PART = 1 << 24
"""Elements per part of a copy: 64 MiB. Each part has the engine's timeout, also on a slow link."""
_MAX_PARTS = 50
"""Maximum number of parts of a copy. Each part is reported to all members."""


class ArrayState(state.State):
    """State whose gradients are summed in arrays."""

    config: CompressionConfig
    outer_steps: ArrayOuterSteps | None

    @abc.abstractmethod
    def sizes(self) -> Mapping[str, tuple[int, str]]:
        """Return elements and type ("float32") of each gradient by name, in the layers' order."""

    @abc.abstractmethod
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of each gradient by name."""

    @abc.abstractmethod
    def allows_feedback(self) -> bool | None:
        """Return whether the optimizer supports error feedback unmodified, or None if unknown."""

    def summed_config(self) -> CompressionConfig:
        """Return the compression in the form for sums of gradients, if it is not type "auto"."""
        return self.config

    def explain(self) -> Explanation:
        """Return the reasons for the method of this view, with the measurements, to be printed.

        The method sums gradients or pseudo-gradients.
        """
        if self.config.type != AUTO:
            return Explanation(f"{self.config}, as was asked for")
        if self.session is None or self.session.compression is None:
            return Explanation("auto: nothing is measured before training begins")
        return self.session.compression.explain()

    def settings(self) -> dict[str, str]:
        """Return texts that must be the same on all workers, by name."""
        plan = "; ".join(f"{name} {each}" for name, each in self.config.decisions.items())
        return {"compression": str(self.config), "plan": plan, **super().settings()}


class ArraySession(OuterStepSession):
    """This worker's part of one view."""

    _state: ArrayState
    Carried = Carried

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._engine: Engine | None = None

    def _join(self, ranks: Sequence[int]) -> Engine:
        """Return the engine of a job of these ranks, which all call this.

        This rank is one of them. The job's scheduler runs in the process of the first one.
        """
        if self._engine is not None:
            return self._engine
        # A view may have two jobs: of the ranks that repeated a synchronization, and of all.
        own, first = "again/" if len(ranks) < self.size else "", ranks[0]
        file = scheduler.beside(os.environ.get("HIPRESS_TIMELINE", ""), f"view{self.view.epoch}")
        if self.rank == first:
            self._share(f"{own}job", uuid.uuid4().hex)
        name, rank, size = self.fetch(f"{own}job", first), ranks.index(self.rank), len(ranks)
        named, here = os.environ.get("DMLC_INTERFACE"), os.environ.get("DMLC_NODE_HOST")
        if not here:
            here = self._agent.address
            if named:
                here = addresses.of_interface(named, addresses.family_of(here))
        seconds = math.ceil(self._state.timeout)
        common = {
            "DMLC_NUM_WORKER": size,
            "DMLC_NUM_SERVER": 0,
            "HIPRESS_TIMEOUT": max(1, min(seconds, 86400)),
            "HIPRESS_START_TIMEOUT": math.ceil(self._setup_seconds),
            "HIPRESS_JOB": name,
            "DMLC_NODE_HOST": here,
        }
        found = scheduler.join(
            rank,
            common,
            lambda: here,
            lambda text: self._share(f"{own}scheduler", text),
            lambda: self.fetch(f"{own}scheduler", first),
            scheduler.beside(file, "again") if own else file,
            self.view.epoch,
            f"{self.view.identity}/{name}",
        )
        self._engine = Engine(*found, rank, size, self._state.timeout, name)
        self.check()
        return self._engine

    def _share(self, key: str, text: str) -> None:
        self._agent.share(self.view.epoch, key, text)

    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Copy a state, unchanged, to the ranks that are behind, over connections of the engine.

        Only members can do that, because they have the job's secret.
        """
        engine, data = self._join(range(self.size)), b""
        if self.rank == source:
            data = pickle.dumps(what, 4)
            self._share("copy", str(len(data)))
        size = len(data) or int(self.fetch("copy", source))
        elements = -(-size // 4)
        part = min(elements, max(_PART, elements // _MAX_PARTS + 1))
        parts = -(-elements // part)
        graph = _copy_graph(part, source, behind)
        codecs = Codecs("none", {}, average=False)
        key = engine.add_key(
            "a worker's state",
            graph,
            FLOAT32,
            f"from {source} to {behind}",
            ErrorFeedback(codecs, self.rank, self.size),
        )
        bucket = Bucket(engine, FLOAT32, [(0, part)], [(key, 0)], checked=False, own_keys=[key])
        memory = np.empty(0, np.uint8)
        if self.rank == source or self.rank in behind:
            memory = np.zeros(4 * part * parts, np.uint8)
            memory[: len(data)] = np.frombuffer(data, np.uint8)
            for number in range(parts):
                address = memory[4 * part * number :].ctypes.data
                bucket.begin(address, 0, "copying a worker's state").result()
                if self.rank != source:
                    self.has_copied(number)
        for rank in behind:
            if rank != self.rank:
                self.await_copy(rank, parts)
        return pickle.loads(memory[:size]) if self.rank in behind else {}

    def connect_ranks(self, ranks: Sequence[int]) -> None:
        """Start sums of these ranks."""
        if self.rank in ranks:
            state, engine = self._state, self._join(ranks)
            steps, warm_up = state.outer_steps, state.config.warm_up()[1] - state.completed
            if state.config.type == AUTO:
                sums = self._tuned(engine, self.known_choice(ranks))
            elif steps is None:
                config = state.summed_config()
                sums = Sums(engine, config, state.sizes(), uncompressed=max(0, warm_up))
            else:
                # One bucket: a NaN or Inf anywhere leaves all residuals unmodified.
                sums = Sums(engine, state.config, steps.sizes(), math.inf, max(0, warm_up))
            if steps is not None:
                steps.connect(sums)
            self.begin(sums)

    def _tuned(self, engine: Engine, known: Mapping[str, Any] | None) -> TunedSums:
        state, steps = self._state, self._state.outer_steps
        if steps is not None:
            return TunedPseudoGradients(
                engine,
                state.config,
                {name: outer.shape for name, outer in steps.outer.items()},
                steps.sizes(),
                known,
                math.inf,
                sync_every=steps.schedule.sync_every,
                delay=steps.schedule.delay,
            )
        return TunedGradients(
            engine,
            state.config,
            state.shapes(),
            state.sizes(),
            known,
            step=lambda: state.step,
            allows_feedback=state.allows_feedback,
        )

    def leave_ranks(self) -> None:
        """Close, on the connected ranks, what :meth:`connect_ranks` made, without a failure."""
        self.disconnect(in_peace=True)
        self._engine = None

    def fail(self, why: str) -> None:
        """Fail operations in the engine that this worker waits for."""
        if self._engine is not None:
            self._engine.fail(HipressError(why), "")

    def disconnect(self, in_peace: bool) -> None:
        """Leave the engine."""
        if self._engine is not None:
            self._engine.close(in_peace)


def _copy_graph(size: int, source: int, behind: Sequence[int]) -> Graph:
    """Return the graph that copies one worker's values to other workers.

    It is a chain, so each link carries the values once.
    """
    graph = Graph(size, cut(0, size, _MESSAGE))
    for p in range(len(graph.partitions)):
        payload = graph.add(worker(source), Op.ENCODE, p, GRADIENT, num_summands=PLAIN)
        for sender, receiver in zip([source, *behind], behind):
            graph.add(worker(sender), Op.SEND, p, payload, peer=worker(receiver))
            payload = graph.add(worker(receiver), Op.RECV, p, peer=worker(sender))
            graph.add(worker(receiver), Op.DECODE, p, payload)
    return graph
