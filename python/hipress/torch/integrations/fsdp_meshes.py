"""Meshes of FSDP2: which process groups reduce a model's gradients, and which of these to compress.

A module reduces its gradients in up to two steps, each over one dimension of its mesh::

    mesh (replicate, shard)       host 0      host 1
                                  r0  r1      r2  r3
    reduce-scatter over "shard"   [r0  r1]    [r2  r3]
    all-reduce over "replicate"   [r0          r2]  and  [r1          r3]

With one dimension the reduce-scatter is always compressed. With both, a step is compressed if it
crosses hosts, and the other one is PyTorch's. If all ranks are on one host, the all-reduce is.

Dimensions of tensor and expert parallelism take no part: each of their ranks compresses its own
part of the parameters, with its own residuals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Placement, Shard

from hipress.torch import exchange
from hipress.torch.autotune import choice
from hipress.torch.dtypes import FLAGS, of_gradient
from hipress.torch.gradient import chunk_of
from hipress.torch.integrations.checks import group_of
from hipress.torch.private_fsdp import (
    Part,
    managed,
    mesh_of,
    parts_of,
    reduce_dtype,
    replicate_group_of,
    shape_of,
    shard_group_of,
)
from hipress.torch.start import meet, meeting_seconds
from hipress.torch.synchronizer import Shards


class Reduction(NamedTuple):
    """Modules whose gradients one process group reduces in one step."""

    modules: Mapping[str, Part]
    """FSDP modules by name, or groups of their parameters."""
    names: Mapping[int, str]
    """Names of the parameters by their id."""
    trained: Sequence[tuple[str, DTensor]]
    parameters: Sequence[tuple[str, DTensor]]
    """Trained parameters, and those that may be trained later."""
    group: dist.ProcessGroup
    scatters: bool
    """Whether the step is a reduce-scatter, not an all-reduce of shards."""
    num_shards: int
    """Number of ranks that share the parameters."""
    shard: int
    """Number of this rank's shard."""
    is_native: bool
    """Whether FSDP knows the group, which was not given as ``replicate_group``."""
    is_last: bool
    """Whether no other step follows, ours or FSDP's."""

    @property
    def whole_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of whole gradients as FSDP lays them out, by parameter."""
        return {
            self.names[id(each.sharded_param)]: shape_of(each, self.num_shards)
            for module in self.modules.values()
            for each in managed(module)
        }

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the gradients that are reduced, by parameter."""
        if self.scatters:
            whole = self.whole_shapes
            return {name: whole[name] for name, _ in self.parameters}
        return {name: tuple(p.to_local().shape) for name, p in self.parameters}

    @property
    def trained_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes without those of frozen parameters, which are not measured."""
        shapes = self.shapes
        return {name: shapes[name] for name, _ in self.trained or self.parameters}

    @property
    def dtypes(self) -> dict[str, torch.dtype]:
        """Dtypes in which gradients are reduced, by parameter."""
        return {
            self.names[id(each.sharded_param)]: reduce_dtype(module, each)
            for module in self.modules.values()
            for each in managed(module)
        }

    def orders(self) -> dict[str, str]:
        """Return the order of a gradient's elements in the state, where it is not the parameter's.

        The order depends on the mesh where a parameter is sharded by another dimension than 0, or
        where the ranks of another dimension have different elements in the state. It is a text that
        is equal if the order is.
        """
        parameters, dimensions = dict(self.parameters), self._other_dimensions()
        count = math.prod(map(len, dimensions))
        replicate = replicate_group_of(self._module) if self.scatters else None
        found: dict[str, str] = {}
        for each in (each for module in self.modules.values() for each in managed(module)):
            name, dimension = self.names[id(each.sharded_param)], each.fsdp_placement.dim
            if name not in parameters:
                continue
            about, size = [], count * math.prod(shape_of(each, self.num_shards))
            if dimension and self.num_shards > 1:
                about.append(f"dimension {dimension} in {self.num_shards} shards")
            sharded = _sharded_over(parameters[name])
            placements = [sharded.get(ranks) for ranks in dimensions]
            # Equal parts of dimension 0 are in the parameter's order.
            if size != parameters[name].numel() or any(p != Shard(0) for p in placements):
                for ranks, placement in zip(dimensions, placements):
                    about.append(f"{placement or 'whole'} on {len(ranks)} ranks")
            if replicate is not None and replicate.size() > 1:
                about.append(f"{replicate.size()} replicas")
            if about:
                found[name] = ", ".join(about)
        return found

    def shards(self) -> Shards | None:
        """Return which of several independent parts of the state this rank's group has.

        None if there is one part. Each rank of another dimension, such as tensor parallelism, has
        a separate part. Before an all-reduce over replicas, each replica has one, too.
        """
        shapes, rank = self.whole_shapes, dist.get_rank(self.group)
        dimensions = self._other_dimensions()
        count = math.prod(len(ranks) for ranks in dimensions)
        index = 0
        for ranks in dimensions:
            index = index * len(ranks) + ranks.index(dist.get_rank())
        replicate = replicate_group_of(self._module) if self.scatters else None
        replica = 0 if replicate is None else replicate.rank()
        if replicate is not None:
            count, index = count * replicate.size(), index * replicate.size() + replica
        sizes = {name: count * math.prod(shapes[name]) for name, _ in self.parameters}
        offsets = {name: index * math.prod(shapes[name]) for name, _ in self.parameters}
        data_rank = replica * self.num_shards + rank
        if not self.scatters:
            for name in offsets:
                offsets[name] += self.shard * chunk_of(shapes[name], self.num_shards)
            count, index = count * self.num_shards, index * self.num_shards + self.shard
            data_rank = rank * self.num_shards + self.shard
        return Shards(count, index, offsets, sizes, data_rank) if count > 1 else None

    def on_several_ranks(self) -> list[str]:
        """Return the parameters that all ranks of another dimension have, but not all parameters.

        These are parameters that tensor parallelism does not shard, in a model that it shards.
        """
        dimensions = self._other_dimensions()
        return [
            name
            for name, p in self.parameters
            if any(ranks not in _sharded_over(p) for ranks in dimensions)
        ]

    @property
    def managed_parameters(self) -> list[DTensor]:
        """All parameters of the modules, also those that are never trained."""
        return [each.sharded_param for module in self.modules.values() for each in managed(module)]

    @property
    def _module(self) -> Part:
        """First module. All modules have the same process groups."""
        return next(iter(self.modules.values()))

    def _other_dimensions(self) -> list[tuple[int, ...]]:
        """Return the ranks of each dimension over which some parameters are sharded, but not here.

        These are the dimensions of tensor and expert parallelism. Perhaps only parameters that are
        never trained are sharded over them, as in QLoRA.
        """
        own = map(_ranks, (self.group, shard_group_of(self._module)))
        replicate = replicate_group_of(self._module)
        known = {*own, _ranks(replicate)}
        found = (ranks for p in self.managed_parameters for ranks in _sharded_over(p))
        return [ranks for ranks in dict.fromkeys(found) if ranks not in known]


def _sharded_over(parameter: DTensor) -> dict[tuple[int, ...], Placement]:
    """Return the placement in each dimension over which a parameter is sharded, by its ranks."""
    mesh = parameter.device_mesh
    ranks = (_ranks(mesh.get_group(dimension)) for dimension in range(mesh.ndim))
    return {
        each: placement
        for each, placement in zip(ranks, parameter.placements)
        if len(each) > 1 and not placement.is_replicate()
    }


def reductions(
    model: FSDPModule, replicate_group: dist.ProcessGroup | None, timeout: float | None
) -> list[Reduction]:
    """Return the steps that are compressed, in one order on all ranks.

    Whole parameters are resharded first. With ``replicate_group``, which FSDP does not know, there
    is one step. ``timeout`` is the time in seconds to wait for another rank; default: the group's.

    Raises:
        ValueError: if there is nothing to train
        HipressError: if a rank of a mesh with shards and replicas does not call this
    """
    modules: dict[str, Part] = {}
    for name, module in model.named_modules():
        if isinstance(module, FSDPModule):
            module.reshard()  # a forward pass may have left whole parameters
            for i, part in enumerate(parts_of(module)):
                modules[f"{name} (group {i})" if i else name] = part
    names = {id(p): name for name, p in model.named_parameters()}
    found: list[Reduction] = []
    for those in _by_groups(modules, first_only=replicate_group is not None):
        trained, parameters = _parameters(model, those)
        if not parameters:
            continue
        first = next(module for module in those.values() if managed(module))
        shard, replicate = shard_group_of(first), replicate_group_of(first)
        num_shards, index = (1, 0) if shard is None else (shard.size(), shard.rank())
        common = those, names, trained, parameters
        if replicate_group is not None:
            group = group_of(replicate_group, "compress_fsdp()")
            found.append(Reduction(*common, group, False, num_shards, index, False, True))
            continue
        scatters, averages = _compressed_steps(first, timeout)
        if scatters:
            group, last = group_of(shard, "compress_fsdp()"), replicate is None
            found.append(Reduction(*common, group, True, num_shards, index, True, last))
        if averages:
            found.append(Reduction(*common, replicate, False, num_shards, index, True, True))
    if not any(each.trained for each in found):
        raise ValueError("compress_fsdp() takes a model with parameters to train")
    return found


def _by_groups(modules: Mapping[str, Part], first_only: bool) -> list[dict[str, Part]]:
    """Return the modules by the ranks that reduce them together, in the model's order."""
    found: dict[object, dict[str, Part]] = {}
    for name, module in modules.items():
        if managed(module):
            groups = shard_group_of(module), replicate_group_of(module)
            about = None if first_only else tuple(map(_ranks, groups))
            found.setdefault(about, {})[name] = module
    return list(found.values())


