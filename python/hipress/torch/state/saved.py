"""Reader of what :mod:`hipress.torch.state.checkpoint` has saved, by rank and task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch
import torch.distributed as dist

from hipress.runtime.error_feedback import (
    ErrorFeedback,
    GlobalState,
    OwnState,
    OwnStates,
    TaskState,
)
from hipress.torch.settings import Settings
from hipress.torch.state.momentum import SharedMomentum

VERSION = 4
SLOTS = 256
"""Ranks for which every checkpoint has a key, so that any job can load all of them."""
_KEY = re.compile(r"rank(\d+)")


def slots_of(rank: int, world_size: int) -> list[int]:
    """Return the saved ranks whose keys a rank saves, and loads through PyTorch.

    Every one of the first :data:`SLOTS` ranks belongs to one rank of a job. Its own rank is the
    first.
    """
    return [rank, *range(rank + world_size, SLOTS, world_size)]


def pack(rank: int, world_size: int, part: Mapping[str, Any]) -> dict[str, tuple]:
    """Return a rank's state under its key, and empty states for ranks that do not exist.

    torch.distributed.checkpoint neither looks into tuples nor needs to know their size. So it saves
    and loads a rank's state as one value.
    """
    others = dict.fromkeys((f"rank{r}" for r in slots_of(rank, world_size)[1:]), ())
    return {f"rank{rank}": (dict(part),), **others}


def unpack(state: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Return the states of :func:`pack` by rank. States of ranks that do not exist are empty.

    Raises:
        ValueError: If a key or its value is something else.
    """
    parts: dict[int, Mapping[str, Any]] = {}
    for key, value in state.items():
        match = _KEY.fullmatch(key)
        if not match or not isinstance(value, (tuple, list)) or len(value) > 1:
            raise ValueError(
                f"{key!r} is no key of a compression's state of version {VERSION}: they are "
                '"rank0", "rank1" and so on, each with a tuple'
            )
        parts[int(match[1])] = value[0] if value else {}
    if not parts:
        raise ValueError("the state of the compression is empty: it has no rank")
    return parts


class Stateful(Protocol):
    """Compression whose state is saved and loaded."""

    settings: Settings
    rank: int
    world_size: int
    step: int
    topology: str
    layout: int
    average: bool
    sizes: Mapping[str, int]
    orders: Mapping[str, str]
    engine: Any
    group: dist.ProcessGroup | None
    error_feedback: ErrorFeedback
    shared: SharedMomentum | None

    def state_dict(self) -> dict[str, Any]:
        """Return this rank's state."""

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Load a state."""

    def before_load(self, world_size: int, type: str) -> None:
        """Prepare for the state of a job of so many ranks, whose compression had this type."""

    def reshard(self, states: dict[str, GlobalState]) -> None:
        """Adopt the states of another job, before the first step."""

    def after_load(self) -> None:
        """Handle the end of loading a state."""


class RankState:
    """State of one rank in a checkpoint."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.tasks: dict[tuple[str, int], TaskState] = {}
        self.to_reshard: dict[str, TaskState] = {}
        self.shared: dict[str, TaskState] = {}
        self.dropped: set[str] = set()
        """Gradients of whose state the elements are in another order than in this job."""

    @property
    def is_empty(self) -> bool:
        """Whether there are only counts of steps: no residual, no momentum."""
        entries = [*self.tasks.values(), *self.to_reshard.values(), *self.shared.values()]
        return not any(entry.states for entry in entries)

    def names(self) -> set[str]:
        """Return the names of gradients that have a state."""
        return {name for name, _ in self.tasks} | set(self.to_reshard) | self.dropped

    def drop_reordered(self, of: Stateful) -> None:
        """Drop the states whose elements are in another order than those of ``of``."""
        theirs = self.fields.get("orders", {})

        def is_dropped(name: str) -> bool:
            return name in of.sizes and theirs.get(name, "") != of.orders.get(name, "")

        self.dropped = set(filter(is_dropped, self.names() | set(self.shared)))
        for entries in (self.to_reshard, self.shared):
            for name in self.dropped & entries.keys():
                del entries[name]
        for key in [key for key in self.tasks if key[0] in self.dropped]:
            del self.tasks[key]


class Saved:
    """States of several ranks, of which one at a time is in memory if they are in a file.

    Args:
        of: Compression that is loaded.
        ranks: Ranks that are there.
        read: Function that returns a rank's state.
    """

    def __init__(
        self, of: Stateful, ranks: Iterable[int], read: Callable[[int], Mapping[str, Any]]
    ) -> None:
        self.ranks, self.read, self._of = sorted(ranks), read, of
        self._last: tuple[int, RankState] | None = None

    def rank(self, rank: int) -> RankState:
        """Return a rank's state, without gradients whose elements are in another order.

        Raises:
            ValueError: If it is of another version of HiPress.
        """
        if self._last is None or self._last[0] != rank:
            self._last = None  # frees the last one first
            part = self.read(rank)
            if part.get("version") != VERSION:
                raise ValueError(
                    f"rank {rank}'s state is of version {part.get('version')}; this HiPress reads "
                    f"version {VERSION}"
                )
            self._last = rank, _parse(part)
            self._last[1].drop_reordered(self._of)
        return self._last[1]


def _parse(part: Mapping[str, Any]) -> RankState:
    """Return the state of the rank that has these keys."""
    rank = RankState()
    for key, value in part.items():
        section, _, path = key.partition("/")
        if not path:
            rank.fields[key] = value
            continue
        path, _, field = path.rpartition("/")
        state_of, path = path.endswith("/states"), path.removesuffix("/states")
        if section == "total":
            entry = rank.to_reshard.setdefault(path, TaskState())
        elif section == "shared":
            entry = rank.shared.setdefault(path, TaskState())
        else:
            name, _, index = path.rpartition("/")
            entry = rank.tasks.setdefault((name, int(index)), TaskState())
        if state_of and isinstance(value, torch.Tensor):
            value = value.cpu()
        (entry.states if state_of else entry.fields)[field] = value
    return rank


def carry_over_saved(of: Stateful, mine: RankState) -> dict[str, OwnState]:
    """Return this rank's own states in a checkpoint, by gradient.

    The new job ``of`` has as many ranks, but another topology, plan or type. Of another type only
    the residuals are used. See :meth:`hipress.runtime.error_feedback.ErrorFeedback.carry_over`.

    Raises:
        ValueError: if the state has more elements of a gradient than there are
    """
    peers, vectors = mine.fields["peers"], mine.fields["type"] == of.settings.type
    own = OwnStates(of.sizes, of.average and peers > 1)
    for (name, _), task in mine.tasks.items():
        kind, step = task.fields["kind"], task.fields["step"]
        own.add(name, kind, task.span, step, task.states, vectors)
    for name, total in mine.to_reshard.items():
        own.add_share(name, total.fields["step"], total.states, peers, vectors)
    return own.found
