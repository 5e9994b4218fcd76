"""Residuals, momentum and step in checkpoints: loaded exactly by the same job, or resharded.

Every rank's state differs, so its keys begin with the rank: ``"rank0/step"``,
``"rank0/state/layer.weight/3/states/residual"`` (of task 3). The states of all ranks thus fit into
one dictionary, and torch.distributed.checkpoint, which takes equal keys for equal values, keeps all
of them. Residuals say which elements of the whole parameter they are of, so DDP's can be resharded
to FSDP's ranks.
"""

from __future__ import annotations

import inspect
import logging
import os
import pickle
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch

from hipress.casync.graph import GRADIENT, PLAIN, Graph, Op
from hipress.encodes import OWN
from hipress.torch.low_rank import START
from hipress.torch.settings import Settings
from hipress.torch.state.global_state import GlobalState
from hipress.torch.state.momentum import SharedMomentum


class Stateful(Protocol):
    """A compression whose state is saved and loaded."""

    settings: Settings
    rank: int
    world_size: int
    step: int
    topology: str
    layout: int
    average: bool
    sizes: Mapping[str, int]
    engine: Any
    error_feedback: Any
    """An :class:`hipress.torch.state.error_feedback.ErrorFeedback`, which imports this module."""
    shared: SharedMomentum | None


VERSION = 3
_KEY = re.compile(r"rank(\d+)/(.+)")
_log = logging.getLogger("hipress")


class TaskState:
    """The state of one task in a checkpoint, or of one gradient."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.states: dict[str, torch.Tensor] = {}

    @property
    def span(self) -> slice:
        """The elements of the whole parameter that it is of."""
        return slice(self.fields["offset"], self.fields["offset"] + self.fields["count"])


class _Rank:
    """One rank's state in a checkpoint."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.tasks: dict[tuple[str, int], TaskState] = {}
        self.to_reshard: dict[str, TaskState] = {}
        self.shared: dict[str, TaskState] = {}