def _ranks(group: dist.ProcessGroup | None) -> tuple[int, ...]:
    return () if group is None else tuple(dist.get_process_group_ranks(group))


def _compressed_steps(module: Part, timeout: float | None) -> tuple[bool, bool]:
    """Return whether to compress a module's reduce-scatter, and its all-reduce.

    All ranks of the module's mesh call this together, and decide alike.
    """
    shard, replicate = shard_group_of(module), replicate_group_of(module)
    if replicate is None or shard is None:
        return replicate is None, shard is None
    if 1 in (shard.size(), replicate.size()):
        return replicate.size() == 1, replicate.size() > 1
    _meet_on(mesh_of(module), shard, timeout)
    scatters = _crosses_hosts(shard, replicate)
    return scatters, _crosses_hosts(replicate, shard) or not scatters


def _meet_on(mesh: DeviceMesh, group: dist.ProcessGroup, timeout: float | None) -> None:
    """Wait until all ranks of a mesh are here; ``group`` is one of its process groups."""
    meet(sorted(mesh.mesh.flatten().tolist()), meeting_seconds(group, timeout))


def _crosses_hosts(group: dist.ProcessGroup, other: dist.ProcessGroup) -> bool:
    """Return whether a dimension of a mesh has a group with ranks on several hosts.

    Args:
        group: This rank's group in the dimension.
        other: This rank's group in the other dimension, whose ranks are in the other groups.
    """
    hosts = exchange.gather(group, choice.this_host(), "host names", str)
    return any(exchange.gather(other, len(set(hosts)) > 1, "host names", bool))


