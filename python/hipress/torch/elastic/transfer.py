"""Copy of state to a worker that joins or is a step behind."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist

_PART = 1 << 20
"""Bytes of a message. Each has the process group's timeout, also on a slow link."""
_REPORTED_PARTS, _MAX_REPORTS = 16, 50
"""Messages for which there is one report of a copy's progress, and the most reports of a copy."""


def pack(state: Mapping[str, Any]) -> torch.Tensor:
    """Serialize tensors, numbers, texts and containers of them: uint8, in host memory."""
    stream = io.BytesIO()
    torch.save(dict(state), stream)
    return torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8)


def unpack(data: torch.Tensor) -> dict[str, Any]:
    """Read what :func:`pack` made; nothing in it can run code.

    Raises:
        pickle.UnpicklingError: if it holds anything but tensors and plain values
    """
    return torch.load(io.BytesIO(data.numpy().tobytes()), map_location="cpu", weights_only=True)


def send(data: torch.Tensor, rank: int) -> None:
    """Send bytes to another rank of the default process group, which must :func:`receive`."""
    for part in data.split(_PART):
        dist.send(part, rank)


def reports(size: int) -> int:
    """Return how often :func:`receive` of so many bytes reports its progress."""
    parts = -(-size // _PART)
    return -(-parts // _parts_of_a_report(parts))


def _parts_of_a_report(parts: int) -> int:
    return max(_REPORTED_PARTS, -(-parts // _MAX_REPORTS))


def receive(size: int, rank: int, report: Callable[[int], None]) -> torch.Tensor:
    """Receive ``size`` bytes that another rank sends: uint8.

    ``report`` is called with 0, 1, ... when the part of that number has arrived.
    """
    data = torch.empty(size, dtype=torch.uint8, device="cpu")
    parts = data.split(_PART)
    every = _parts_of_a_report(len(parts))
    for number, part in enumerate(parts):
        dist.recv(part, rank)
        if (number + 1) % every == 0 or number + 1 == len(parts):
            report(number // every)
    return data


def as_bytes(parameters: Iterable[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, memoryview]]:
    """Yield the bytes of parameters, in host memory, by name."""
    for name, parameter in parameters:
        values = parameter.detach().cpu().contiguous().view(-1)
        yield name, memoryview(values.view(torch.uint8).numpy())
