"""Values that the ranks of a process group exchange: JSON and tensors, never pickles.

PyTorch's object collectives (such as ``all_gather_object``) unpickle what they receive, so any
process in the group can run code in all other processes. Here a value is JSON, whose size and
content are checked, and a tensor is plain bytes. If there is a secret, the ranks first prove to
each other that they have it (:mod:`hipress.torch.authentication`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from hipress.base.checked import DAMAGED, typed
from hipress.torch import private
from hipress.torch.authentication import Authenticated, authenticate
from hipress.torch.errors import HipressError

MAX_BYTES = 64 << 20
"""Maximum bytes of a rank's value as JSON. Descriptions of the largest models need a few megabytes.
"""
_BATCH_BYTES = 16 << 20
"""Minimum bytes of tensors that are broadcast together."""
T = TypeVar("T")


def gather(
    group: dist.ProcessGroup | None,
    value: Any,
    what: str,
    check: Callable[[Any], T],
    max_bytes: int = MAX_BYTES,
) -> list[T]:
    """Return the values of all ranks of a group, which all call this together.

    Args:
        group: default: the default process group
        value: numbers, texts, lists and mappings with text keys
        what: names the value in messages ("settings")
        check: converts a value for the caller; raises one of hipress.base.checked.DAMAGED if
            the value is not as expected
        max_bytes: most bytes of a rank's value
    """
    group = group or dist.group.WORLD
    seal, rank, size = authenticate(group), dist.get_rank(group), dist.get_world_size(group)
    seal.next()
    body = json.dumps(value).encode()
    sealed = body + seal.seal(rank, body)
    device = private.device_of(group)
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(size)]
    dist.all_gather(sizes, torch.tensor([len(sealed)], device=device), group=group)
    lengths = [_checked_length(group, r, int(s), what, max_bytes) for r, s in enumerate(sizes)]
    mine = torch.zeros(max(lengths), dtype=torch.uint8, device=device)
    mine[: len(sealed)] = _tensor(sealed, device)
    parts = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(parts, mine, group=group)
    return [
        _opened(group, seal, r, _bytes(part[:length]), what, check)
        for r, (part, length) in enumerate(zip(parts, lengths))
    ]


def broadcast(
    group: dist.ProcessGroup | None,
    value: Any,
    what: str,
    check: Callable[[Any], T],
    root: int = 0,
    max_bytes: int = MAX_BYTES,
) -> T:
    """Return one rank's value on all ranks of a group, which all call this together.

    Args:
        value: see :func:`gather`; it counts on ``root`` only
        root: rank in the group
    """
    group = group or dist.group.WORLD
    seal, rank = authenticate(group), dist.get_rank(group)
    seal.next()
    device, source = private.device_of(group), dist.get_global_rank(group, root)
    sealed = b""
    if rank == root:
        body = json.dumps(value).encode()
        sealed = body + seal.seal(rank, body)
    length = torch.tensor([len(sealed)], device=device)
    dist.broadcast(length, source, group=group)
    data = torch.empty(
        _checked_length(group, root, int(length), what, max_bytes), dtype=torch.uint8, device=device
    )
    if rank == root:
        data.copy_(_tensor(sealed, device))
    dist.broadcast(data, source, group=group)
    return _opened(group, seal, root, _bytes(data), what, check)


def broadcast_state(group: dist.ProcessGroup | None, state: Any, what: str, root: int = 0) -> Any:
    """Return one rank's state on all ranks of a group, which all call this together.

    Args:
        state: tensors, numbers, texts, None, torch.dtypes, and mappings, lists and tuples of them;
            it counts on ``root`` only
        what: names the state in messages
        root: rank in the group

    Returns:
        the state; on other ranks than ``root`` its tensors are on the group's device, or in host
        memory if they were there
    """
    group = group or dist.group.WORLD
    tensors: list[torch.Tensor] = []
    plain: dict[str, Any] = {"state": None, "tensors": [], "error": ""}
    if dist.get_rank(group) == root:
        try:
            plain["state"] = _plain(state, tensors)
            plain["tensors"] = [
                [_name(t.dtype), list(t.shape), t.device.type == "cpu"] for t in tensors
            ]
        except ValueError as error:
            plain["error"] = str(error)
            plain["state"], tensors = None, []
    device = private.device_of(group)

    def check(found: Any) -> tuple[Any, str]:
        if dist.get_rank(group) != root:
            tensors.extend(_empty(*about, device) for about in found["tensors"])
        return _restored(found["state"], tensors), typed(found["error"], str, "error")

    found, error = broadcast(group, plain, what, check, root)
    if error:
        raise ValueError(f"{what}: {error}")
    source = dist.get_global_rank(group, root)
    for batch in _batches(tensors):
        data = torch.cat([_as_bytes(tensor).to(device) for tensor in batch])
        dist.broadcast(data, source, group=group)
        if dist.get_rank(group) != root:
            sizes = [tensor.numel() * tensor.element_size() for tensor in batch]
            for tensor, part in zip(batch, data.split(sizes)):
                _as_bytes(tensor).copy_(part)
    return found


def _checked_length(
    group: dist.ProcessGroup, rank: int, length: int, what: str, max_bytes: int
) -> int:
    if not 0 < length <= max_bytes + 64:
        raise HipressError(
            f"rank {dist.get_global_rank(group, rank)} announced {length} bytes of {what}, and "
            f"1 to {max_bytes} are allowed"
        )
    return length


def _opened(
    group: dist.ProcessGroup,
    seal: Authenticated,
    rank: int,
    sealed: bytes,
    what: str,
    check: Callable[[Any], T],
) -> T:
    """Return the checked value of a rank."""
    who = f"rank {dist.get_global_rank(group, rank)}"
    body = seal.open(rank, sealed)
    if body is None:
        raise HipressError(
            f"the {what} of {who} are not sealed with this job's secret: another process sent or "
            "changed them"
        )
    try:
        return check(json.loads(body))
    except (*DAMAGED, RecursionError) as error:
        raise HipressError(
            f"the {what} of {who} are malformed ({type(error).__name__}): it runs another version "
            "of HiPress, or is a process of another job"
        ) from error


def _tensor(data: bytes, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(bytearray(data), np.uint8)).to(device)


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.cpu().numpy().tobytes()


# States.

_SCALARS = (bool, int, float, str, type(None))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"{name} is not a dtype")
    return found


def _plain(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Return a state as JSON, and append its tensors."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, np.generic) and type(value.item()) in _SCALARS:
        return value.item()
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided:
        if value.is_meta or value.is_quantized:
            kind = "on the meta device" if value.is_meta else "with a quantized dtype"
            raise ValueError(f"a tensor {kind} cannot be sent to other ranks")
        tensors.append(value.detach().resolve_conj().resolve_neg())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, torch.dtype):
        return {"dtype": _name(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(k, tensors), _plain(v, tensors)] for k, v in value.items()]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_plain(each, tensors) for each in value]}
    raise ValueError(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be sent to other ranks; "
        "tensors, numbers, texts, and mappings, lists and tuples of them can"
    )


def _restored(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Return the state from which :func:`_plain` made a value."""
    if type(value) in _SCALARS:
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dtype":
        return _dtype(content)
    if kind == "mapping":
        return {_restored(k, tensors): _restored(v, tensors) for k, v in content}
    return {"list": list, "tuple": tuple}[kind](_restored(each, tensors) for each in content)


def _empty(
    dtype: str, shape: list[int], in_host_memory: bool, device: torch.device
) -> torch.Tensor:
    """Return a tensor to be filled with data from another rank."""
    if not all(type(size) is int and 0 <= size < 1 << 48 for size in shape):
        raise ValueError(f"{shape} is not a shape")
    if math.prod(shape) >= 1 << 48:
        raise ValueError(f"a tensor of shape {shape} is too large for any memory")
    where = torch.device("cpu") if in_host_memory else device
    return torch.empty(shape, dtype=_dtype(dtype), device=where)


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's elements as uint8, without a copy if it is contiguous."""
    whole = tensor.contiguous()
    # A contiguous tensor of one element may have any strides, of which view() refuses most.
    return whole.as_strided((whole.numel(),), (1,)).view(torch.uint8)


def _batches(tensors: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Group tensors into batches of some megabytes, which are the same on all ranks."""
    batch: list[torch.Tensor] = []
    size = 0
    for tensor in tensors:
        if tensor.numel():
            batch.append(tensor)
            size += tensor.numel() * tensor.element_size()
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