def _parameters(
    model: FSDPModule, modules: Mapping[str, Part]
) -> tuple[list[tuple[str, DTensor]], list[tuple[str, DTensor]]]:
    """Return the modules' trained parameters, and those with the ones that may be trained later.

    The latter are frozen now. A frozen parameter that would be refused if it were trained is left
    out. Both results are in the model's order.
    """
    reduced = {id(each.sharded_param) for module in modules.values() for each in managed(module)}
    named = [(name, p) for name, p in model.named_parameters() if id(p) in reduced]
    trained = [(name, p) for name, p in named if p.requires_grad]
    device = (trained or named)[0][1].device

    def may_be_trained(p: DTensor) -> bool:
        return bool(p.numel() and p.device == device and of_gradient(p) in FLAGS)

    return trained, [(name, p) for name, p in named if p.requires_grad or may_be_trained(p)]


def check_meshes(found: Reduction) -> None:
    """Check that the trained parameters are sharded so that gradients can be compressed.

    Raises:
        ValueError: if they are not; the message names a module or parameter
    """
    for name, p in found.trained:
        if not p.numel():
            raise ValueError(
                f"parameter {name!r} has no elements, and FSDP2 cannot reduce a gradient without: "
                "freeze it, or give it to fully_shard() among ignored_params"
            )
    if found.is_native:
        return
    first: Any = None
    for name, module in found.modules.items():
        shard, replicate = shard_group_of(module), replicate_group_of(module)
        if shard is None or replicate is not None:
            raise ValueError(
                f"module {name!r} is replicated by FSDP2, which averages its gradients over "
                f"{replicate.size()} ranks: leave replicate_group out"
            )
        first = first or (name, shard)
        if _ranks(shard) != _ranks(first[1]):
            raise ValueError(
                f"modules {first[0]!r} and {name!r} are sharded over different ranks; "
                "replicate_group is for a model that is sharded over the same ranks throughout"
            )
    common = sorted(set(_ranks(first[1])) & set(_ranks(found.group)))
    if common != [dist.get_rank()]:
        raise ValueError(
            "replicate_group must have one rank of each host, those that have the same shard; "
            f"ranks {common} are in it that have different shards of one model"
        )


def share_problem(
    steps: Sequence[Reduction], problem: Exception | None, timeout: float | None
) -> Exception | None:
    """Return this rank's problem, or that of another rank in any dimension of the meshes.

    All ranks of the meshes call this together, and wait ``timeout`` seconds for each other.
    """
    meshes = {p.device_mesh: None for step in steps for p in step.managed_parameters}
    for mesh in meshes:
        _meet_on(mesh, mesh.get_group(0), timeout)
        for dimension in range(mesh.ndim):
            group = mesh.get_group(dimension)
            found = exchange.gather(group, str(problem or ""), "problems", str)
            problem = problem or next((ValueError(text) for text in found if text), None)
    return problem
