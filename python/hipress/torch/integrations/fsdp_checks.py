"""Parameters of an FSDP2 model whose gradients can be compressed, and models that are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor, Shard

from hipress.torch.dtypes import FLAGS, of_gradient
from hipress.torch.private_fsdp import managed, num_groups


def parameters_of(
    model: FSDPModule, modules: Mapping[str, FSDPModule]
) -> tuple[list[tuple[str, DTensor]], list[tuple[str, DTensor]]]:
    """Return the trained parameters, and those with the parameters that may be trained later.

    The latter are frozen now. A frozen parameter that would be refused if it were trained is left
    out. Both results are in the model's order.

    Args:
        modules: the model's modules that FSDP manages
    """
    named = [(name, p) for name, p in model.named_parameters() if isinstance(p, DTensor)]
    trained = [(name, p) for name, p in named if p.requires_grad]
    if not trained:
        return [], []
    first = trained[0][1]
    reduced = {id(each.sharded_param) for module in modules.values() for each in managed(module)}
    return trained, [
        (name, p)
        for name, p in named
        if p.requires_grad or (id(p) in reduced and _may_be_trained(p, first))
    ]


def _may_be_trained(p: DTensor, first: DTensor) -> bool:
    """Return whether a frozen parameter's gradient could be compressed with ``first``'s."""
    shards = p.device_mesh == first.device_mesh and p.placements == (Shard(0),)
    return bool(shards and p.numel() and p.device == first.device and of_gradient(p) in FLAGS)


def check_groups(modules: Mapping[str, FSDPModule]) -> None:
    """Check that a module's parameters are sharded over one mesh."""
    for name, module in modules.items():
        if num_groups(module) > 1:
            raise ValueError(
                f"module {name!r} has {num_groups(module)} groups of parameters, which are sharded "
                "over different meshes; compress_fsdp() takes modules with one: call fully_shard() "
                "on its parts first"
            )


def check_sharding(
    parameters: Sequence[tuple[str, DTensor]], mesh: Any, replicate_group: dist.ProcessGroup | None
) -> None:
    """Check how the trained parameters are sharded."""
    for name, p in parameters:
        if not p.numel():
            raise ValueError(
                f"parameter {name!r} has no elements, and FSDP2 cannot reduce a gradient without: "
                "freeze it, or give it to fully_shard() among ignored_params"
            )
        if p.device_mesh.ndim != 1:
            raise ValueError(
                f"parameter {name!r} is on a mesh of {p.device_mesh.ndim} dimensions; "
                'compress_fsdp() takes one: give fully_shard() mesh["shard"] and, to average '
                'compressed between hosts, compress_fsdp() mesh["replicate"].get_group() as '
                "replicate_group"
            )
        if p.placements[0].is_replicate():
            raise ValueError(
                f"parameter {name!r} is replicated over its mesh, not sharded: wrap the model in "
                "DistributedDataParallel instead, for hipress.torch.compress"
            )
        if p.device_mesh != mesh:
            raise ValueError(
                f"parameters {parameters[0][0]!r} and {name!r} are sharded over different ranks; "
                "compress_fsdp() takes a model that is sharded over the same ranks throughout"
            )
        if p.placements != (Shard(0),):
            raise ValueError(
                f"parameter {name!r} is sharded as {p.placements[0]}; compress_fsdp() takes "
                "parameters that are sharded by dimension 0"
            )
    if replicate_group is not None:
        sharing = set(dist.get_process_group_ranks(mesh.get_group(0)))
        common = sorted(sharing & set(dist.get_process_group_ranks(replicate_group)))
        if common != [dist.get_rank()]:
            raise ValueError(
                "replicate_group must have one rank of each host, those that have the same shard; "
                f"ranks {common} are in it that have different shards of one model"
            )
