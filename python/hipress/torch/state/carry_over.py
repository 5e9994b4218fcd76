"""Move of one rank's state to other ranks or another topology, without communication.

When ranks fail or new ones join, the remaining ranks continue in a new job with their own
residuals. No rank can request the state of a failed rank, and none waits for the states of all
ranks, as in resharding. The same applies to a job that starts again with another topology, plan or
codec. A residual of a rank counts like a part of its next gradient::

    4 ranks                       3 ranks
    rank 0: r0 ─────────────────► rank 0: r0
    rank 1: r1, fails             r1 is discarded
    rank 2: r2 ─────────────────► rank 1: r2
    rank 3: r3 ─────────────────► rank 2: r3        a new rank begins with zeros

    residual of a gradient, or of a partial sum         unchanged: both are in units of a gradient
    residual of a mean, on the rank that encoded it     times the new number of ranks, so that the
                                                        mean over them contains it once
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from hipress.runtime.encodes import OWN
from hipress.topology.graph import Graph, Partition, Task
from hipress.topology.origins import first_encoders
from hipress.torch.dtypes import floats
from hipress.torch.low_rank import START
from hipress.torch.state.global_state import GlobalState
from hipress.torch.state.saved import RankState, Stateful, TaskState

_MEAN = "mean"
_SAVED = {-1: ("residual", OWN), -2: (_MEAN, "1")}
"""Numbers, like those of tasks, under which an OwnState is saved, with its state and kind."""


class OwnState(GlobalState):
    """One rank's own state of a gradient, for its tasks in a job of another size.

    ``states["residual"]`` is in units of the rank's gradient, ``states["mean"]`` in units of a mean
    over ranks. Other states are in the codec's units. Parts that a task has taken are removed.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._tasks: list[Task] = []
        self._first: dict[int, int] = {}

    def carries(self, graph: Graph, index: int, task: Task) -> bool:
        """Return whether ``task`` takes this rank's state of its partition.

        It does if it is the first to encode the rank's own gradient, alone or in a sum.
        """
        if index >= len(self._tasks) or self._tasks[index] is not task:
            self._tasks = next(
                each for each in graph.tasks.values() if index < len(each) and each[index] is task
            )
            self._first = first_encoders(self._tasks)
        return self._first.get(task.partition) == index

    def save(self, name: str, put: Callable[..., None]) -> None:
        """Save this state like states of tasks, because it belongs to this rank."""
        for index, (field, kind) in _SAVED.items():
            states = {"residual": self.states[field]} if field in self.states else {}
            if kind == OWN:
                others = {key: v for key, v in self.states.items() if key not in (field, _MEAN)}
                states = {**states, **others}
            fields = {"offset": 0, "count": self.size, "kind": kind, "step": self.step, "stream": 0}
            put(f"state/{name}/{index}", fields, {key: v.clone() for key, v in states.items()})

    def move_to(
        self, compressor: Any, partition: Partition, own: bool, of_mean: bool, ranks: int
    ) -> None:
        """Restore a new compressor's part of these states.

        Args:
            own: whether it encodes the rank's own gradient alone
            of_mean: whether it encodes a mean
            ranks: number of gradients in a mean; 1 if results are sums
        """
        span = slice(partition.offset, partition.offset + partition.count)
        taken = {name: whole[span].clone() for name, whole in self.states.items()}
        for whole in self.states.values():
            whole[span] = 0
        residual, mean = taken.pop("residual", None), taken.pop(_MEAN, None)
        parts = [] if residual is None else [residual / ranks if of_mean else residual]
        parts += [] if mean is None else [mean if of_mean else mean * ranks]
        state = compressor.state_dict()
        states = {name: floats(partition.count) for name in compressor.state_names}
        total = sum(parts)
        if parts and ("residual" in states or bool(total.any())):
            states["residual"] = total
        states.update({name: taken[name] for name in taken if own and name in states})
        compressor.load_state_dict({**state, "states": states, "step": self.step})


