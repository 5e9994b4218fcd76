"""Methods to synchronize gradients: the candidates of the autotuner."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class Method(NamedTuple):
    """A codec with its parameters, or one of the framework's own all-reduces."""

    name: str
    type: str
    params: Mapping[str, object] = {}
    by_framework: bool = False
    """Whether it runs without HiPress, or uncompressed in a store. Steps of training try these."""
    sends_16_bits: bool = False
    """Whether it sends 16 bits for each element, so that gradients of 16 bits gain nothing."""
    feedback: bool = False
    """Whether it uses error feedback, which not every optimizer supports."""
    topology: str = ""
    """Topology, if it is not the job's."""


MAX_MOMENTUM = 0.95
"""Highest momentum of SGD with which error feedback is used. Measurements here and in the
literature (PowerSGD, arXiv:1905.13727) had 0.9."""
UNCOMPRESSED = Method("uncompressed", "none", by_framework=True)
BF16_HOOK = Method("DDP's bf16_compress_hook", "bf16", by_framework=True, sends_16_bits=True)
BF16 = Method("bf16", "bf16", sends_16_bits=True)
MAXMIN8 = Method("maxmin bits=8", "maxmin", {"bits": 8})
POWERSGD = Method("powersgd rank=4", "powersgd", {"rank": 4}, feedback=True)
METHODS = (
    UNCOMPRESSED,
    BF16,
    BF16_HOOK,
    MAXMIN8,
    Method("maxmin bits=6", "maxmin", {"bits": 6}),
    Method("maxmin bits=5", "maxmin", {"bits": 5}),
    Method("maxminef bits=4", "maxminef", {"bits": 4}, feedback=True),
    Method("maxminef bits=3", "maxminef", {"bits": 3}, feedback=True),
    Method("maxminef bits=2", "maxminef", {"bits": 2}, feedback=True),
    POWERSGD,
)
"""All methods for gradients, the least lossy first. Each kept the loss of uncompressed training:
those without error feedback with SGD and Adam (``python -m benchmarks convergence``), those with it
with unmodified SGD (``python -m benchmarks feedback``). ``onebit`` needs a shared momentum."""

OUTER_METHODS = (
    UNCOMPRESSED,
    Method("lossless", "lossless"),
    BF16,
    MAXMIN8,
    Method("maxmin bits=4", "maxmin", {"bits": 4}),
)
"""All methods for pseudo-gradients of outer steps. Four bits kept the loss; fewer bits did not
(``docs/measurements/torch.md``, "Fewer synchronizations")."""


GATHER_METHODS = (
    Method("PyTorch's all-gather", "pytorch", by_framework=True),
    Method("exact", "exact"),
    Method("lossless", "lossless"),
    Method("differences bits=8", "differences", {"bits": 8}),
    Method("differences bits=4", "differences", {"bits": 4}),
    Method("blocks bits=8", "blocks", {"bits": 8}),
)
"""All methods to gather weights, the least lossy first. ``type`` is the mode. Differences of 4 bits
(SDP4Bit, arXiv:2410.15526) and blocks of 8 bits (ZeRO++, arXiv:2306.10209) kept the loss of exact
weights there."""


def candidates(is_16_bit: bool, feedback: bool, without: Collection[Method] = ()) -> list[Method]:
    """Return the methods that are worth measuring, except those that a front end lacks."""
    return [
        method
        for method in METHODS
        if not (is_16_bit and method.sends_16_bits)
        and (feedback or not method.feedback)
        and not any(method is each for each in without)
    ]


def feedback_indices(methods: Sequence[Method]) -> list[int]:
    """Return the indices of the methods with error feedback."""
    return [index for index, method in enumerate(methods) if method.feedback]


def vectors(shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the names of biases and normalizations: small, and important for whole rows."""
    return [name for name, shape in shapes.items() if len(shape) < 2]
