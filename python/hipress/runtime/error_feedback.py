"""Error feedback: the codec of each encode task of one rank, and the residual that it keeps.

A task encodes the gradient g plus the residual r. What the codec does not send becomes the next
residual::

    step k     g + r(k) ── encode ──► payload (sent);   r(k+1) = g + r(k) - decoded payload

**A step that fails.** If step k fails on some rank, its payloads may have reached other ranks or
not. A transaction decides::

    no rank has the result     roll back: r(k) is restored bit for bit, and step k is repeated
    a rank has the result      commit: r(k+1) stays, because the result contains the payload

**Another number of ranks, topology or codec, without communication** (:class:`OwnState`). When
ranks fail or new ones join, each remaining rank continues in a new job with its own residuals. A
residual of a rank counts like a part of its next gradient::

    4 ranks                       3 ranks
    rank 0: r0 ─────────────────► rank 0: r0
    rank 1: r1, fails             r1 is discarded
    rank 2: r2 ─────────────────► rank 1: r2
    rank 3: r3 ─────────────────► rank 2: r3        a new rank begins with zeros

    residual of a gradient, or of a partial sum         unchanged: both are in units of a gradient
    residual of a mean, on the rank that encoded it     times the new number of ranks, so that the
                                                        mean over them contains it once

**The states of all ranks, for another number of ranks** (:class:`GlobalState`). For means, N ranks
save their residuals, and M ranks load them. T of the new tasks encode the same part of the
gradient, and share the residual equally::

    r(0) ... r(N-1) ──► R = (r(0) + ... + r(N-1)) / N ──► each of the T tasks gets R * M / T

The mean of the new results over M ranks then contains T * (R * M / T) / M = R once.

All states are float32 NumPy arrays in host memory, for every front end. A front end whose states
are elsewhere provides objects with the methods of a :class:`hipress.compression.Compressor`.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hipress.compression.compressor import Compressor
from hipress.topology import graph as casync
from hipress.topology.graph import Graph, Partition, Task
from hipress.topology.origins import first_encoders, residual_takers

PLAIN = "plain"
"""Kind of tasks that never compress."""
OWN = "own"
"""Kind of tasks that encode one rank's own gradient."""
START = "start_q"
"""State of low rank that has no number for each element: the Q with which the next step begins."""
_MEAN = "mean"
_SAVED = {-1: ("residual", OWN), -2: (_MEAN, "1")}
"""Numbers, like those of tasks, under which an OwnState is saved, with its state and kind."""
_transactions = itertools.count(1)
"""Numbers by which steps can be rolled back. No state sees a number twice."""
_log = logging.getLogger("hipress")


class Codecs:
    """Codecs of one compression setting, by what they encode.

    The codec that the user chose encodes a worker's own gradient. A sum is encoded by that codec's
    form for sums: 2bit's threshold grows with the number of summands, and dgc's form has no
    momentum, because the gradients already include it. With ``average``, the encode whose payload
    all ranks decode encodes the mean, with the scale of a single gradient. No rank then needs a
    pass over memory to divide.
    """

    def __init__(self, type: str, params: Mapping[str, object], average: bool = True) -> None:
        self._type, self._params, self.average = type, dict(params), average
        self._own = Compressor(type, **self._params)  # checks type and parameters
        self._shared: dict[object, Compressor] = {}
        self._lock = threading.Lock()

    def kind(self, task: Task, final: bool) -> object:
        """Return the kind of an ENCODE task: PLAIN, OWN, or the number of summands in its scale.

        ``final`` says whether its payload is the result; see :func:`.origins.results`.
        """
        if task.num_summands == casync.PLAIN:
            return PLAIN
        if task.of_gradient:
            return OWN
        return 1 if final and self.average else task.num_summands

    def identity(self, kind: object) -> bool:
        """Check whether payloads of this kind are the unmodified elements."""
        return kind == PLAIN or self._type == "none"

    def make(self, kind: object) -> Compressor:
        """Make a compressor with a new residual."""
        if kind == PLAIN:
            return Compressor("none")
        if kind == OWN:
            return Compressor(self._type, **self._params)
        return self._own.for_sum_of(kind)

    def decoder(self, kind: object) -> Compressor:
        """Return a compressor for decoding only, which any number of threads may share."""
        with self._lock:
            if kind not in self._shared:
                self._shared[kind] = self.make(kind)
            return self._shared[kind]


