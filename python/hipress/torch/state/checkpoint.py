"""Residuals, momentum and step in checkpoints: loaded exactly by the same job, or resharded.

In a job of as many ranks, a rank's own state suffices, for any topology, type or plan
(:class:`hipress.runtime.error_feedback.OwnState`). Otherwise, in a job of another size or one that
shards differently, the residuals of all ranks are added up. They are divided among the new tasks
(:class:`hipress.runtime.error_feedback.GlobalState`). If only rank 0 has saved its part, the other
ranks begin without residuals, and a warning reports that.

Every rank's state differs, so its key is the rank::

    2 ranks save      rank 0: "rank0": (its state,), "rank2": (), "rank4": (), ..., "rank254": ()
                      rank 1: "rank1": (its state,), "rank3": (), "rank5": (), ..., "rank255": ()
    3 ranks load      rank 0: "rank0", "rank3", "rank6", ...
                      rank 1: "rank1", "rank4", "rank7", ...
                      rank 2: "rank2", "rank5", "rank8", ...

torch.distributed.checkpoint.load() requires that a new job knows the keys of the checkpoint, and
that each key exists. Therefore the keys do not depend on what is saved, and ranks that do not exist
have empty states. The new ranks then add up what each of them has read
(:mod:`hipress.torch.state.merge`). The states of all ranks also fit into one dictionary. Residuals
contain their position in the whole parameter, so DDP's can be resharded to FSDP's ranks.
"""

from __future__ import annotations

import inspect
import logging
import os
import pickle
import warnings
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from hipress.runtime.error_feedback import START, GlobalState, TaskState
from hipress.topology.topologies import TOPOLOGIES
from hipress.torch import exchange
from hipress.torch.state.merge import (
    Merged,
    add_unsharded,
    group_of_all_ranks,
    merge,
    merge_between_ranks,
    missing_ranks,
    shared_parts,
)
from hipress.torch.state.saved import (
    VERSION,
    RankState,
    Saved,
    Stateful,
    carry_over_saved,
    pack,
    slots_of,
    unpack,
)

_log = logging.getLogger("hipress")


