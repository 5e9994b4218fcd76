"""Sum of the states of all ranks of a saved job, of which each rank may have read a part.

It is for jobs of another size, and jobs that shard differently. The residuals of a gradient are
added up, so that each of the new tasks can get a share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from hipress.runtime.error_feedback import OWN, START, GlobalState, TaskState
from hipress.torch import exchange
from hipress.torch.private import device_of
from hipress.torch.state.saved import Saved, Stateful


class Merged(NamedTuple):
    """Sum of the states of all ranks of a saved job."""

    fields: Mapping[str, Any]
    """Fields of one of the ranks."""
    names: set[str]
    """Gradients that have a state, also those that this model does not have."""
    states: dict[str, GlobalState]
    """Sums of residuals by gradient, without those that this model does not have."""
    shared: dict[tuple[str, int], torch.Tensor]
    """Parts of the shared momentum, by gradient and first element."""
    is_empty: bool
    """Whether there are only counts of steps: no residual, no momentum."""
    dropped: set[str]
    """Gradients of whose state the elements are in another order than in this job."""


def missing_ranks(fields: Mapping[str, Any], ranks: Collection[int]) -> list[int]:
    """Return the ranks of a saved job that are not among these."""
    return sorted(set(range(fields["world_size"])).difference(ranks))


def merge(of: Stateful, saved: Saved) -> Merged:
    """Return the sum of these ranks' states, which are read one by one."""
    states: dict[str, GlobalState] = {}
    names: set[str] = set()
    dropped: set[str] = set()
    is_empty = True
    fields: Mapping[str, Any] = {}
    shared: dict[tuple[str, int], torch.Tensor] = {}
    for number in saved.ranks:
        rank = saved.rank(number)
        fields, is_empty = fields or rank.fields, is_empty and rank.is_empty
        names, dropped = names | rank.names(), dropped | rank.dropped
        shared = {**shared_parts(saved, [number]), **shared}
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
        for name, unsharded in rank.to_reshard.items() if number == 0 else ():
            if name in of.sizes:
                state = states.setdefault(name, GlobalState(of.sizes[name]))
                add_unsharded(state, unsharded, rank.fields["type"], of.settings.type)
    return Merged(fields, names, states, shared, is_empty, dropped)


def add_unsharded(state: GlobalState, saved: TaskState, type: str, mine: str) -> None:
    """Add a saved global state. Of another type than ``mine``, only the residual is added."""
    state.step = max(state.step, saved.fields["step"])
    for field, values in saved.states.items():
        if field == "residual" or type == mine:
            state.add(field, slice(0, values.numel()), values, 1.0)


def shared_parts(saved: Saved, ranks: Iterable[int]) -> dict[tuple[str, int], torch.Tensor]:
    """Return the parts of the shared momentum that these ranks have, by name and first element.

    They are equal on all ranks, or each rank has that of its shard.
    """
    return {
        (name, state.fields["offset"]): state.states["momentum"]
        for rank in ranks
        for name, state in saved.rank(rank).shared.items()
    }


def group_of_all_ranks(of: Stateful) -> dist.ProcessGroup:
    """Return a process group of all ranks of a compression.

    Raises:
        ValueError: If it is sharded, and the job has other ranks.
    """
    group = of.group or dist.group.WORLD
    if dist.get_world_size(group) != of.world_size:
        raise ValueError(
            f"the compression has {of.world_size} ranks, in several process groups, and the job "
            f"has {dist.get_world_size(group)}: load its state with "
            "hipress.torch.load_checkpoint(compression, path)"
        )
    return group


def merge_between_ranks(of: Stateful, saved: Saved) -> Merged | None:
    """Return the sum of the states that all ranks have. All ranks call this together.

    Each rank adds up the states that it alone has, or that it has first. Then the sums are reduced
    over the ranks. Each rank needs memory for one saved rank's state and for a sum. The result is
    None if every rank has rank 0's state only, and there were more.

    Args:
        of: The compression that is loaded.
        saved: States that this rank has. It may have none.

    Raises:
        ValueError: If no rank has the state of a rank. All ranks raise it.
    """
    group = group_of_all_ranks(of)
    me, device = dist.get_rank(group), device_of(group)
    fields = {str(rank): saved.rank(rank).fields for rank in saved.ranks}
    found = exchange.gather(group, fields, "saved ranks", dict[str, dict[str, Any]])
    holders: dict[int, int] = {}
    for holder, ranks in enumerate(found):
        for rank in map(int, ranks):
            holders.setdefault(rank, holder)
    if not holders:
        raise ValueError("the state of the compression is empty: it has no rank")
    first = min(holders)
    common = found[holders[first]][str(first)]
    missing = missing_ranks(common, holders)
    if missing:
        if all(list(ranks) == ["0"] for ranks in found):
            return None
        raise ValueError(
            f"the state is of {common['world_size']} ranks, and rank {missing[0]}'s is not there; "
            "hipress.torch.load_checkpoint() reads those of a torch.distributed.checkpoint"
        )
    of.before_load(common["world_size"], common["type"])
    mine = merge(of, Saved(of, (r for r, holder in holders.items() if holder == me), saved.read))
    about = {
        "names": sorted(mine.names),
        "states": {n: [state.step, *sorted(state.states)] for n, state in mine.states.items()},
        "shared": [[*key, values.numel()] for key, values in mine.shared.items()],
        "is_empty": mine.is_empty,
        "dropped": sorted(mine.dropped),
    }
    all_about = exchange.gather(group, about, "saved states", dict[str, Any])
    states: dict[str, GlobalState] = {}
    for name, size in of.sizes.items():
        entries = [each["states"][name] for each in all_about if name in each["states"]]
        if not entries:
            continue
        state = states[name] = mine.states.get(name) or GlobalState(size)
        state.step = max(step for step, *_ in entries)
        for field in sorted({field for _, *fields in entries for field in fields}):
            state.add(field, slice(0, 0), ())  # zeros if this rank has none
            total = torch.from_numpy(state.states[field]).to(device)
            dist.all_reduce(total, group=group)
            state.states[field] = total.cpu().numpy()
    shared: dict[tuple[str, int], torch.Tensor] = {}
    for holder, each in enumerate(all_about):
        for name, offset, count in each["shared"]:
            key = name, offset
            if key in shared:
                continue
            values = mine.shared[key].to(device) if holder == me else None
            if values is None:
                values = torch.empty(count, dtype=torch.float32, device=device)
            dist.broadcast(values, dist.get_global_rank(group, holder), group=group)
            shared[key] = values.cpu()
    names, dropped = (
        {name for each in all_about for name in each[key]} for key in ("names", "dropped")
    )
    is_empty = all(each["is_empty"] for each in all_about)
    return Merged(common, names, states, shared, is_empty, dropped)
