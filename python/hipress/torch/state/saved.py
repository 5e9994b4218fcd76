"""Reader of what :mod:`hipress.torch.state.checkpoint` has saved, by rank and task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch

from hipress.runtime.error_feedback import (
    ErrorFeedback,
    GlobalState,
    OwnState,
    OwnStates,
    TaskState,
)
from hipress.torch.settings import Settings
from hipress.torch.state.momentum import SharedMomentum

VERSION = 3
_KEY = re.compile(r"rank(\d+)/(.+)")


def is_tensor(key: str) -> bool:
    """Return whether a key of a state belongs to a tensor."""
    return "/states/" in key


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
    engine: Any
    error_feedback: ErrorFeedback
    shared: SharedMomentum | None

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


class Saved:
    """State of several ranks that reads only what is needed at a time.

    Args:
        keys: all keys of the state
        read: function that returns the values of some keys
    """

    def __init__(self, keys: Iterable[str], read: Callable[[list[str]], Mapping[str, Any]]) -> None:
        self._read = read
        self._keys: dict[int, list[str]] = {}
        for key in keys:
            match = _KEY.fullmatch(key)
            if not match:
                raise ValueError(
                    f"{key!r} is no key of a compression's state: they begin with a rank"
                )
            self._keys.setdefault(int(match[1]), []).append(key)
        if not self._keys:
            raise ValueError(
                "the state is empty; a torch.distributed.checkpoint is loaded with "
                "hipress.torch.load_checkpoint(compression, path)"
            )
        self.ranks = sorted(self._keys)

    def fields(self, rank: int) -> dict[str, Any]:
        """Read a rank's own fields, without its tasks."""
        return self._parsed(rank, [key for key in self._keys[rank] if key.count("/") == 1]).fields

    def rank(self, rank: int) -> RankState:
        """Return a rank's state without its shared momentum."""
        shared = self._shared(rank)
        return self._parsed(rank, [key for key in self._keys[rank] if key not in shared])

    def shared(self, rank: int) -> dict[str, TaskState]:
        """Return a rank's shared momentum."""
        shared = self._shared(rank)
        keys = [key for key in self._keys[rank] if key.count("/") == 1 or key in shared]
        return self._parsed(rank, keys).shared

    def _shared(self, rank: int) -> set[str]:
        prefix = f"rank{rank}/shared/"
        return {key for key in self._keys[rank] if key.startswith(prefix)}

    def _parsed(self, rank: int, keys: list[str]) -> RankState:
        parsed = _parse(self._read(keys))
        if parsed.fields.get("version") != VERSION:
            raise ValueError(
                f"rank {rank}'s state is of version {parsed.fields.get('version')}; this HiPress "
                f"reads version {VERSION}"
            )
        tensors, had = sum(map(is_tensor, self._keys[rank])), parsed.fields.get("tensors", 0)
        if tensors < had:
            raise ValueError(
                f"rank {rank}'s state lacks {had - tensors} of its {had} residuals and other "
                "tensors; a torch.distributed.checkpoint, whose load() fills what there is "
                "already, is loaded with hipress.torch.load_checkpoint(compression, path)"
            )
        return parsed

    @property
    def is_empty(self) -> bool:
        """Whether there are only counts of steps: no residual, no momentum."""
        return not any(is_tensor(key) for keys in self._keys.values() for key in keys)

    def names(self) -> set[str]:
        """Return the names of gradients for which any rank has a state."""
        parsed = _parse({key: None for keys in self._keys.values() for key in keys})
        return {name for name, _ in parsed.tasks} | set(parsed.to_reshard)


def _parse(state: Mapping[str, Any]) -> RankState:
    """Return the state of the rank that has these keys."""
    rank = RankState()
    for key, value in state.items():
        rest = _KEY.fullmatch(key)[2]
        section, _, path = rest.partition("/")
        if not path:
            rank.fields[rest] = value
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
