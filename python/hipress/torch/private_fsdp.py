"""Parts of FSDP2 without a public name that the package uses. Each is looked up only here.

The module also has hooks in addition to FSDP's own. It is separate from private.py, because
importing FSDP takes half as long as importing PyTorch itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule

try:
    from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather, ReduceScatter
    from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultAllGather
except ImportError:  # before 2.9, for which compress_fsdp() raises an error
    AllGather = ReduceScatter = DefaultAllGather = object

from hipress.torch.private import lookup


class ParameterGroup:
    """One of several groups of a module's parameters, each of which has another mesh.

    It has the methods of FSDPModule that FSDP2 itself offers only for modules with one group.
    """

    def __init__(self, group: Any) -> None:
        self.group = group

    def set_custom_all_gather(self, comm: Any) -> None:
        """See FSDPModule."""
        self._set("_all_gather_comm", comm)

    def set_custom_reduce_scatter(self, comm: Any) -> None:
        """See FSDPModule."""
        self._set("_reduce_scatter_comm", comm)

    def set_all_reduce_hook(self, hook: Callable[[torch.Tensor], None]) -> None:
        """See FSDPModule."""
        self._set("_all_reduce_hook", hook)

    def _set(self, name: str, value: Any) -> None:
        lookup(self.group, name)
        setattr(self.group, name, value)


Part = Union[FSDPModule, ParameterGroup]
"""Parameters that FSDP gathers and reduces together: a module's, or one group of them."""


def _groups(part: Part) -> Sequence[Any]:
    """Return FSDP's groups of a module's parameters. Before 2.12 it had one at most."""
    if isinstance(part, ParameterGroup):
        return (part.group,)
    found = lookup(lookup(part, "_get_fsdp_state")(), "_fsdp_param_groups", "_fsdp_param_group")
    if found is None:
        return ()
    return found if isinstance(found, (list, tuple)) else (found,)


def parts_of(module: FSDPModule) -> Sequence[Part]:
    """Return the parts of a module that FSDP reduces separately.

    There is none in a module without parameters, and more than one if shard_placement_fn gave them
    different meshes.
    """
    groups = _groups(module)
    return [module] if len(groups) == 1 else list(map(ParameterGroup, groups))


def managed(module: Part) -> Sequence[Any]:
    """Return FSDP's records of a module's parameters, in the order of its flat tensors."""
    return [each for group in _groups(module) for each in lookup(group, "fsdp_params")]


def gathered_as(record: Any) -> tuple[torch.dtype, int]:
    """Return dtype and number of the elements that this rank sends of a record in a gather.

    Tensor subclasses that define ``fsdp_pre_all_gather`` may send others.
    """
    flat = lookup(record, "_sharded_param_data")
    return lookup(record, "param_dtype") or flat.dtype, flat.numel()


def is_in(record: Any, state: str) -> bool:
    """Return whether a record is in one of FSDP's states: SHARDED, SHARDED_POST_FORWARD, ..."""
    return lookup(record, "sharded_state").name == state


def shard_group_of(module: Part) -> dist.ProcessGroup | None:
    """Return the ranks that share a module's parameters. None: each rank has all of them."""
    return getattr(lookup(_groups(module)[0], "mesh_info"), "shard_process_group", None)


def mesh_of(module: Part) -> DeviceMesh:
    """Return the mesh of a module's dimensions for shards and replicas."""
    return lookup(lookup(_groups(module)[0], "mesh_info"), "mesh")


class DelegatedAllReduce:
    """Replicate group of a module whose all-reduce is left to the module's all-reduce hook.

    FSDP calls the hook directly after the all-reduce, with the same tensor.

    Attributes:
        group: The group that it replaces.
        op: Operation that FSDP requested last.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group, self.op = group, dist.ReduceOp.SUM

    def allreduce(self, tensors: Sequence[torch.Tensor], options: dist.AllreduceOptions) -> None:
        """Remember the operation."""
        self.op = options.reduceOp

    def __getattr__(self, name: str) -> Any:
        return getattr(self.group, name)


def replicate_group_of(module: Part) -> dist.ProcessGroup | None:
    """Return the ranks over which FSDP averages a module's shards. None: it does not."""
    found = getattr(lookup(_groups(module)[0], "mesh_info"), "replicate_process_group", None)
    return found.group if isinstance(found, DelegatedAllReduce) else found


