"""Counts of compressed and uncompressed gradients, with reasons."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hipress.torch.gradient import summarize
from hipress.torch.settings import Settings


@dataclass
class Uncompressed:
    """Gradients of one parameter that went uncompressed."""

    bytes: int = 0
    """Elements times their size."""
    reasons: list[str] = field(default_factory=list)
    """Distinct reasons, the first one first."""


@dataclass
class Stats:
    """Counts of this rank's gradients over all steps so far."""

    compressed: int = 0
    """Bytes of compressed gradients, before compression."""
    uncompressed: int = 0
    """Bytes of uncompressed gradients."""
    parameters: dict[str, Uncompressed] = field(default_factory=dict)
    """Gradients that went uncompressed at least once, by name."""
    gathered: int = 0
    """Bytes that this rank sent in gathers of weights, if HiPress counts them."""
    gathered_uncompressed: int = 0
    """Bytes that it would have sent in the same gathers, uncompressed."""

    def count(self, name: str, size: int, why: str) -> None:
        """Count ``size`` bytes of a gradient. Without a reason ``why`` they are compressed."""
        if not why:
            self.compressed += size
            return
        self.uncompressed += size
        one = self.parameters.setdefault(name, Uncompressed())
        one.bytes += size
        if why not in one.reasons:
            one.reasons.append(why)

    def add(self, other: Stats) -> None:
        """Add the counts of another compression."""
        self.compressed += other.compressed
        self.gathered += other.gathered
        self.gathered_uncompressed += other.gathered_uncompressed
        for name, each in other.parameters.items():
            for why in each.reasons:
                self.count(name, 0, why)
            self.parameters[name].bytes += each.bytes
            self.uncompressed += each.bytes

    def __str__(self) -> str:
        lines = [f"{self.compressed} bytes of gradients went compressed, {self.uncompressed} not"]
        groups: dict[str, list[str]] = {}
        for name, each in self.parameters.items():
            groups.setdefault(", ".join(each.reasons), []).append(name)
        for reasons, names in groups.items():
            total = sum(self.parameters[name].bytes for name in names)
            lines.append(f"  {summarize(names)}: {total} not, {reasons}")
        if self.gathered_uncompressed:
            lines.append(
                f"gathers of weights sent {self.gathered} bytes, of {self.gathered_uncompressed} "
                "uncompressed"
            )
        return "\n".join(lines)


class Traffic:
    """Counter of calls of each bucket, which takes hardly any time in a step."""

    def __init__(self) -> None:
        self._calls: dict[tuple, int] = {}
        self._settled = Stats()

    def add(self, entries: tuple, itemsize: int, why: str = "") -> None:
        """Count one step of a bucket, whose entries are names, offsets and counts of elements.

        ``why`` is the reason why nothing of the bucket is compressed, or an empty string.
        """
        key = entries, itemsize, why
        self._calls[key] = self._calls.get(key, 0) + 1

    def stats(self, reason: Callable[[str, int], str]) -> Stats:
        """Return the counts so far.

        ``reason`` returns why a gradient of so many elements is not compressed, or an empty string.
        """
        found = copy.deepcopy(self._settled)
        for (entries, itemsize, why), calls in self._calls.items():
            for name, _, count, *_ in entries:
                found.count(name, calls * count * itemsize, why or reason(name, count))
        return found

    def settle(self, reason: Callable[[str, int], str]) -> None:
        """Add the counts so far with these reasons, because reasons may change after this."""
        self._settled, self._calls = self.stats(reason), {}


def reason(settings: Settings, name: str, count: int, shape: Iterable[int]) -> str:
    """Return why a gradient of ``count`` elements is uncompressed after the warm-up, or ""."""
    if settings.type == "none":
        return "by type none"
    if settings.compresses(name, count, tuple(shape)):
        return ""
    if name in settings.decisions and not settings.decisions[name].compress:
        return "as planned"
    if count < settings.min_size:
        return too_small(settings)
    return f"of a shape for which rank {settings.rank} does not pay"


def too_small(settings: Settings) -> str:
    """Return the reason of gradients that are too small to be compressed."""
    return f"of fewer than {settings.min_size} elements (min_size)"
