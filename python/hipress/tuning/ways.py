"""The ways to synchronise gradients that type "auto" chooses from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class Way(NamedTuple):
    """A way to synchronise gradients: by a codec, or one of the framework's own."""

    name: str
    type: str
    params: Mapping[str, object] = {}
    own: bool = False
    """What runs without HiPress, too, or in a store uncompressed: tried in steps of training."""
    narrows: bool = False
    """Whether it gains nothing with gradients of 16 bits, as it sends 16 bits."""
    feedback: bool = False
    """Whether what it leaves out waits in residuals, which not every optimizer can do with."""
    topology: str = ""
    """By which gradients travel, if not by that of the job."""


MAX_MOMENTUM = 0.95
"""The highest momentum of SGD with which error feedback is taken. What was measured, here and in
the literature (PowerSGD, arXiv:1905.13727), had 0.9."""
UNCOMPRESSED = Way("uncompressed", "none", own=True)
BF16_HOOK = Way("DDP's bf16_compress_hook", "bf16", own=True, narrows=True)
BF16 = Way("bf16", "bf16", narrows=True)
MAXMIN8 = Way("maxmin bits=8", "maxmin", {"bits": 8})
POWERSGD = Way("powersgd rank=4", "powersgd", {"rank": 4}, feedback=True)
WAYS = (
    UNCOMPRESSED,
    BF16,
    BF16_HOOK,
    MAXMIN8,
    Way("maxmin bits=6", "maxmin", {"bits": 6}),
    Way("maxmin bits=5", "maxmin", {"bits": 5}),
    Way("maxminef bits=4", "maxminef", {"bits": 4}, feedback=True),
    Way("maxminef bits=3", "maxminef", {"bits": 3}, feedback=True),
    Way("maxminef bits=2", "maxminef", {"bits": 2}, feedback=True),
    POWERSGD,
)
"""From gentle to lossy: what has kept the loss of uncompressed training; those without feedback
with SGD and with Adam (`python -m benchmarks convergence`), those with it with SGD as it was
(`python -m benchmarks feedback`). ``onebit`` did not, but with a shared momentum."""

ROUND_WAYS = (
    UNCOMPRESSED,
    Way("lossless", "lossless"),
    BF16,
    MAXMIN8,
    Way("maxmin bits=4", "maxmin", {"bits": 4}),
)
"""Those for pseudo-gradients, which are synchronised once in many steps: 4 bits have cost nothing,
what sends less has (`docs/measurements/torch.md`, "Fewer synchronisations")."""


def ways_for(narrow: bool, feedback: bool, without: Collection[Way] = ()) -> list[Way]:
    """The ways that are worth measuring.

    :param narrow: whether most gradients have 16 bits already
    :param feedback: whether those with error feedback are among them
    :param without: which the front end does not have
    """
    return [
        way for way in WAYS
        if not (narrow and way.narrows) and (feedback or not way.feedback)
        and not any(way is each for each in without)
    ]  # fmt: skip


def apart(ways: Sequence[Way]) -> list[int]:
    """The numbers of those that not every optimizer can do with."""
    return [number for number, way in enumerate(ways) if way.feedback]


def vectors(shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """The gradients of biases and normalisations, which go as they are: they are few elements, and
    each counts for a whole row of a matrix."""
    return [name for name, shape in shapes.items() if len(shape) < 2]