def random_stream(name: str, index: int, rank: int) -> int:
    """Return a number that separates the random numbers of tasks with the same seed."""
    return zlib.crc32(f"{name}/{index}/{rank}".encode())


class TaskState:
    """State of one task in a checkpoint, or of one gradient."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.states: dict[str, Any] = {}

    @property
    def span(self) -> slice:
        """Elements of the whole parameter to which the state belongs."""
        return slice(self.fields["offset"], self.fields["offset"] + self.fields["count"])


class GlobalState:
    """Sum of all ranks' residuals of one gradient, and its momentum, to be resharded.

    ``states["residual"]`` is in units of the result. Other states are means over the ranks.
    """

    def __init__(self, size: int) -> None:
        self.size, self.step = size, 0
        self.states: dict[str, np.ndarray] = {}

    def add(self, name: str, span: slice, values: Any, scale: float = 1.0) -> None:
        """Add ``scale`` times one task's values for these elements of the parameter."""
        if span.stop > self.size:
            raise ValueError(
                f"the state has elements up to {span.stop} of a gradient that has {self.size} here"
            )
        if name not in self.states:
            self.states[name] = np.zeros(self.size, np.float32)
        part, values = self.states[name][span], np.asarray(values, np.float32).reshape(-1)
        if scale == 1.0:
            part += values
        else:  # rounded once
            part[:] = part + values.astype(np.float64) * np.float32(scale)

    def shard_to(self, compressor: Any, partition: Partition, scale: float) -> None:
        """Set a new compressor's states to its part of these, with the residual times ``scale``."""
        states = _zeros(compressor, partition.count)
        for name, values in self.states.items():
            if name == "residual" or name in states:
                part = values[_span(partition)]
                states[name] = part * np.float32(scale if name == "residual" else 1.0)
        _load(compressor, states=states, step=self.step)

    def save(self, name: str, put: Callable[..., None]) -> None:
        """Save this state in a checkpoint. ``put`` takes a path, fields and states."""
        states = {key: values.copy() for key, values in self.states.items()}
        put(f"total/{name}", {"step": self.step}, states)


class OwnState(GlobalState):
    """One rank's own state of a gradient, for its tasks in a job of another size.

    ``states["residual"]`` is in units of the rank's gradient, ``states["mean"]`` in units of a mean
    over ranks. Other states are in the codec's units. Parts that a task has taken are removed.
    """

    def save(self, name: str, put: Callable[..., None]) -> None:
        """Save this state like states of tasks, because it belongs to this rank."""
        for index, (field, kind) in _SAVED.items():
            states = {"residual": self.states[field]} if field in self.states else {}
            if kind == OWN:
                others = {key: v for key, v in self.states.items() if key not in (field, _MEAN)}
                states = {**states, **others}
            fields = {"offset": 0, "count": self.size, "kind": kind, "step": self.step, "stream": 0}
            put(f"state/{name}/{index}", fields, {key: v.copy() for key, v in states.items()})

    def move_to(
        self, compressor: Any, partition: Partition, own: bool, of_mean: bool, ranks: int
    ) -> None:
        """Restore a new compressor's part of these states.

        It encodes the rank's own gradient alone (``own``), a mean of so many ``ranks``
        (``of_mean``), or a sum. ``ranks`` is 1 if results are sums.
        """
        span = _span(partition)
        taken = {name: values[span].copy() for name, values in self.states.items()}
        for values in self.states.values():
            values[span] = 0
        residual, mean = taken.pop("residual", None), taken.pop(_MEAN, None)
        parts = [] if residual is None else [residual / np.float32(ranks if of_mean else 1)]
        parts += [] if mean is None else [mean * np.float32(1 if of_mean else ranks)]
        states, total = _zeros(compressor, partition.count), sum(parts)
        if parts and ("residual" in states or total.any()):
            states["residual"] = total
        states.update({name: taken[name] for name in taken if own and name in states})
        _load(compressor, states=states, step=self.step)


