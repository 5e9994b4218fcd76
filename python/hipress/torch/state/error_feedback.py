"""Error feedback: the codec of every encoding task, and the residual that it keeps.

A task encodes the gradient g plus the residual r. What the codec does not send becomes the next
residual::

    step k     g + r(k) ── encode ──► payload (sent);   r(k+1) = g + r(k) - decoded payload

If step k fails on some rank, its payloads may have reached other ranks or not. A transaction
decides::

    no rank has the result     roll back: r(k) is restored bit for bit, and step k is repeated
    a rank has the result      commit: r(k+1) stays, because the result contains the payload
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hipress.compression.compressor import Compressor
from hipress.runtime.encodes import OWN, Codecs, random_stream, transactions
from hipress.topology.graph import Graph, Partition, Task
from hipress.topology.origins import residual_takers
from hipress.torch.low_rank import START, Factors
from hipress.torch.state import carry_over
from hipress.torch.state.carry_over import OwnState
from hipress.torch.state.global_state import GlobalState
from hipress.torch.state.saved import TaskState

_log = logging.getLogger("hipress")


class DeviceState:
    """State of one task on a GPU, with the state_dict() of a Compressor.

    Args:
        codecs: codecs of the job
        kind: the task's kind of codec
        count: elements that it encodes
    """

    def __init__(self, codecs: Codecs, kind: object, count: int, device: torch.device) -> None:
        self._make = lambda: codecs.make(kind)
        self.codec = self._make()
        self.state_names = self.codec.state_names
        self.states = {
            name: torch.zeros(count, dtype=torch.float32, device=device)
            for name in self.state_names
        }
        self.step = self.stream = 0
        self.carried: torch.Tensor | None = None
        """Residual from another codec, if this one keeps none, until it is encoded."""
        self._device = device

    def state_dict(self) -> dict[str, Any]:
        """Return the state in host memory, after waiting for the device."""
        states = {name: values.cpu().numpy() for name, values in self.states.items()}
        if self.carried is not None and bool(self.carried.any()):
            states["residual"] = self.carried.cpu().numpy()
        about = {"type": self.codec.type, "config": self.codec.config}
        return {**about, "step": self.step, "stream": self.stream, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the result of :meth:`state_dict`, of this class or of a Compressor.

        Raises:
            ValueError: if it is not such a state
        """
        host = self._make()
        host.load_state_dict(dict(state))
        found = host.state_dict()
        for name, values in self.states.items():
            if name in found["states"]:
                values.copy_(torch.from_numpy(found["states"][name]))
            else:
                values.zero_()
        carried = None if "residual" in self.states else found["states"].get("residual")
        self.carried = None if carried is None else torch.from_numpy(carried).to(self._device)
        self.step, self.stream = found["step"], found["stream"]


