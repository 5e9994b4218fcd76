"""Residuals, momentum and step in checkpoints: loaded exactly by the same job, or resharded.

In a job of as many ranks, a rank's own state suffices, for any topology, type or plan
(:class:`hipress.runtime.error_feedback.OwnState`). Otherwise, in a job of another size or one that
shards differently, the residuals of all ranks are added up. They are divided among the new tasks
(:class:`hipress.runtime.error_feedback.GlobalState`). If only rank 0 has saved its part, the other
ranks begin without residuals, and a warning reports that.

Every rank's state differs, so its keys begin with the rank: ``"rank0/step"``,
``"rank0/state/layer.weight/3/states/residual"`` (of task 3). So the states of all ranks fit into
one dictionary, and torch.distributed.checkpoint, which treats equal keys as equal values, keeps all
of them. Residuals contain their position in the whole parameter, so DDP's can be resharded to
FSDP's ranks.
"""

from __future__ import annotations

import inspect
import logging
import os
import pickle
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import torch

from hipress.runtime.error_feedback import OWN, START, GlobalState, TaskState
from hipress.topology.topologies import TOPOLOGIES
from hipress.torch.state.saved import (
    VERSION,
    RankState,
    Saved,
    Stateful,
    carry_over_saved,
    is_tensor,
)

_log = logging.getLogger("hipress")