class OwnStates:
    """Sum of one rank's states by gradient, as OwnStates.

    Args:
        sizes: elements of the gradients; other gradients are ignored
        means: whether results are means over several ranks
    """

    def __init__(self, sizes: Mapping[str, int], means: bool) -> None:
        self._sizes, self._means = sizes, means
        self.found: dict[str, OwnState] = {}

    def add(
        self,
        name: str,
        kind: str,
        span: slice,
        step: int,
        states: Mapping[str, Any],
        vectors: bool = True,
    ) -> None:
        """Add a task's state. With ``vectors``, states other than residuals are also added."""
        if name not in self._sizes:
            return
        state = self._state_of(name, step)
        for field, values in states.items():
            if field == "residual":
                state.add(_MEAN if self._means and kind == "1" else field, span, values)
            elif field != START and kind == OWN and vectors:
                state.add(field, span, values)

    def add_own(self, name: str, waiting: OwnState) -> None:
        """Add state from an earlier change of ranks that no task has taken yet."""
        state = self._state_of(name, waiting.step)
        for field, values in waiting.states.items():
            state.add(field, slice(0, waiting.size), values)

    def add_share(
        self, name: str, step: int, states: Mapping[str, Any], peers: int, vectors: bool = True
    ) -> None:
        """Add this rank's share of state that ``peers`` ranks have in common and no task took."""
        if name not in self._sizes:
            return
        state = self._state_of(name, step)
        for field, values in states.items():
            span = slice(0, len(values))
            if field == "residual":
                state.add(_MEAN, span, values, 1 / peers)
            elif vectors:
                state.add(field, span, values)

    def _state_of(self, name: str, step: int) -> OwnState:
        state = self.found.setdefault(name, OwnState(self._sizes[name]))
        state.step = max(state.step, step)
        return state