class ErrorFeedback:
    """State of every encoding task of one rank, by gradient name and task.

    States stay when DDP moves gradients to other buckets, because they are independent of buckets.
    Those of gradients that are encoded on a GPU are :class:`DeviceState`, once ``device`` is set.

    Args:
        world_size: number of ranks that synchronize these gradients together
        shard_offsets: for gradients of a part of a parameter, the part's first element by name
    """

    def __init__(
        self,
        codecs: Codecs,
        rank: int,
        world_size: int,
        shard_offsets: Mapping[str, int] | None = None,
    ) -> None:
        self.codecs, self._shard_offsets = codecs, shard_offsets or {}
        self._rank, self._world_size = rank, world_size
        self.device: torch.device | None = None
        self.states: dict[tuple[str, int], Compressor | DeviceState | Factors] = {}
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.kinds: dict[tuple[str, int], object] = {}
        self._steps: dict[tuple[str, int], int] = {}
        """Steps of states when they were created or loaded."""
        self.loaded: dict[tuple[str, int], TaskState] = {}
        """States that were loaded for tasks that have no state yet."""
        self.to_reshard: dict[str, GlobalState] = {}
        """States that were loaded for gradients that have not been compressed yet."""
        self.transaction = 0
        """Number with which changes of steps can be rolled back, or 0 if they cannot."""
        self._warned: set[str] = set()

    def state_of(
        self, name: str, graph: Graph, index: int, task: Task, kind: object
    ) -> Compressor | DeviceState:
        """Return the state of this rank's task ``index`` in a gradient's graph, or create it."""
        key = (name, index)
        if key not in self.states:
            partition = graph.partitions[task.partition]
            offset = partition.offset + self._shard_offsets.get(name, 0)
            partition = replace(partition, offset=offset)
            state = self._make(kind, partition.count)
            state.stream = random_stream(name, index, self._rank)
            self._add(key, state, partition, kind, self._takers(name, graph, index, task))
        return self.states[key]

    def _takers(self, name: str, graph: Graph, index: int, task: Task) -> int:
        """Return the number of tasks of all ranks that take parts of a gradient's loaded state.

        It counts tasks of the same partition, and is 0 if this task takes none. An OwnState is this
        rank's, so the number is 0 or 1 then.
        """
        waiting = self.to_reshard.get(name)
        if isinstance(waiting, OwnState):
            return int(waiting.carries(graph, index, task))
        tasks = residual_takers(graph, task.partition) if waiting else []
        return len(tasks) if any(each is task for each in tasks) else 0

    def factors(self, name: str, shape: Sequence[int], rank: int) -> Factors:
        """Return the state of a whole gradient that this rank sends as low-rank factors."""
        key = (name, 0)
        if key not in self.states:
            made = Factors(shape, rank)
            self._add(key, made, Partition(0, made.rows * made.cols), OWN, self._world_size)
        return self.states[key]

    def _add(
        self, key: tuple[str, int], state: Any, partition: Partition, kind: object, takers: int
    ) -> None:
        """Add a new state, and restore what was loaded for it.

        Args:
            takers: see :meth:`_takers`
        """
        self.states[key], self.partitions[key], self.kinds[key] = state, partition, kind
        self._give(key, takers)

    def _give(self, key: tuple[str, int], takers: int) -> None:
        """Restore an unused state from what was loaded for it."""
        name, _ = key
        state, partition, kind = self.states[key], self.partitions[key], self.kinds[key]
        waiting = self.to_reshard.get(name)
        ranks = self._world_size if self.codecs.average else 1
        if key in self.loaded:
            _load(state, self.loaded.pop(key))
        elif isinstance(waiting, OwnState) and takers:
            waiting.move_to(state, partition, kind == OWN, kind == 1 and ranks > 1, ranks)
        elif waiting and takers:
            waiting.shard_to(state, partition, ranks / takers)
        elif waiting:
            waiting.copy_step_to(state)
        self._steps[key] = state.step

    def _make(self, kind: object, count: int) -> Compressor | DeviceState:
        if self.device is not None:
            return DeviceState(self.codecs, kind, count, self.device)
        compressor = self.codecs.make(kind)
        compressor._size = count  # the engine encodes without Compressor.encode
        return compressor

    def load(
        self, states: Mapping[tuple[str, int], TaskState], to_reshard: dict[str, GlobalState]
    ) -> None:
        """Set the states of tasks, including those of tasks that have no state yet.

        Existing states without a saved one become zero.

        Args:
            to_reshard: states that the saved job had loaded for resharding and not used
        """
        states = dict(states)
        self.to_reshard = {**to_reshard, **carry_over.taken_out(states)}
        for key, state in self.states.items():
            if key in states:
                _load(state, states[key])
            else:
                _clear(state)
                waiting = self.to_reshard.get(key[0])
                if waiting and not waiting.states:
                    waiting.copy_step_to(state)
            self._steps[key] = state.step
        self.loaded = {key: state for key, state in states.items() if key not in self.states}

    def reshard(
        self,
        states: dict[str, GlobalState],
        tasks: Mapping[str, tuple[Graph, Sequence[Task]]] | None = None,
    ) -> None:
        """Adopt the states of another job. Each task gets its part when it is set up.

        Args:
            tasks: graphs of gradients that are set up, and this rank's tasks of them, by name

        Raises:
            ValueError: after the first step, when tasks have residuals of this job
        """
        tasks = tasks or {}
        for key, state in self.states.items():
            known = key[0] in tasks or isinstance(state, Factors)
            if state.step != self._steps[key] or not known:
                raise ValueError("the state of another job must be loaded before the first step")
        self.loaded, self.to_reshard = {}, states
        for key, state in self.states.items():
            (name, index), takers = key, self._world_size
            _clear(state)
            if not isinstance(state, Factors):
                graph, mine = tasks[name]
                takers = self._takers(name, graph, index, mine[index])
            self._give(key, takers)
        self.finish_reshard({name for name, _ in self.states}.union(tasks))

    def begin_transaction(self) -> None:
        """Start a transaction of all later changes. It ends the previous one."""
        self.transaction = next(transactions)

    def roll_back(self) -> None:
        """Restore all states in host memory, bit for bit, from before the transaction, and end it.

        States that were created in the transaction stay, but without its changes.
        """
        for state in self.states.values():
            state.roll_back(self.transaction)
        self.transaction = 0

    def commit(self) -> None:
        """End the transaction: what other ranks have received stays sent."""
        for state in self.states.values():
            if isinstance(state, Factors):
                state.commit(self.transaction)
        self.transaction = 0

    def finish_reshard(self, names: Iterable[str]) -> None:
        """Drop states for resharding of these gradients, whose tasks all ranks have set up."""
        for name in names:
            self.to_reshard.pop(name, None)

    def warn_unused(self, names: Iterable[str]) -> None:
        """Log which of these uncompressed gradients have a loaded residual."""
        loaded = {name for (name, _), task in self.loaded.items() if task.states}
        loaded.update(name for name, waiting in self.to_reshard.items() if waiting.states)
        unused = sorted(loaded.intersection(names) - self._warned)
        self._warned.update(unused)
        if unused:
            _log.warning(
                "the residual of %s waits in the state, unused: by this plan or min_size it goes "
                "uncompressed",
                unused,
            )


def _load(state: Compressor | DeviceState | Factors, saved: TaskState) -> None:
    kept = {"step": saved.fields["step"], "stream": saved.fields["stream"], "states": saved.states}
    state.load_state_dict({**state.state_dict(), **kept})


def _clear(state: Compressor | DeviceState | Factors) -> None:
    """Reset a state to the one before its first encode."""
    found = state.state_dict()
    # Factors without an initial Q get a new one.
    zeros = {name: np.zeros_like(v) for name, v in found["states"].items() if name != START}
    state.load_state_dict({**found, "step": 0, "states": zeros})