def delegate_all_reduce(module: Part) -> DelegatedAllReduce:
    """Make FSDP leave the average of a module's shards to the module's all-reduce hook."""
    info = lookup(_groups(module)[0], "mesh_info")  # several modules may have the same one
    if not isinstance(info.replicate_process_group, DelegatedAllReduce):
        info.replicate_process_group = DelegatedAllReduce(info.replicate_process_group)
    return info.replicate_process_group


def shape_of(record: Any, num_shards: int) -> tuple[int, ...]:
    """Return the shape of a record's whole gradient, as FSDP cuts it into ``num_shards`` chunks.

    It is the part of this rank of tensor parallelism. Of a parameter sharded by another dimension
    than 0, FSDP concatenates the chunks by dimension 0.
    """
    shape, dimension = [*lookup(record, "_orig_size")], lookup(record, "fsdp_placement").dim
    if dimension:
        shape[0] *= num_shards
        shape[dimension] //= num_shards
    return tuple(shape)


def reduce_dtype(module: Part, record: Any) -> torch.dtype:
    """Return the dtype in which a record's gradient is reduced. Before 2.15 it was its group's."""
    policy = getattr(record, "mp_policy", None) or lookup(_groups(module)[0], "mp_policy")
    return policy.reduce_dtype or policy.param_dtype or record.sharded_param.dtype


def will_gather(module: Part, record: Any) -> tuple[torch.dtype, int]:
    """Return dtype and number of the elements that this rank will send of a record in a gather.

    The module may not have run yet, when FSDP has not decided on the dtype.
    """
    policy = getattr(record, "mp_policy", None) or lookup(_groups(module)[0], "mp_policy")
    flat = lookup(record, "_sharded_param_data")
    return policy.param_dtype or flat.dtype, flat.numel()


def gathers_again(module: Part, is_root: bool) -> bool:
    """Return whether a module's weights are gathered also before its backward pass.

    They are not if the forward pass leaves them, or shards them over fewer ranks.
    """
    if is_root and not isinstance(module, ParameterGroup):
        state = lookup(module, "_get_fsdp_state")()
        if getattr(state, "_auto_reshard_after_forward", False):
            return False  # FSDP decides this in the first forward pass
    group = _groups(module)[0]
    after, mesh = lookup(group, "post_forward_mesh_info"), lookup(group, "mesh_info")
    return after is not None and after.mesh.size() == mesh.mesh.size()


def has_own_all_gather(module: Part) -> bool:
    """Return whether the user has replaced a module's all-gather."""
    return not isinstance(lookup(_groups(module)[0], "_all_gather_comm"), DefaultAllGather)


def hooks(module: Part) -> tuple[Any, Callable | None]:
    """Return a module's reduce-scatter and its all-reduce hook, if the user has set them."""
    group = _groups(module)[0]
    return lookup(group, "_reduce_scatter_comm"), lookup(group, "_all_reduce_hook")


def has_divide_factor(module: Part) -> bool:
    """Return whether set_gradient_divide_factor() was called for a module."""
    return lookup(_groups(module)[0], "gradient_divide_factor") is not None


def premultiplied_by(op: Any) -> float:
    """Return the factor of a ReduceOp of kind PREMUL_SUM, which only its pickled state shows."""
    return float(lookup(op, "__getstate__")()[1])


def before_backward(model: FSDPModule, call: Callable[[], None]) -> None:
    """Register ``call`` for each backward pass of a model's results, before its modules' hooks."""

    def hook(module: object, given: object, output: object) -> None:
        for tensor in _tensors(output):
            if tensor.grad_fn is not None:
                tensor.register_hook(lambda _: call())

    model.register_forward_hook(torch.compiler.disable(hook))  # as FSDP's own hooks are


def _tensors(output: object) -> Iterator[torch.Tensor]:
    """Return the tensors in a module's result, where FSDP also looks for them."""
    if isinstance(output, torch.Tensor):
        yield output
        return
    parts: Any = ()
    if isinstance(output, Mapping):
        parts = output.values()
    elif isinstance(output, (list, tuple)):
        parts = output
    elif dataclasses.is_dataclass(output):
        parts = [getattr(output, field.name) for field in dataclasses.fields(output)]
    for part in parts:
        yield from _tensors(part)