class ErrorFeedback:
    """State of every encode task of one rank, by gradient name and task.

    States stay when DDP moves gradients to other buckets, because they are independent of buckets.

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
        self.make_state: Callable[[object, int], Any] | None = None
        """Function that returns the state of a task, by kind and elements, instead of a Compressor.
        """
        self.states: dict[tuple[str, int], Any] = {}
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.kinds: dict[tuple[str, int], object] = {}
        self._of_gradients: set[tuple[str, int]] = set()
        """Keys of states that :meth:`state_of_gradient` made."""
        self._steps: dict[tuple[str, int], int] = {}
        """Steps of states when they were created or loaded."""
        self.loaded: dict[tuple[str, int], TaskState] = {}
        """States that were loaded for tasks that have no state yet."""
        self.to_reshard: dict[str, GlobalState] = {}
        """States that were loaded for gradients that have not been compressed yet."""
        self.transaction = 0
        """Number with which changes of steps can be rolled back, or 0 if they cannot."""
        self._warned: set[str] = set()
        self._first_encoders: tuple[Sequence[Task], dict[int, int]] = (), {}
        """Tasks of the graph that was set up last, and their first encoders."""

    def state_of(self, name: str, graph: Graph, index: int, task: Task, kind: object) -> Any:
        """Return the state of this rank's task ``index`` in a gradient's graph, or create it."""
        key = (name, index)
        if key not in self.states:
            partition = graph.partitions[task.partition]
            offset = partition.offset + self._shard_offsets.get(name, 0)
            partition = replace(partition, offset=offset)
            if self.make_state is None:
                state = self.codecs.make(kind)
                state._size = partition.count  # the engine encodes without Compressor.encode
            else:
                state = self.make_state(kind, partition.count)
            state.stream = random_stream(name, index, self._rank)
            self._add(key, state, partition, kind, self._takers(name, graph, index, task))
        return self.states[key]

    def _takers(self, name: str, graph: Graph, index: int, task: Task) -> int:
        """Return the number of tasks of all ranks that take parts of a gradient's loaded state.

        It counts tasks of the same partition, and is 0 if this task takes none. An OwnState is this
        rank's: the first task that encodes the rank's own gradient, alone or in a sum, takes it.
        """
        waiting = self.to_reshard.get(name)
        if waiting is None:
            return 0
        if isinstance(waiting, OwnState):
            mine, first = self._first_encoders
            if index >= len(mine) or mine[index] is not task:
                mine = next(
                    tasks
                    for tasks in graph.tasks.values()
                    if index < len(tasks) and tasks[index] is task
                )
                first = first_encoders(mine)
                self._first_encoders = mine, first
            return int(first.get(task.partition) == index)
        tasks = residual_takers(graph, task.partition)
        return len(tasks) if any(each is task for each in tasks) else 0

    def state_of_gradient(self, name: str, count: int, make: Callable[[], Any]) -> Any:
        """Return the state of a whole gradient of ``count`` elements, or make it."""
        key = (name, 0)
        if key not in self.states:
            self._of_gradients.add(key)
            self._add(key, make(), Partition(0, count), OWN, self._world_size)
        return self.states[key]

    def _add(
        self, key: tuple[str, int], state: Any, partition: Partition, kind: object, takers: int
    ) -> None:
        """Add a new state, and restore what was loaded for it; see :meth:`_takers`."""
        self.states[key], self.partitions[key], self.kinds[key] = state, partition, kind
        self._give(key, takers)

    def _give(self, key: tuple[str, int], takers: int) -> None:
        """Restore an unused state from what was loaded for it."""
        state, partition, kind = self.states[key], self.partitions[key], self.kinds[key]
        waiting = self.to_reshard.get(key[0])
        ranks = self._world_size if self.codecs.average else 1
        if key in self.loaded:
            _restore(state, self.loaded.pop(key))
        elif isinstance(waiting, OwnState) and takers:
            waiting.move_to(state, partition, kind == OWN, kind == 1 and ranks > 1, ranks)
        elif waiting and takers:
            waiting.shard_to(state, partition, ranks / takers)
        elif waiting:
            _load(state, step=waiting.step)
        self._steps[key] = state.step

    def load(
        self, states: Mapping[tuple[str, int], TaskState], to_reshard: dict[str, GlobalState]
    ) -> None:
        """Set the states of tasks, including those of tasks that have no state yet.

        Existing states without a saved one become zero. ``to_reshard`` are states that the saved
        job had loaded for resharding and not used.
        """
        states = dict(states)
        self.to_reshard = {**to_reshard, **_own_states_in(states)}
        for key, state in self.states.items():
            if key in states:
                _restore(state, states[key])
            else:
                _clear(state)
                waiting = self.to_reshard.get(key[0])
                if waiting and not waiting.states:
                    _load(state, step=waiting.step)
            self._steps[key] = state.step
        self.loaded = {key: state for key, state in states.items() if key not in self.states}

    def reshard(
        self,
        states: Mapping[str, GlobalState],
        tasks: Mapping[str, tuple[Graph, Sequence[Task]]] | None = None,
    ) -> None:
        """Adopt the states of another job. Each task gets its part when it is set up.

        ``tasks`` are the graphs of gradients that are set up, and this rank's tasks of them, by
        name. After the first step, when tasks have residuals of this job, ValueError is raised.
        """
        tasks = tasks or {}
        for key, state in self.states.items():
            known = key[0] in tasks or key in self._of_gradients
            if state.step != self._steps[key] or not known:
                raise ValueError("the state of another job must be loaded before the first step")
        self.loaded, self.to_reshard = {}, dict(states)
        for key, state in self.states.items():
            (name, index), takers = key, self._world_size
            _clear(state)
            if key not in self._of_gradients:
                graph, mine = tasks[name]
                takers = self._takers(name, graph, index, mine[index])
            self._give(key, takers)
        self.finish_reshard({name for name, _ in self.states}.union(tasks))

    def finish_reshard(self, names: Iterable[str]) -> None:
        """Drop states for resharding of these gradients, whose tasks all ranks have set up."""
        for name in names:
            self.to_reshard.pop(name, None)

    def carry_over(self, sizes: Mapping[str, int]) -> dict[str, OwnState]:
        """Return this rank's own states by gradient, for :meth:`reshard` in another job.

        That job has the same parameters on other ranks. There is no communication. Residuals are
        kept bit for bit where a task encodes this rank's own gradient. A step is the highest one of
        a gradient's tasks. The Q of low rank, which must be equal on all ranks, starts again.
        Call this when the last step has ended or was rolled back.

        Args:
            sizes: elements of the gradients
        """
        own = OwnStates(sizes, self.codecs.average and self._world_size > 1)
        for key, compressor in self.states.items():
            state, span = compressor.state_dict(), _span(self.partitions[key])
            own.add(key[0], str(self.kinds[key]), span, state["step"], state["states"])
        for (name, _), saved in self.loaded.items():
            own.add(name, saved.fields["kind"], saved.span, saved.fields["step"], saved.states)
        set_up = {name for name, _ in self.states}
        for name, waiting in self.to_reshard.items():
            if isinstance(waiting, OwnState):
                own.add_own(name, waiting)
            elif name not in set_up:
                own.add_share(name, waiting.step, waiting.states, self._world_size)
        return own.found

    def norm(self) -> float:
        """Return the 2-norm of this rank's residuals, including those that no task uses yet."""
        states_of = [state.state_dict()["states"] for state in self.states.values()]
        states_of += [state.states for state in self.to_reshard.values()]
        return math.sqrt(
            sum(
                float(np.square(np.asarray(states[name], np.float64)).sum())
                for states in states_of
                for name in ("residual", _MEAN)
                if name in states
            )
        )

    def begin_transaction(self) -> None:
        """Start a transaction of all later changes. It ends the previous one."""
        self.transaction = next(_transactions)

    def roll_back(self) -> None:
        """Restore all states in host memory, bit for bit, from before the transaction, and end it.

        States that were created in the transaction stay, but without its changes.
        """
        for state in self.states.values():
            state.roll_back(self.transaction)
        self.transaction = 0

    def commit(self) -> None:
        """End the transaction: what other ranks have received stays sent."""
        for key in self._of_gradients:
            self.states[key].commit(self.transaction)
        self.transaction = 0

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