def taken_out(tasks: dict[tuple[str, int], TaskState]) -> dict[str, OwnState]:
    """Return the OwnStates that were saved among a checkpoint's tasks, and remove them there."""
    found: dict[str, OwnState] = {}
    for name, index in [key for key in tasks if key[1] in _SAVED]:
        task, (field, _) = tasks.pop((name, index)), _SAVED[index]
        state = found.setdefault(name, OwnState(task.fields["count"]))
        state.step = task.fields["step"]
        for key, values in task.states.items():
            state.add(field if key == "residual" else key, task.span, values, 1.0)
    return found


class _Own:
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
        """Add a task's state.

        Args:
            kind: kind of the task, see :mod:`hipress.runtime.encodes`
            vectors: whether to add states other than residuals
        """
        if name not in self._sizes:
            return
        state = self._state_of(name, step)
        for field, values in states.items():
            values = torch.as_tensor(values, device="cpu")
            if field == "residual":
                state.add(_MEAN if self._means and kind == "1" else field, span, values, 1.0)
            elif field != START and kind == OWN and vectors:
                state.add(field, span, values, 1.0)

    def add_own(self, name: str, waiting: OwnState) -> None:
        """Add state from an earlier change of ranks that no task has taken yet."""
        state = self._state_of(name, waiting.step)
        for field, values in waiting.states.items():
            state.add(field, slice(0, waiting.size), values, 1.0)

    def add_share(
        self, name: str, step: int, states: Mapping[str, Any], peers: int, vectors: bool = True
    ) -> None:
        """Add this rank's share of state that ``peers`` ranks have in common and no task took."""
        if name not in self._sizes:
            return
        state = self._state_of(name, step)
        for field, values in states.items():
            span = slice(0, values.numel())
            if field == "residual":
                state.add(_MEAN, span, values, 1 / peers)
            elif vectors:
                state.add(field, span, values, 1.0)

    def _state_of(self, name: str, step: int) -> OwnState:
        state = self.found.setdefault(name, OwnState(self._sizes[name]))
        state.step = max(state.step, step)
        return state


def carry_over(old: Stateful) -> dict[str, OwnState]:
    """Return this rank's own states by gradient, for ``Synchronizer.reshard()`` of another job.

    That job has the same parameters and settings on other ranks. There is no communication.
    Residuals are kept bit for bit where a task encodes this rank's own gradient. A step is the
    highest one of a gradient's tasks. The Q of low rank, which must be equal on all ranks, starts
    again.

    Args:
        old: compression whose last step has ended or was rolled back
    """
    feedback, peers = old.error_feedback, old.engine.world_size
    own = _Own(old.sizes, old.average and peers > 1)
    for (name, index), compressor in feedback.states.items():
        state, partition = compressor.state_dict(), feedback.partitions[name, index]
        span = slice(partition.offset, partition.offset + partition.count)
        own.add(name, str(feedback.kinds[name, index]), span, state["step"], state["states"])
    for (name, _), saved in feedback.loaded.items():
        own.add(name, saved.fields["kind"], saved.span, saved.fields["step"], saved.states)
    set_up = {name for name, _ in feedback.states}
    for name, waiting in feedback.to_reshard.items():
        if isinstance(waiting, OwnState):
            own.add_own(name, waiting)
        elif name not in set_up:
            own.add_share(name, waiting.step, waiting.states, peers)
    return own.found


def carry_over_saved(of: Stateful, mine: RankState) -> dict[str, OwnState]:
    """Return the same of this rank's state in a checkpoint.

    The new job ``of`` has as many ranks, but another topology, plan or type. Of another type only
    the residuals are used.

    Raises:
        ValueError: if the state has more elements of a gradient than there are
    """
    peers, vectors = mine.fields["peers"], mine.fields["type"] == of.settings.type
    own = _Own(of.sizes, of.average and peers > 1)
    for (name, _), task in mine.tasks.items():
        kind, step = task.fields["kind"], task.fields["step"]
        own.add(name, kind, task.span, step, task.states, vectors)
    for name, total in mine.to_reshard.items():
        own.add_share(name, total.fields["step"], total.states, peers, vectors)
    return own.found
