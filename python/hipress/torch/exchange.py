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
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
import torch
import torch.distributed as dist

from hipress.base.checked import DAMAGED
from hipress.errors import HipressError
from hipress.torch import private
from hipress.torch.authentication import Authenticated, authenticate

MAX_BYTES = 64 << 20
"""Maximum bytes of a rank's value as JSON. Descriptions of the largest models need a few megabytes.
"""
_BATCH_BYTES = 16 << 20
"""Minimum bytes of tensors that are broadcast together."""
_Tensor = tuple[str, list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 48)]], bool]
"""A tensor's dtype and shape, and whether it is in host memory."""
T = TypeVar("T")


def gather(group: dist.ProcessGroup | None, value: Any, what: str, kind: type[T]) -> list[T]:
    """Return the values of all ranks of a group, which all call this together.

    A value consists of numbers, texts, lists and mappings with text keys. It is converted to
    ``kind``. If a rank's value is too large or malformed, all ranks raise an error that names the
    rank, and the value by ``what``.
    """
    group = group or dist.group.WORLD
    seal, rank, size = authenticate(group), dist.get_rank(group), dist.get_world_size(group)
    seal.next()
    sealed = _sealed(seal, rank, value)
    device = private.device_of(group)
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(size)]
    dist.all_gather(sizes, torch.tensor([len(sealed)], device=device), group=group)
    lengths = [_checked_length(group, r, int(s), what) for r, s in enumerate(sizes)]
    mine = torch.zeros(max(lengths), dtype=torch.uint8, device=device)
    mine[: len(sealed)] = _tensor(sealed, device)
    parts = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(parts, mine, group=group)
    return [
        _opened(group, seal, r, part[:length], what, lambda found: msgspec.convert(found, kind))
        for r, (part, length) in enumerate(zip(parts, lengths))
    ]


def broadcast_state(group: dist.ProcessGroup | None, state: Any, what: str, root: int = 0) -> Any:
    """Return the state of rank ``root`` of a group on all its ranks, which all call this together.

    A state consists of tensors, numbers, texts, None, torch.dtypes, and mappings, lists and tuples
    of them. On other ranks than ``root`` its tensors are on the group's device, or in host memory
    if they were there. If it holds something else, all ranks raise a ValueError.
    """
    group = group or dist.group.WORLD
    seal, rank = authenticate(group), dist.get_rank(group)
    seal.next()
    device, source = private.device_of(group), dist.get_global_rank(group, root)
    tensors: list[torch.Tensor] = []
    sealed = b""
    if rank == root:
        try:
            plain = _plain(state, tensors)
            about = [(_name(t.dtype), list(t.shape), t.device.type == "cpu") for t in tensors]
            sealed = _sealed(seal, rank, [plain, about, ""])
        except ValueError as error:
            tensors = []
            sealed = _sealed(seal, rank, [None, [], str(error)])
    length = torch.tensor([len(sealed)], device=device)
    dist.broadcast(length, source, group=group)
    size = _checked_length(group, root, int(length), what)
    data = torch.empty(size, dtype=torch.uint8, device=device)
    if rank == root:
        data.copy_(_tensor(sealed, device))
    dist.broadcast(data, source, group=group)

    def restored(found: Any) -> tuple[Any, str]:
        plain, about, error = msgspec.convert(found, tuple[Any, list[_Tensor], str])
        if rank != root:
            for dtype, shape, in_host_memory in about:
                if math.prod(shape) >= 1 << 48:
                    raise ValueError(f"a tensor of shape {shape} is too large for any memory")
                where = torch.device("cpu") if in_host_memory else device
                tensors.append(torch.empty(shape, dtype=_dtype(dtype), device=where))
        return _restored(plain, tensors), error

    found, error = _opened(group, seal, root, data, what, restored)
    if error:
        raise ValueError(f"{what}: {error}")
    for batch in _batches(tensors):
        data = torch.cat([_as_bytes(tensor).to(device) for tensor in batch])
        dist.broadcast(data, source, group=group)
        if rank != root:
            sizes = [tensor.numel() * tensor.element_size() for tensor in batch]
            for tensor, part in zip(batch, data.split(sizes)):
                _as_bytes(tensor).copy_(part)
    return found


def gather_states(group: dist.ProcessGroup | None, state: Any, what: str) -> list[Any] | None:
    """Return the states of all ranks on rank 0 of a group, and None on its other ranks.

    All ranks call this together. A state is as in :func:`broadcast_state`. Its tensors are in host
    memory on rank 0.

    Raises:
        ValueError: If this rank's state holds something else.
    """
    group = group or dist.group.WORLD
    tensors: list[torch.Tensor] = []
    plain = _plain(state, tensors)
    about = [(_name(t.dtype), list(t.shape), True) for t in tensors]
    described = gather(group, [plain, about], what, tuple[Any, list[_Tensor]])
    rank, device, root = (
        dist.get_rank(group),
        private.device_of(group),
        dist.get_global_rank(group, 0),
    )
    if rank != 0:
        for batch in _batches(tensors):
            data = torch.cat([_as_bytes(tensor).to(device) for tensor in batch])
            dist.send(data, root, group=group)
        return None
    states = [state]
    for source, (found, shapes) in enumerate(described[1:], start=1):
        received = [torch.empty(shape, dtype=_dtype(dtype)) for dtype, shape, _ in shapes]
        for batch in _batches(received):
            sizes = [tensor.numel() * tensor.element_size() for tensor in batch]
            data = torch.empty(sum(sizes), dtype=torch.uint8, device=device)
            dist.recv(data, dist.get_global_rank(group, source), group=group)
            for tensor, part in zip(batch, data.split(sizes)):
                _as_bytes(tensor).copy_(part)
        states.append(_restored(found, received))
    return states


def _sealed(seal: Authenticated, rank: int, value: Any) -> bytes:
    body = json.dumps(value).encode()
    return body + seal.seal(rank, body)


def _checked_length(group: dist.ProcessGroup, rank: int, length: int, what: str) -> int:
    if not 0 < length <= MAX_BYTES + 64:
        raise HipressError(
            f"rank {dist.get_global_rank(group, rank)} announced {length} bytes of {what}, and "
            f"1 to {MAX_BYTES} are allowed"
        )
    return length


def _opened(
    group: dist.ProcessGroup,
    seal: Authenticated,
    rank: int,
    sealed: torch.Tensor,
    what: str,
    convert: Callable[[Any], T],
) -> T:
    """Return the converted value of a rank."""
    who = f"rank {dist.get_global_rank(group, rank)}"
    body = seal.open(rank, sealed.cpu().numpy().tobytes())
    if body is None:
        raise HipressError(
            f"the {what} of {who} are not sealed with this job's secret: another process sent or "
            "changed them"
        )
    try:
        return convert(json.loads(body))
    except (*DAMAGED, RecursionError, msgspec.MsgspecError) as error:
        raise HipressError(
            f"the {what} of {who} are malformed ({type(error).__name__}): it runs another version "
            "of HiPress, or is a process of another job"
        ) from error


def _tensor(data: bytes, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(bytearray(data), np.uint8)).to(device)


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


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's elements as uint8, without a copy if it is contiguous."""
    contiguous = tensor.contiguous()
    # A contiguous tensor of one element may have any strides, of which view() refuses most.
    return contiguous.as_strided((contiguous.numel(),), (1,)).view(torch.uint8)


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
