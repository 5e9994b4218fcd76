"""Elastic training for frameworks whose gradients are summed in NumPy arrays, by the native engine.

A front end implements the abstract methods of :class:`ArrayState`, and gives :class:`ArrayAdapter`
to :func:`hipress.elastic.training.view_loop.run`.
"""

from __future__ import annotations

import abc
import math
import os
import pickle
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hipress.autotune.explanation import Explanation
from hipress.base import addresses
from hipress.config import AUTO, CompressionConfig
from hipress.dtypes import FLOAT32
from hipress.elastic.training import state
from hipress.elastic.training.adapter import FrameworkAdapter
from hipress.elastic.training.outer_steps import ArrayOuterSteps
from hipress.elastic.training.sums import Sums
from hipress.elastic.training.tuned_sums import TunedGradients, TunedPseudoGradients
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


class ArrayState(state.TrainingState):
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


class ArrayAdapter(FrameworkAdapter):
    """See :class:`hipress.elastic.training.adapter.FrameworkAdapter`."""

    state: ArrayState

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._engine: Engine | None = None
        self._sums: Sums | None = None

    def _join(self, ranks: Sequence[int]) -> Engine:
        """Return the engine of a job of these ranks, which all call this.

        This rank is one of them. The job's scheduler runs in the process of the first one.
        """
        if self._engine is not None:
            return self._engine
        members = self.members
        # A view may have two jobs: of the ranks that repeated a synchronization, and of all.
        own, first = "again/" if len(ranks) < members.size else "", ranks[0]
        epoch, identity = members.view.epoch, members.view.identity
        file = scheduler.sibling_path(os.environ.get("HIPRESS_TIMELINE", ""), f"view{epoch}")
        if members.rank == first:
            members.share(f"{own}job", uuid.uuid4().hex)
        name = members.fetch(f"{own}job", first)
        rank, size = ranks.index(members.rank), len(ranks)
        named, here = os.environ.get("DMLC_INTERFACE"), os.environ.get("DMLC_NODE_HOST")
        if not here:
            here = members.agent.address
            if named:
                here = addresses.of_interface(named, addresses.family_of(here))
        common = {
            "DMLC_NUM_WORKER": size,
            "DMLC_NUM_SERVER": 0,
            "HIPRESS_TIMEOUT": max(1, min(math.ceil(members.timeout), 86400)),
            "HIPRESS_START_TIMEOUT": math.ceil(members.setup_seconds),
            "HIPRESS_JOB": name,
            "DMLC_NODE_HOST": here,
        }
        joined = scheduler.join(
            rank,
            common,
            lambda: here,
            lambda text: members.share(f"{own}scheduler", text),
            lambda: members.fetch(f"{own}scheduler", first),
            scheduler.sibling_path(file, "again") if own else file,
            epoch,
            f"{identity}/{name}",
        )
        self._engine = Engine(*joined, rank, size, members.timeout, name)
        members.check()
        return self._engine

    def transfer(
        self, source: int, behind: Sequence[int], what: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        """Copy a state, unchanged, to the ranks that are behind, over connections of the engine.

        Only members can do that, because they have the job's secret.
        """
        members, data = self.members, b""
        rank, engine = members.rank, self._join(range(members.size))
        if rank == source:
            data = pickle.dumps(what, 4)
            members.share("copy", str(len(data)))
        size = len(data) or int(members.fetch("copy", source))
        elements = -(-size // 4)
        part = min(elements, max(_PART, elements // _MAX_PARTS + 1))
        parts = -(-elements // part)
        key = engine.add_key(
            "a worker's state",
            _copy_graph(part, source, behind),
            FLOAT32,
            f"from {source} to {behind}",
            ErrorFeedback(Codecs("none", {}, average=False), rank, members.size),
        )
        bucket = Bucket(engine, FLOAT32, [(0, part)], [(key, 0)], checked=False, own_keys=[key])
        memory = np.empty(0, np.uint8)
        if rank == source or rank in behind:
            memory = np.zeros(4 * part * parts, np.uint8)
            memory[: len(data)] = np.frombuffer(data, np.uint8)
            for number in range(parts):
                address = memory[4 * part * number :].ctypes.data
                bucket.begin(address, 0, "copying a worker's state").result()
                if rank != source:
                    members.report_copied(number)
        for other in behind:
            if other != rank:
                members.await_copy(other, parts)
        return pickle.loads(memory[:size]) if rank in behind else {}

    def connect(
        self, ranks: Sequence[int], known_choice: Callable[[], Mapping[str, Any] | None]
    ) -> Sums | None:
        """Return new sums of these ranks."""
        if self.members.rank not in ranks:
            return None
        state, steps, engine = self.state, self.state.outer_steps, self._join(ranks)
        warm_up = max(0, state.config.warm_up()[1] - state.completed)
        # Pseudo-gradients are one bucket: a NaN or Inf anywhere leaves all residuals unmodified.
        if state.config.type != AUTO:
            config, sizes = state.config, steps and steps.sizes()
            if steps is None:
                config, sizes = state.summed_config(), state.sizes()
            sums = Sums(engine, config, sizes, one_bucket=steps is not None, uncompressed=warm_up)
        elif steps is not None:
            sums = TunedPseudoGradients(
                engine,
                state.config,
                {name: outer.shape for name, outer in steps.outer.items()},
                steps.sizes(),
                known_choice(),
                sync_every=steps.schedule.sync_every,
                delay=steps.schedule.delay,
            )
        else:
            sums = TunedGradients(
                engine,
                state.config,
                state.shapes(),
                state.sizes(),
                known_choice(),
                step=lambda: state.step,
                allows_feedback=state.allows_feedback,
            )
        if steps is not None:
            steps.connect(sums)
        self._sums = sums
        return sums

    def prepare(self, ranks: Sequence[int]) -> None:
        """Create the keys of the sums."""
        self._sums.prepare()

    def disconnect(self) -> None:
        """Close the engine without a failure."""
        self.close(without_failure=True)
        self._engine = None

    def fail(self, why: str) -> None:
        """Fail operations in the engine that this worker waits for."""
        if self._engine is not None:
            self._engine.fail(HipressError(why), "")

    def close(self, without_failure: bool) -> None:
        """Leave the engine."""
        if self._engine is not None:
            self._engine.close(without_failure)


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
