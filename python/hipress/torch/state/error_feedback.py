"""Error feedback: the codec of every task that encodes, and the residual that it keeps."""

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
    """The state of one task on a GPU, with the state_dict() of a Compressor.

    :param codecs, kind: of its codec
    :param count: elements that it encodes
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
        """The residual that a codec without one has taken over of another codec's, until it is
        encoded."""
        self._device = device

    def state_dict(self) -> dict[str, Any]:
        """The state in host memory; waits for the device."""
        states = {name: values.cpu().numpy() for name, values in self.states.items()}
        if self.carried is not None and bool(self.carried.any()):
            states["residual"] = self.carried.cpu().numpy()
        about = {"type": self.codec.type, "config": self.codec.config}
        return {**about, "step": self.step, "stream": self.stream, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Loads what :meth:`state_dict` of this class or of a Compressor has returned.

        :raises ValueError: if it is not such a state
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
    """The state of every task of one rank that encodes, by gradient name and task.

    States stay when DDP puts gradients into other buckets, because they know nothing of buckets.
    Those of gradients that are encoded on a GPU are :class:`DeviceState`, once ``device`` is set.

    :param world_size: ranks that synchronise these gradients together
    :param shard_offsets: of gradients that are a part of a parameter's, its first element by name
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
        """The steps of states when they were made, or loaded."""
        self.loaded: dict[tuple[str, int], TaskState] = {}
        """States that were loaded for tasks which have none yet."""
        self.to_reshard: dict[str, GlobalState] = {}
        """States that were loaded for gradients which are yet to be compressed."""
        self.transaction = 0
        """The number by which what steps change can be put back; 0: it cannot."""
        self._warned: set[str] = set()

    def state_of(
        self, name: str, graph: Graph, index: int, task: Task, kind: object
    ) -> Compressor | DeviceState:
        """The state of task ``index`` of this rank in ``name``'s graph, made when it is new."""
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
        """How many tasks of all ranks take parts of what was loaded for a gradient's partition, if
        this one does, else 0; of an OwnState 1, for it is this rank's."""
        waiting = self.to_reshard.get(name)
        if isinstance(waiting, OwnState):
            return int(waiting.carries(graph, index, task))
        tasks = residual_takers(graph, task.partition) if waiting else []
        return len(tasks) if any(each is task for each in tasks) else 0

    def factors(self, name: str, shape: Sequence[int], rank: int) -> Factors:
        """The state of a whole gradient that goes by factors of this rank."""
        key = (name, 0)
        if key not in self.states:
            made = Factors(shape, rank)
            self._add(key, made, Partition(0, made.rows * made.cols), OWN, self._world_size)
        return self.states[key]

    def _add(
        self, key: tuple[str, int], state: Any, partition: Partition, kind: object, takers: int
    ) -> None:
        """Adds a new state, and gives it what was loaded for it.

        :param takers: see :meth:`_takers`
        """
        self.states[key], self.partitions[key], self.kinds[key] = state, partition, kind
        self._give(key, takers)

    def _give(self, key: tuple[str, int], takers: int) -> None:
        """Gives a state that is as it was made what was loaded for it."""
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
        """Sets the states of tasks, also of those that have none yet. Tasks that have one, of which
        there is none here, are as if they had encoded nothing.

        :param to_reshard: what was to be resharded in the saved job, and had not been
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
        """Takes the states of another job, of which each task gets its part when it is set up.

        :param tasks: of gradients that are set up: their graphs, and this rank's tasks of them
        :raises ValueError: after the first step, when tasks have residuals of their own
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
        """Makes what steps change from now on part of a transaction, which ends the one before."""
        self.transaction = next(transactions)

    def roll_back(self) -> None:
        """Puts all states in host memory back, bit for bit, to what they were before the
        transaction, and ends it. States that were made in it stay, as they were made."""
        for state in self.states.values():
            state.roll_back(self.transaction)
        self.transaction = 0

    def commit(self) -> None:
        """Ends the transaction: what other ranks, which have completed it, have got stays sent."""
        for state in self.states.values():
            if isinstance(state, Factors):
                state.commit(self.transaction)
        self.transaction = 0

    def finish_reshard(self, names: Iterable[str]) -> None:
        """Forgets what was resharded to these gradients, whose tasks all ranks have set up."""
        for name in names:
            self.to_reshard.pop(name, None)

    def warn_unused(self, names: Iterable[str]) -> None:
        """Logs which of these gradients, that are not compressed, a residual was loaded for."""
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
    """Makes a state what it is before it has encoded anything."""
    found = state.state_dict()
    # Factors without a Q to begin with have a new one.
    zeros = {name: np.zeros_like(v) for name, v in found["states"].items() if name != START}
    state.load_state_dict({**found, "step": 0, "states": zeros})