def _own_states_in(tasks: dict[tuple[str, int], TaskState]) -> dict[str, OwnState]:
    """Return the OwnStates that were saved among a checkpoint's tasks, and remove them there."""
    own_states: dict[str, OwnState] = {}
    for name, index in [key for key in tasks if key[1] in _SAVED]:
        task, (field, _) = tasks.pop((name, index)), _SAVED[index]
        state = own_states.setdefault(name, OwnState(task.fields["count"]))
        state.step = task.fields["step"]
        for key, values in task.states.items():
            state.add(field if key == "residual" else key, task.span, values)
    return own_states


def _span(partition: Partition) -> slice:
    return slice(partition.offset, partition.offset + partition.count)


def _zeros(state: Any, count: int) -> dict[str, np.ndarray]:
    return {name: np.zeros(count, np.float32) for name in state.state_names}


def _load(state: Any, **fields: Any) -> None:
    """Change some fields of a state, such as its step, so that a warm-up continues."""
    state.load_state_dict({**state.state_dict(), **fields})


def _restore(state: Any, saved: TaskState) -> None:
    fields = saved.fields
    _load(state, step=fields["step"], stream=fields["stream"], states=saved.states)


def _clear(state: Any) -> None:
    """Reset a state to the one before its first encode."""
    # Low rank without an initial Q gets a new one.
    states = state.state_dict()["states"]
    zeros = {name: np.zeros_like(v) for name, v in states.items() if name != START}
    _load(state, step=0, states=zeros)