def state_dict(of: Stateful) -> dict[str, Any]:
    """Return this rank's state: a dictionary of tensors, numbers and texts, under ``"rank<r>"``.

    Keys of ranks that do not exist have empty tuples; see this module.
    """
    part: dict[str, Any] = {
        "version": VERSION,
        "world_size": of.world_size,
        "peers": of.engine.world_size,
        "step": of.step,
        "topology": of.topology,
        "type": of.settings.type,
        "layout": of.layout,
        "orders": dict(of.orders),
    }
    in_warm_up = of.step < of.settings.warmup_steps

    def put(where: str, fields: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        part.update({f"{where}/{name}": value for name, value in fields.items()})
        for name, values in states.items():
            part[f"{where}/states/{name}"] = torch.as_tensor(values, device="cpu")

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
    return pack(of.rank, of.world_size, part)


def global_state_dict(of: Stateful) -> dict[str, Any]:
    """Return the states of all ranks on rank 0, and an empty dictionary on other ranks.

    All ranks call this together. Rank 0 needs memory for the states of all ranks. The result is for
    frameworks in which rank 0 saves one file, which all ranks load.
    """
    group, mine = group_of_all_ranks(of), of.state_dict()
    mine = {key: value for key, value in mine.items() if value}
    states = exchange.gather_states(group, mine, "states of the compression")
    if states is None:
        return {}
    found: dict[str, Any] = {f"rank{rank}": () for rank in slots_of(0, 1)}
    found.update({key: value for state in states for key, value in state.items()})
    return found


class StateOfAllRanks:
    """State of a compression's ranks in one dictionary, for frameworks that save rank 0's.

    ``state_dict()`` must be called on all ranks together; see :func:`global_state_dict`.
    """

    def __init__(self, of: Stateful) -> None:
        self._of = of

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all ranks on rank 0, and an empty dictionary on other ranks."""
        return global_state_dict(self._of)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what :meth:`state_dict` returned on rank 0."""
        self._of.load_state_dict(state)


def load_state_dict(of: Stateful, state: Mapping[str, Any]) -> None:
    """Replace the present state by a saved one.

    In a job of the same size, topology, codec and layout, this rank's own part restores its state
    exactly. In a job of the same size that does not shard parameters, its own part is also enough
    for another topology, codec or plan. Otherwise the parts of all ranks are added up and
    resharded. If this rank has not been given all parts, all ranks must call this together. Then
    they exchange what they have, as after torch.distributed.checkpoint.load().

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
    parts = unpack(state)
    saved = Saved(of, (rank for rank, part in parts.items() if part), parts.__getitem__)
    is_share = set(parts) == set(slots_of(of.rank, of.world_size))
    if not saved.ranks and not is_share:
        raise ValueError("the state of the compression is empty: it has no rank")
    if _needs_exchange(of, saved, is_share):
        merged = merge_between_ranks(of, saved)
        if merged is not None:
            of.before_load(merged.fields["world_size"], merged.fields["type"])
            return _use_merged(of, merged)
    _load(of, saved)


class _Match(NamedTuple):
    """Comparison of a saved job with this one."""

    same: bool
    """Whether size, topology and codec are equal."""
    exact: bool
    """Whether each task also encodes the same elements."""
    own: bool
    """Whether a rank's own part is enough."""


def _match(of: Stateful, fields: Mapping[str, Any]) -> _Match:
    """Compare a saved job with this one, after this one has prepared for it."""
    of.before_load(fields["world_size"], fields["type"])
    kind = {"world_size": of.world_size, "topology": of.topology, "type": of.settings.type}
    same = all(fields[name] == value for name, value in kind.items())
    exact = same and fields["layout"] == of.layout
    # All-reduces: their tasks belong to whole parameters on every rank.
    whole = {fields["topology"], of.topology} <= TOPOLOGIES.keys()
    return _Match(same, exact, exact or (whole and fields["world_size"] == of.world_size))


def _needs_exchange(of: Stateful, saved: Saved, is_share: bool) -> bool:
    """Return whether all ranks must exchange their parts. All ranks return the same.

    Args:
        of: The compression that is loaded.
        saved: The parts of this rank.
        is_share: Whether these are the parts that this rank reads from PyTorch's checkpoints.
    """
    if not saved.ranks:
        return True
    some = saved.rank(saved.ranks[0]).fields
    missing = missing_ranks(some, saved.ranks)
    if some["world_size"] != of.world_size:
        return is_share or (bool(missing) and not _is_empty(saved))
    match = _match(of, some)
    # In hybrid sharding, ranks of different shards have different layouts.
    is_enough = match.same if " shards" in of.topology else match.own
    return bool(missing) and not is_enough


def _is_empty(saved: Saved) -> bool:
    """Return whether there are only counts of steps: no residual, no momentum."""
    return all(saved.rank(rank).is_empty for rank in saved.ranks)


def _load(of: Stateful, saved: Saved, complete: bool = False) -> None:
    """Replace the present state by a saved one, without other ranks.

    If ``complete``, it must have all ranks' parts.
    """
    some = saved.rank(of.rank if of.rank in saved.ranks else saved.ranks[0]).fields
    same, exact, own = _match(of, some)
    missing = missing_ranks(some, saved.ranks)
    is_missing = of.rank in missing
    # A complete state may be in a file. It is read once, by merge(), which also handles empty ones.
    is_empty = (own and saved.rank(of.rank).is_empty) if complete else _is_empty(saved)
    # In hybrid sharding, ranks of different shards have different layouts. The ranks of an
    # all-reduce have the same layout, so they all take this branch or none does.
    if is_empty and not exact and not (same and is_missing and not own):
        of.error_feedback.load({}, {})
        return _finish(of, some, {}, saved.rank(saved.ranks[0]).dropped)
    one_for_all = not complete and (is_empty or saved.ranks == [0])
    if missing and not one_for_all and (complete or not own or is_missing):
        raise ValueError(
            f"the state is of {some['world_size']} ranks, topology {some['topology']} and type "
            f"{some['type']}; to load it into {of.world_size} ranks, topology {of.topology} and "
            f"type {of.settings.type} the states of all its ranks are needed, and rank "
            f"{missing[0]}'s is not there"
            + (" (parameters, their order or the plan differ)" if same and not exact else "")
            + "; hipress.torch.load_checkpoint() reads those of a torch.distributed.checkpoint"
        )
    lacks_own = is_missing and (own or same)
    if not (lacks_own or own):
        _use_merged(of, merge(of, saved))
    else:
        if lacks_own:
            _load_common(of, saved.rank(saved.ranks[0]), own, exact)
        elif exact:
            mine = saved.rank(of.rank)
            to_reshard = {name: _unsharded(of, name, s) for name, s in mine.to_reshard.items()}
            of.error_feedback.load(mine.tasks, to_reshard)
        else:
            _check_names(of, saved.rank(of.rank).names())
            of.reshard(carry_over_saved(of, saved.rank(of.rank)))
        ranks = saved.ranks if lacks_own else [of.rank]
        shared = shared_parts(saved, ranks)
        _finish(of, some, shared, saved.rank(ranks[0]).dropped)
    if missing and (lacks_own or not own) and not is_empty and _is_partial(saved):
        count = some["world_size"]
        _log.warning(
            "the loaded state has only rank 0's part: what the codec had kept for later steps on "
            "%d of %d ranks (residuals, momentum) is lost; save global_state_dict() of the "
            "compression to keep it",
            count - 1,
            count,
        )


def _use_merged(of: Stateful, merged: Merged) -> None:
    """Replace the present state by the sum of all ranks' states."""
    if merged.is_empty:
        of.error_feedback.load({}, {})
    else:
        _check_names(of, merged.names)
        of.reshard(merged.states)
    _finish(of, merged.fields, merged.shared, merged.dropped)


def _finish(
    of: Stateful,
    fields: Mapping[str, Any],
    shared: Mapping[tuple[str, int], torch.Tensor],
    dropped: Collection[str],
) -> None:
    """Load the shared momentum and the step, after the residuals.

    Args:
        of: The compression that is loaded.
        fields: Fields of one saved rank.
        shared: Parts of the shared momentum.
        dropped: Gradients of whose state the elements are in another order than in this job.
    """
    if dropped:
        _log.warning(
            "the saved residuals and momentum of %s are dropped: the state has their elements in "
            "another order, because the saved job sharded these parameters differently",
            sorted(dropped),
        )
    if of.shared:
        _load_shared(of, shared)
    of.step = fields["step"]
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
    return " shards" in part.fields["topology"] and bool(part.shared)


def _check_names(of: Stateful, names: Collection[str]) -> None:
    """Log for which of these gradients residuals are dropped, because this model lacks them."""
    unknown = sorted(set(names) - set(of.sizes))
    if unknown and len(unknown) == len(names):
        raise ValueError(f"the state has gradient {unknown[0]!r}, which this model has not")
    if unknown:  # frozen since, perhaps
        _log.warning("the residual of %s is dropped: it is not trained", unknown)


def load_checkpoint(of: Stateful, path: str | os.PathLike, key: str = "hipress") -> None:
    """Load what ``torch.distributed.checkpoint.save({key: compression, ...})`` saved.

    The number of ranks may have changed. Call this on every rank, before the first step. No rank
    waits for another one. In a job of as many ranks, a rank reads only its own state. Otherwise
    every rank reads those of all ranks, one by one.
    ``torch.distributed.checkpoint.load({key: compression})`` has the same result. There each rank
    reads a part, and the ranks exchange sums.

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

    if not os.path.isdir(path):
        raise ValueError(f"cannot read the checkpoint {os.fspath(path)!r}: there is no such folder")
    if not is_complete(path):
        raise ValueError(
            f"the checkpoint {os.fspath(path)!r} is not complete: its .metadata, which is written "
            "last, is missing or torn; saving it was interrupted"
        )
    names = checkpoint.FileSystemReader(path).read_metadata().state_dict_metadata
    prefix = f"{key}.rank"
    if f"{prefix}0" not in names:
        older = any(name.startswith(f"{prefix}0/") for name in names)
        raise ValueError(
            f"the checkpoint {os.fspath(path)!r} has "
            + (f"{key!r} of an older version of HiPress" if older else f"no key {key!r}")
        )
    # The ranks read different keys, and no rank unpickles data of other ranks. PyTorch 2.6 has the
    # option only in the deprecated function.
    knows = "no_dist" in inspect.signature(checkpoint.load).parameters
    load = checkpoint.load if knows else checkpoint.load_state_dict

    def read(rank: int) -> Mapping[str, Any]:
        wanted: dict[str, Any] = {f"{prefix}{rank}": None}
        with warnings.catch_warnings():  # about the missing process group, which is intended
            warnings.filterwarnings("ignore", "torch.distributed is", UserWarning)
            warnings.simplefilter("ignore", FutureWarning)
            load(wanted, storage_reader=checkpoint.FileSystemReader(path), no_dist=True)
        found = unpack({f"rank{rank}": wanted[f"{prefix}{rank}"]})
        return found[rank]

    own = read(of.rank) if f"{prefix}{of.rank}" in names else {}
    size = (own or read(0))["world_size"]
    ranks = (rank for rank in range(size) if f"{prefix}{rank}" in names)
    _load(of, Saved(of, ranks, lambda r: own if r == of.rank else read(r)), complete=True)


def is_complete(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a complete torch.distributed.checkpoint."""
    from torch.distributed import checkpoint

    try:
        checkpoint.FileSystemReader(path).read_metadata()
    except (OSError, EOFError, pickle.UnpicklingError):
        return False
    return True


def _load_shared(of: Stateful, parts: Mapping[tuple[str, int], torch.Tensor]) -> None:
    """Load the parts of the shared momentum, by gradient and first element."""
    of.shared.clear()
    unknown = set()
    for (name, offset), values in parts.items():
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
    add_unsharded(state, saved, of.settings.type, of.settings.type)
    return state
