"""Parts of PyTorch without a public name that the package uses, each looked up here alone.

tests/unittest/test_torch_private.py names them all: it says what a new PyTorch has moved.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.distributed.fsdp import FSDPModule

try:
    from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter
except ImportError:  # before 2.8, for which compress_fsdp() has a sentence
    ReduceScatter = object
try:
    from torch.distributed._composable.replicate_with_fsdp import ReplicateModule
except ImportError:  # before 2.9: replicate() made a model that DDP's reducer served
    ReplicateModule = None


class MissingAttribute(RuntimeError):
    """This PyTorch has not what the package needs of it; the message names both."""


def lookup(value: Any, *names: str) -> Any:
    """The first of these attributes that ``value`` has.

    :raises MissingAttribute: if it has none
    """
    for name in names:
        try:
            return getattr(value, name)
        except AttributeError:
            continue
    raise MissingAttribute(
        f"PyTorch {torch.__version__} has no {value.__class__.__name__}.{' or '.join(names)}, "
        "which hipress.torch needs: take an older PyTorch, or a newer hipress"
    )


def set_timeout(group: dist.ProcessGroup, timeout: datetime.timedelta) -> None:
    """Gives the later operations of a process group another timeout."""
    lookup(distributed_c10d, "_set_pg_timeout")(timeout, group)


def _groups(module: FSDPModule) -> Sequence[Any]:
    """FSDP's groups of a module's parameters; before 2.12 it had one at most."""
    found = lookup(lookup(module, "_get_fsdp_state")(), "_fsdp_param_groups", "_fsdp_param_group")
    if found is None:
        return ()
    return found if isinstance(found, (list, tuple)) else (found,)


def num_groups(module: FSDPModule) -> int:
    """Groups of parameters that FSDP reduces by themselves: 0 for a module without any, more than
    1 where shard_placement_fn gave them different meshes."""
    return len(_groups(module))


def managed(module: FSDPModule) -> Sequence[Any]:
    """FSDP's records of a module's parameters, in the order of its flat tensors."""
    return [each for group in _groups(module) for each in lookup(group, "fsdp_params")]


def reduce_dtype(module: FSDPModule, record: Any) -> torch.dtype:
    """The dtype in which the gradient of one of :func:`managed` is reduced.

    The policy is each parameter's own since 2.15, and was its group's before.
    """
    policy = getattr(record, "mp_policy", None) or lookup(_groups(module)[0], "mp_policy")
    return policy.reduce_dtype or policy.param_dtype or record.sharded_param.dtype


def hooks(module: FSDPModule) -> tuple[Any, Callable | None]:
    """A module's reduce-scatter and its all-reduce hook, if the user has set them."""
    group = _groups(module)[0]
    return lookup(group, "_reduce_scatter_comm"), lookup(group, "_all_reduce_hook")


def is_replicated(module: FSDPModule) -> bool:
    """Checks whether replicate() made a module, which makes its modules FSDP's too."""
    return ReplicateModule is not None and isinstance(module, ReplicateModule)


def backward_pass() -> int:
    """The number of the backward pass that this thread is in; -1 outside of one."""
    return torch._C._current_graph_task_id()


def queue_callback(call: Callable[[], None]) -> None:
    """Queues a call for the end of the backward pass that this thread is in."""
    torch.autograd.Variable._execution_engine.queue_callback(call)


def is_stepped_in_backward(parameter: torch.Tensor) -> bool:
    """Checks whether torch.distributed.optim._apply_optimizer_in_backward gave it an optimizer."""
    return hasattr(parameter, "_in_backward_optimizers")


def last_gradient_hook(parameter: torch.Tensor) -> int:
    """The id of the handle of the parameter's post_accumulate_grad hook that runs last."""
    return next(reversed(lookup(parameter, "_post_accumulate_grad_hooks")))


def reduces_in_python(model: torch.nn.parallel.DistributedDataParallel) -> bool:
    """Checks whether hooks for compiled autograd reduce its gradients, not DDP's reducer."""
    return lookup(model, "_use_python_reducer")


def delays_reductions(model: torch.nn.parallel.DistributedDataParallel) -> bool:
    """Checks whether it has delay_all_reduce_named_params, which DDP all-reduces by themselves."""
    return bool(lookup(model, "_delay_all_reduce_params"))


def comm_hooks(model: torch.nn.parallel.DistributedDataParallel) -> Sequence[tuple]:
    """A DDP model's communication hooks, each (state, hook); of a copy, those of the original."""
    found = lookup(model, "_comm_hooks")
    return [pair[::-1] for pair in found]  # DDP keeps (hook, state)