def state_dict(of: Stateful) -> dict[str, Any]:
    """This rank's state: tensors, numbers and texts by key."""
    prefix = f"rank{of.rank}"
    found: dict[str, Any] = {
        f"{prefix}/version": VERSION,
        f"{prefix}/world_size": of.world_size,
        f"{prefix}/peers": of.engine.world_size,
        f"{prefix}/step": of.step,
        f"{prefix}/topology": of.topology,
        f"{prefix}/type": of.settings.type,
        f"{prefix}/layout": of.layout,
    }

    def put(where: str, fields: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        found.update({f"{prefix}/{where}/{name}": value for name, value in fields.items()})
        for name, values in states.items():
            found[f"{prefix}/{where}/states/{name}"] = torch.as_tensor(values)

    for (name, index), compressor in of.error_feedback.states.items():
        state, partition = compressor.state_dict(), of.error_feedback.partitions[name, index]
        about = {"offset": partition.offset, "count": partition.count}
        about["kind"] = str(of.error_feedback.kinds[name, index])
        fields = {**about, "step": state["step"], "stream": state["stream"]}
        put(f"state/{name}/{index}", fields, state["states"])
    # What was loaded and no task has taken yet is not to be lost.
    for (name, index), loaded in of.error_feedback.loaded.items():
        put(f"state/{name}/{index}", loaded.fields, loaded.states)
    for name, state in of.error_feedback.to_reshard.items():
        state.save(name, put)
    for name, (offset, values) in of.shared.state().items() if of.shared else ():
        put(f"shared/{name}", {"offset": offset}, {"momentum": values})
    return found


class _Saved:
    """A state of several ranks, of which no more is read at a time than is needed.

    :param keys: all there are
    :param read: the values of some
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
        """Reads a rank's own fields, without its tasks."""
        return self._parsed(rank, [key for key in self._keys[rank] if key.count("/") == 1]).fields

    def rank(self, rank: int) -> _Rank:
        """A rank's state, but for its shared momentum."""
        shared = self._shared(rank)
        return self._parsed(rank, [key for key in self._keys[rank] if key not in shared])

    def shared(self, rank: int) -> dict[str, TaskState]:
        """A rank's shared momentum."""
        shared = self._shared(rank)
        keys = [key for key in self._keys[rank] if key.count("/") == 1 or key in shared]
        return self._parsed(rank, keys).shared

    def _shared(self, rank: int) -> set[str]:
        prefix = f"rank{rank}/shared/"
        return {key for key in self._keys[rank] if key.startswith(prefix)}

    def _parsed(self, rank: int, keys: list[str]) -> _Rank:
        found = _parse(self._read(keys))
        if found.fields.get("version") != VERSION:
            raise ValueError(
                f"rank {rank}'s state is of version {found.fields.get('version')}; this HiPress "
                f"reads version {VERSION}"
            )
        return found

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but counts of steps: no residual, no momentum."""
        return not any("/states/" in key for keys in self._keys.values() for key in keys)

    def names(self) -> set[str]:
        """The gradients that any rank has a state of."""
        found = _parse({key: None for keys in self._keys.values() for key in keys})
        return {name for name, _ in found.tasks} | set(found.to_reshard)


def load_state_dict(of: Stateful, state: Mapping[str, Any]) -> None:
    """Goes on from ``state``: exactly, if it holds this rank's of a job of this size, topology,
    codec and layout; else it must hold all ranks' states, which are added up and resharded. Where
    the codec kept neither residual nor momentum, there is only the step to go on from.

    :raises ValueError: if ranks are missing, it is another model's, or it is not such a state
    """
    _load(of, _Saved(state, lambda keys: {key: state[key] for key in keys}))


def _load(of: Stateful, saved: _Saved, complete: bool = False) -> None:
    """:param complete: whether to refuse a state that holds this rank's alone"""
    some = saved.fields(of.rank if of.rank in saved.ranks else saved.ranks[0])
    kind = {"world_size": of.world_size, "topology": of.topology, "type": of.settings.type}
    same = all(some[name] == value for name, value in kind.items())
    exact = same and some["layout"] == of.layout
    if not exact and saved.is_empty:
        of.step = some["step"]
        return
    missing = sorted(set(range(some["world_size"])) - set(saved.ranks))
    if missing and (complete or not exact or of.rank in missing):
        raise ValueError(
            f"the state is of {some['world_size']} ranks, topology {some['topology']} and type "
            f"{some['type']}; to load it into {kind['world_size']} ranks, topology "
            f"{kind['topology']} and type {kind['type']} the states of all its ranks are needed, "
            f"and rank {missing[0]}'s is not there"
            + (" (parameters, their order or the plan differ)" if same and not exact else "")
        )
    if exact:
        mine = saved.rank(of.rank)
        to_reshard = {name: _unsharded(of, name, s) for name, s in mine.to_reshard.items()}
        of.error_feedback.load(mine.tasks, to_reshard)
    else:
        of.error_feedback.reshard(_gathered(of, saved, some["type"]))
    if of.shared:
        _load_shared(of, saved, [of.rank] if exact else saved.ranks)
    of.step = some["step"]


def load_checkpoint(of: Stateful, path: str | os.PathLike, key: str = "hipress") -> None:
    """Loads what ``torch.distributed.checkpoint.save({key: compression, ...})`` saved, whatever the
    number of ranks was then. To be called on every rank, before the first step. In a job like the
    one that saved it a rank reads its own state only, else those of all ranks, one by one.

    :param path: the checkpoint's folder
    :raises ValueError: if the checkpoint has no such key, or is not complete
    """
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    if not is_complete(path):
        raise ValueError(
            f"the checkpoint {os.fspath(path)!r} is not complete: its .metadata, which is written "
            "last, is missing or torn; saving it was interrupted"
        )
    about = checkpoint.FileSystemReader(path).read_metadata().state_dict_metadata
    prefix = f"{key}."
    names = [name for name in about if name.startswith(prefix)]
    if not names:
        raise ValueError(f"the checkpoint {os.fspath(path)!r} has no key {key!r}")
    # Ranks read other keys, which is nothing to do together; PyTorch 2.6 knows no other way.
    knows = "no_dist" in inspect.signature(checkpoint.load).parameters
    alone = {"no_dist": True} if knows else {}

    def read(keys: list[str]) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        for name in (prefix + each for each in keys):
            tensor = isinstance(about[name], TensorStorageMetadata)
            wanted[name] = (
                torch.empty(about[name].size, dtype=about[name].properties.dtype)
                if tensor else None
            )  # fmt: skip
        with warnings.catch_warnings():  # of having no group, as is wanted
            warnings.filterwarnings("ignore", "torch.distributed is", UserWarning)
            checkpoint.load(wanted, storage_reader=checkpoint.FileSystemReader(path), **alone)
        return {name[len(prefix) :]: value for name, value in wanted.items()}

    _load(of, _Saved([name[len(prefix) :] for name in names], read), complete=True)


def is_complete(path: str | os.PathLike[str]) -> bool:
    """Checks whether a folder is a torch.distributed.checkpoint that was saved to its end."""
    from torch.distributed import checkpoint

    try:
        checkpoint.FileSystemReader(path).read_metadata()
    except (OSError, EOFError, pickle.UnpicklingError):
        return False
    return True


def num_own_encoders(graph: Graph, partition: int) -> int:
    """The number of ranks that encode their own gradient's ``partition`` by itself."""
    return sum(
        task.op == Op.ENCODE
        and task.partition == partition
        and task.inputs == (GRADIENT,)
        and task.num_summands != PLAIN
        for tasks in graph.tasks.values()
        for task in tasks
    )


def _parse(state: Mapping[str, Any]) -> _Rank:
    """The state of the rank that has these keys."""
    rank = _Rank()
    for key, value in state.items():
        rest = _KEY.fullmatch(key)[2]
        section, _, path = rest.partition("/")
        if not path:
            rank.fields[rest] = value
            continue
        path, _, field = path.rpartition("/")
        state_of, path = path.endswith("/states"), path.removesuffix("/states")
        if section == "total":
            found = rank.to_reshard.setdefault(path, TaskState())
        elif section == "shared":
            found = rank.shared.setdefault(path, TaskState())
        else:
            name, _, index = path.rpartition("/")
            found = rank.tasks.setdefault((name, int(index)), TaskState())
        (found.states if state_of else found.fields)[field] = value
    return rank


def _load_shared(of: Stateful, saved: _Saved, ranks: Iterable[int]) -> None:
    """Loads shared momentum as these ranks have it: all the same, or each that of its shard."""
    of.shared.clear()
    unknown = set()
    for rank in ranks:
        for name, state in saved.shared(rank).items():
            offset, values = state.fields["offset"], state.states["momentum"]
            if name not in of.sizes:
                unknown.add(name)
            elif offset + values.numel() > of.sizes[name]:
                raise ValueError(
                    f"the state has momentum for {offset + values.numel()} elements of gradient "
                    f"{name!r}, which has {of.sizes[name]}"
                )
            else:
                of.shared.load(name, offset, values)
    of.shared.load_keys()
    if unknown:
        _log.warning("the momentum of %s is dropped: it is not trained", sorted(unknown))


def _unsharded(of: Stateful, name: str, saved: TaskState) -> GlobalState:
    """A global state that no task had taken its part of, as it was."""
    state = GlobalState(of.sizes[name])
    _add_unsharded(state, saved, of.settings.type, of.settings.type)
    return state


def _gathered(of: Stateful, saved: _Saved, type: str) -> dict[str, GlobalState]:
    """The states of all ranks, added up by gradient."""
    states: dict[str, GlobalState] = {}
    names = saved.names()
    unknown = sorted(names - set(of.sizes))
    if unknown and len(unknown) == len(names):
        raise ValueError(f"the state has gradient {unknown[0]!r}, which this model has not")
    if unknown:  # frozen since, perhaps
        _log.warning("the residual of %s is dropped: it is not trained", unknown)
    for number in saved.ranks:
        rank = saved.rank(number)
        peers = rank.fields["peers"]  # of which each gave a share to a mean
        for (name, _), task in rank.tasks.items():
            if name in unknown:
                continue
            state = states.setdefault(name, GlobalState(of.sizes[name]))
            kind = task.fields["kind"]
            own = kind == OWN
            state.step = max(state.step, task.fields["step"])
            # A sum's residual counts once for all; a mean's is in units of the result already.
            in_mean = of.average and kind == "1" and peers > 1
            share = 1.0 if in_mean or not of.average else 1.0 / peers
            for field, values in task.states.items():
                if field == "residual":
                    state.add(field, task.span, values, share)
                elif field == START:
                    continue  # of a power iteration, which begins anew
                elif own and type == of.settings.type:
                    state.add(field, task.span, values, 1.0 / peers)
        # Every rank has the same of these, so one rank's are all.
        for name, unsharded in rank.to_reshard.items() if number == saved.ranks[0] else ():
            if name not in unknown:
                state = states.setdefault(name, GlobalState(of.sizes[name]))
                _add_unsharded(state, unsharded, type, of.settings.type)
    return states


def _add_unsharded(state: GlobalState, saved: TaskState, type: str, mine: str) -> None:
    state.step = max(state.step, saved.fields["step"])
    for field, values in saved.states.items():
        if field == "residual" or type == mine:
            state.add(field, slice(0, values.numel()), values, 1.0)