def state_dict(of: Stateful) -> dict[str, Any]:
    """Return this rank's state: tensors, numbers and texts by key."""
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

    # State prepared for the time after it is empty so far; but before the first step of a
    # job without one, torch.distributed.checkpoint.load() fills what there is.
    in_warm_up = of.step < of.settings.warmup_steps

    def put(where: str, fields: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        found.update({f"{prefix}/{where}/{name}": value for name, value in fields.items()})
        for name, values in states.items():
            found[f"{prefix}/{where}/states/{name}"] = torch.as_tensor(values, device="cpu")

    for (name, index), compressor in of.error_feedback.states.items():
        state, partition = compressor.state_dict(), of.error_feedback.partitions[name, index]
        about = {"offset": partition.offset, "count": partition.count}
        about["kind"] = str(of.error_feedback.kinds[name, index])
        fields = {**about, "step": state["step"], "stream": state["stream"]}
        residuals = [values for key, values in state["states"].items() if key != START]
        if in_warm_up and state["step"] == 0 and not any(map(np.any, residuals)):
            continue
        put(f"state/{name}/{index}", fields, state["states"])
    # State that was loaded and that no task has taken yet must be kept.
    for (name, index), loaded in of.error_feedback.loaded.items():
        put(f"state/{name}/{index}", loaded.fields, loaded.states)
    for name, state in of.error_feedback.to_reshard.items():
        state.save(name, put)
    for name, (offset, values) in of.shared.state().items() if of.shared else ():
        put(f"shared/{name}", {"offset": offset}, {"momentum": values})
    # torch.distributed.checkpoint.load() leaves out those that the new job has not made yet.
    found[f"{prefix}/tensors"] = sum(map(is_tensor, found))
    return found


def load_state_dict(of: Stateful, state: Mapping[str, Any]) -> None:
    """Replace the present state by a saved one.

    In a job of the same size, topology, codec and layout, this rank's own part restores its state
    exactly. In a job of the same size that does not shard parameters, its own part is also enough
    for another topology, codec or plan. Otherwise the parts of all ranks are added up and
    resharded.

    Frameworks that save only on rank 0 give all ranks rank 0's part. It is enough if the codec
    keeps nothing between steps. Otherwise the residuals and momentum of the other ranks are lost,
    and a warning reports that. Counts of steps, shared momentum and low rank's ``start_q`` are the
    same on all ranks and are restored.

    Args:
        of: The compression that is loaded.
        state: Results of :func:`state_dict` on one or more ranks, in one dictionary.

    Raises:
        ValueError: If ranks or tensors are missing, or the state is malformed or another model's.
    """
    _load(of, Saved(state, lambda keys: {key: state[key] for key in keys}))


def _load(of: Stateful, saved: Saved, complete: bool = False) -> None:
    """Replace the present state by a saved one. If ``complete``, it must have all ranks' parts."""
    some = saved.fields(of.rank if of.rank in saved.ranks else saved.ranks[0])
    of.before_load(some["world_size"], some["type"])
    kind = {"world_size": of.world_size, "topology": of.topology, "type": of.settings.type}
    same = all(some[name] == value for name, value in kind.items())
    exact = same and some["layout"] == of.layout
    missing = sorted(set(range(some["world_size"])) - set(saved.ranks))
    is_missing = of.rank in missing
    # All-reduces: their tasks belong to whole parameters on every rank.
    whole = {some["topology"], of.topology} <= TOPOLOGIES.keys()
    own = exact or (whole and some["world_size"] == of.world_size)
    # In hybrid sharding, ranks of different shards have different layouts. The ranks of an
    # all-reduce have the same layout, so they all take this branch or none does.
    if saved.is_empty and not exact and not (same and is_missing and not own):
        of.error_feedback.load({}, {})
        if of.shared:
            of.shared.clear()
        of.step = some["step"]
        return of.after_load()
    one_for_all = not complete and (saved.is_empty or saved.ranks == [0])
    if missing and not one_for_all and (complete or not own or is_missing):
        raise ValueError(
            f"the state is of {some['world_size']} ranks, topology {some['topology']} and type "
            f"{some['type']}; to load it into {kind['world_size']} ranks, topology "
            f"{kind['topology']} and type {kind['type']} the states of all its ranks are needed, "
            f"and rank {missing[0]}'s is not there"
            + (" (parameters, their order or the plan differ)" if same and not exact else "")
        )
    lacks_own = is_missing and (own or same)
    if lacks_own:
        _load_common(of, saved.rank(saved.ranks[0]), own, exact)
    elif exact:
        mine = saved.rank(of.rank)
        to_reshard = {name: _unsharded(of, name, s) for name, s in mine.to_reshard.items()}
        of.error_feedback.load(mine.tasks, to_reshard)
    else:
        _check_names(of, saved.names())
        given = carry_over_saved(of, saved.rank(of.rank)) if own else _gathered(of, saved)
        of.reshard(given)
    if of.shared:
        _load_shared(of, saved, saved.ranks if lacks_own or not own else [of.rank])
    if missing and (lacks_own or not own) and not saved.is_empty and _is_partial(saved):
        _log.warning(
            "the loaded state has only rank 0's part: what the codec had kept for later steps on "
            "rank%s (residuals, momentum) is lost; save the state of every rank to keep it",
            " 1" if missing == [1] else f"s 1 to {missing[-1]}",
        )
    of.step = some["step"]
    of.after_load()


def _load_common(of: Stateful, other: RankState, own: bool, exact: bool) -> None:
    """Load the state that all ranks have in common, because this rank's own part is missing.

    ``own`` is whether that part would be enough. If ``exact``, both jobs have the same tasks, so
    that low rank's ``start_q`` can be reused.
    """
    tasks: dict[tuple[str, int], TaskState] = {}
    common: dict[str, GlobalState] = {}
    for (name, index), task in other.tasks.items():
        if name not in of.sizes:
            continue
        steps = common.setdefault(name, GlobalState(of.sizes[name]))
        steps.step = max(steps.step, task.fields["step"])
        if exact and START in task.states:
            started = tasks[name, index] = TaskState()
            started.fields, started.states = task.fields, {START: task.states[START]}
    if exact:
        common.update((name, _unsharded(of, name, s)) for name, s in other.to_reshard.items())
    if own and not exact:
        of.reshard(common)
    else:
        of.error_feedback.load(tasks, common)


def _is_partial(saved: Saved) -> bool:
    """Return whether rank 0, and so other ranks too, had a residual or a part of the momentum."""
    part = saved.rank(0)
    if any(task.states.keys() - {START} for task in part.tasks.values()):
        return True
    return " shards" in part.fields["topology"] and bool(saved.shared(0))


def _check_names(of: Stateful, names: Collection[str]) -> None:
    """Log for which of these gradients residuals are dropped, because this model lacks them."""
    unknown = sorted(set(names) - set(of.sizes))
    if unknown and len(unknown) == len(names):
        raise ValueError(f"the state has gradient {unknown[0]!r}, which this model has not")
    if unknown:  # frozen since, perhaps
        _log.warning("the residual of %s is dropped: it is not trained", unknown)


def load_checkpoint(of: Stateful, path: str | os.PathLike, key: str = "hipress") -> None:
    """Load what ``torch.distributed.checkpoint.save({key: compression, ...})`` saved.

    The number of ranks may have changed. Call this on every rank, before the first step. In a job
    of as many ranks, a rank reads only its own state. Otherwise it reads those of all ranks, one by
    one.

    Args:
        of: the compression that is loaded
        path: the checkpoint's folder
        key: the compression's key in the checkpoint

    Raises:
        ValueError: if the checkpoint has no such key, or is not complete
    """
    if hasattr(of, "parts"):  # compressions of several process groups
        for i, part in enumerate(of.parts):
            load_checkpoint(part, path, f"{key}.part{i}")
        return
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    if not os.path.isdir(path):
        raise ValueError(f"cannot read the checkpoint {os.fspath(path)!r}: there is no such folder")
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
    # The ranks read different keys, and no rank unpickles data of other ranks. PyTorch 2.6 has the
    # option only in the deprecated function.
    knows = "no_dist" in inspect.signature(checkpoint.load).parameters
    load = checkpoint.load if knows else checkpoint.load_state_dict

    def read(keys: list[str]) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        for name in (prefix + each for each in keys):
            tensor = isinstance(about[name], TensorStorageMetadata)
            wanted[name] = (
                torch.empty(about[name].size, dtype=about[name].properties.dtype, device="cpu")
                if tensor
                else None
            )
        with warnings.catch_warnings():  # about the missing process group, which is intended
            warnings.filterwarnings("ignore", "torch.distributed is", UserWarning)
            warnings.simplefilter("ignore", FutureWarning)
            load(wanted, storage_reader=checkpoint.FileSystemReader(path), no_dist=True)
        return {name[len(prefix) :]: value for name, value in wanted.items()}

    _load(of, Saved([name[len(prefix) :] for name in names], read), complete=True)


def is_complete(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a complete torch.distributed.checkpoint."""
    from torch.distributed import checkpoint

    try:
        checkpoint.FileSystemReader(path).read_metadata()
    except (OSError, EOFError, pickle.UnpicklingError):
        return False
    return True


def _load_shared(of: Stateful, saved: Saved, ranks: Iterable[int]) -> None:
    """Load shared momentum in the form of these ranks: equal on all, or each that of its shard."""
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
    """Return a saved global state of which no task had taken its part."""
    state = GlobalState(of.sizes[name])
    _add_unsharded(state, saved, of.settings.type, of.settings.type)
    return state


def _gathered(of: Stateful, saved: Saved) -> dict[str, GlobalState]:
    """Return the sums of all ranks' states by gradient, without unknown gradients."""
    states: dict[str, GlobalState] = {}
    for number in saved.ranks:
        rank = saved.rank(number)
        peers = rank.fields["peers"]  # each of which gave a share to a mean
        for (name, _), task in rank.tasks.items():
            if name not in of.sizes:
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
                    continue  # belongs to a power iteration, which starts again
                elif own and rank.fields["type"] == of.settings.type:
                    state.add(field, task.span, values, 1.0 / peers)
        # Every rank has the same of these, so one rank's are all.
        for name, unsharded in rank.to_reshard.items() if number == saved.ranks[0] else ():
            if name in of.sizes:
                state = states.setdefault(name, GlobalState(of.sizes[name]))
                _add_unsharded(state, unsharded, rank.fields["type"], of.settings.type)
    return states


def _add_unsharded(state: GlobalState, saved: TaskState, type: str, mine: str) -> None:
    state.step = max(state.step, saved.fields["step"])
    for field, values in saved.states.items():
        if field == "residual" or type == mine:
            state.add(field, slice(0, values.numel()), values, 1.0)
