"""The ways to synchronise gradients that type "auto" chooses from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

Hook = Callable[[dist.ProcessGroup, dist.GradBucket], torch.futures.Future]


class Way(NamedTuple):
    """A way to synchronise gradients.

    Ours compresses by a codec; DDP's own is a communication hook over the process group.
    """

    name: str
    type: str
    params: Mapping[str, object] = {}
    hook: Hook | None = None
    """DDP's own."""
    narrows: bool = False
    """Whether it gains nothing with gradients of 16 bits, as it sends 16 bits."""
    feedback: bool = False
    """Whether what it leaves out waits in residuals, which not every optimizer can do with."""


UNCOMPRESSED = Way("uncompressed", "none", hook=default_hooks.allreduce_hook)
MAXMIN8 = Way("maxmin bits=8", "maxmin", {"bits": 8})
WAYS = (
    UNCOMPRESSED,
    Way("bf16", "bf16", narrows=True),
    Way("DDP's bf16_compress_hook", "bf16", hook=default_hooks.bf16_compress_hook, narrows=True),
    MAXMIN8,
    Way("maxmin bits=6", "maxmin", {"bits": 6}),
    Way("maxmin bits=5", "maxmin", {"bits": 5}),
    Way("maxminef bits=4", "maxminef", {"bits": 4}, feedback=True),
    Way("maxminef bits=3", "maxminef", {"bits": 3}, feedback=True),
    Way("maxminef bits=2", "maxminef", {"bits": 2}, feedback=True),
    Way("powersgd rank=4", "powersgd", {"rank": 4}, feedback=True),
)
"""From gentle to lossy: what has kept the loss of uncompressed training; those without feedback
with SGD and with Adam (`python -m benchmarks convergence`), those with it with SGD as it was
(`python -m benchmarks feedback`). ``onebit`` did not, but with a shared momentum."""


def ways_for(dtype: torch.dtype, feedback: bool) -> list[Way]:
    """The ways that are worth measuring.

    :param dtype: of most gradients
    :param feedback: whether those with error feedback are among them
    """
    return [
        way for way in WAYS
        if (dtype == torch.float32 or not way.narrows) and (feedback or not way.feedback)
    ]  # fmt: skip


def vectors(shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """The gradients of biases and normalisations, which go as they are: they are few elements, and
    each counts for a whole row of a matrix."""
    return [name for name, shape in shapes.items() if len(shape) < 2]
