"""Parts of PyTorch without a public name that the package uses. Each is looked up only here."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d


class MissingAttribute(RuntimeError):
    """Error: this PyTorch lacks an attribute that the package needs. The message names both."""


def lookup(value: Any, *names: str) -> Any:
    """Return the first of these attributes that ``value`` has."""
    for name in names:
        try:
            return getattr(value, name)
        except AttributeError:
            continue
    raise MissingAttribute(
        f"PyTorch {torch.__version__} has no {value.__class__.__name__}.{' or '.join(names)}, "
        "which hipress.torch needs: take an older PyTorch, or a newer hipress"
    )


def backend(group: dist.ProcessGroup, device: torch.device | None = None) -> Any:
    """Return a group's backend for tensors on ``device``. Default: on any device of the group."""
    kind = device.type if device else _device_type(group)
    return group._get_backend(torch.device(kind))


def device_of(group: dist.ProcessGroup) -> torch.device:
    """Return a device that the group supports: the CPU if possible, otherwise the GPU of NCCL."""
    kind = _device_type(group)
    return torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def _device_type(group: dist.ProcessGroup) -> str:
    kinds = [each.type for each in group._device_types]
    return "cpu" if "cpu" in kinds or not kinds else kinds[0]


def timeout_of(group: dist.ProcessGroup) -> float:
    """Return the timeout with which a process group was made, in seconds."""
    options = getattr(backend(group), "options", None)
    timeout = getattr(options, "_timeout", None) or distributed_c10d.default_pg_timeout
    return timeout.total_seconds()


def default_store() -> dist.Store:
    """Return the store of the default process group."""
    return distributed_c10d._get_default_store()


def set_timeout(group: dist.ProcessGroup, timeout: datetime.timedelta) -> None:
    """Give the later operations of a process group another timeout."""
    lookup(distributed_c10d, "set_timeout", "_set_pg_timeout")(timeout, group)


def backward_pass() -> int:
    """Return the number of the backward pass that this thread is in, or -1 outside of one."""
    return torch._C._current_graph_task_id()


def queue_callback(call: Callable[[], None]) -> None:
    """Queue a call for the end of the backward pass that this thread is in."""
    torch.autograd.Variable._execution_engine.queue_callback(call)


def replicated_by(module: torch.nn.Module) -> str:
    """Return what averages a module's gradients after PyTorch's composable replicate(), or "".

    One of the functions uses "DDP", and the other one (since PyTorch 2.9) "FSDP2". If neither was
    imported, there is no such module.
    """
    found = sys.modules.get("torch.distributed._composable.replicate")
    if found is not None and isinstance(module, lookup(found, "DDP")):
        return "DDP"
    found = sys.modules.get("torch.distributed._composable.replicate_with_fsdp")
    if found is not None and lookup(found, "_get_module_replicate_state")(module) is not None:
        return "FSDP2"
    return ""


def is_stepped_in_backward(parameter: torch.Tensor) -> bool:
    """Return whether torch.distributed.optim._apply_optimizer_in_backward gave it an optimizer."""
    return hasattr(parameter, "_in_backward_optimizers")


def last_gradient_hook(parameter: torch.Tensor) -> int:
    """Return the id of the handle of the parameter's post_accumulate_grad hook that runs last."""
    return next(reversed(lookup(parameter, "_post_accumulate_grad_hooks")))


def reduces_in_python(model: torch.nn.parallel.DistributedDataParallel) -> bool:
    """Return whether hooks for compiled autograd reduce its gradients, not DDP's reducer."""
    return lookup(model, "_use_python_reducer")


def delays_reductions(model: torch.nn.parallel.DistributedDataParallel) -> bool:
    """Return whether the model has delay_all_reduce_named_params, which DDP reduces separately."""
    return bool(lookup(model, "_delay_all_reduce_params"))


def managed(model: torch.nn.parallel.DistributedDataParallel) -> list[torch.Tensor]:
    """Return the parameters whose gradients a DDP model reduces.

    They required a gradient when the model was wrapped. This allocates zeros as large as their
    gradients.
    """
    buckets = lookup(model.reducer, "_get_zeros_like_grad_buckets")()
    return [parameter for bucket in buckets for parameter in bucket.parameters()]


def comm_hooks(model: torch.nn.parallel.DistributedDataParallel) -> Sequence[tuple]:
    """Return a DDP model's communication hooks, each (state, hook).

    For a copy they are those of the original.
    """
    found = lookup(model, "_comm_hooks")
    return [pair[::-1] for pair in found]  # DDP keeps (hook, state)
